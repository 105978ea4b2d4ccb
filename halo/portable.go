package halo

import (
	"slices"

	"siafu/graph/mapped"
	"siafu/halo/comm"
	"siafu/kernels"
)

// Portable is a Source whose state can be saved at the start of an epoch and restored later
// or on another rank.
type Portable interface {
	Source
	// Pack returns the state of the source at the start of an epoch, before its first
	// transfer. It waits for rows in transit to this rank. The caller owns the result.
	// Collective.
	Pack() (Luggage, error)
	// Unpack restores the state into a new source.
	Unpack(l Luggage) error
}

var _ Portable = Always{}

// Luggage is the portable state of a part's transfers, without the rows of the current
// epoch.
type Luggage struct {
	Losts  []Lost  // by codecs
	Stands []Stand // rows that are used until others come
	Held   []Held  // rows that have come, and are used later
}

// Lost has the accumulated errors of a codec with error feedback for the rows of a layer.
type Lost struct {
	Layer, Cols int
	Backward    bool
	Rows        []float32
}

// Stand has the stored rows of a layer and direction, with their epochs. If the policy
// needs them, Sent has the rows that this rank sent last, with the epochs by rank.
type Stand struct {
	Layer    int
	Backward bool
	Rows     []float32
	Epochs   []int32
	Sent     []float32
	SentAt   []int32
}

// Held is a received exchange whose rows have not been stored yet: the blocks of a part of
// the plan, as they were sent.
type Held struct {
	Layer, Part, Epoch, Cols int
	Backward                 bool
	Blocks                   []Arrival
}

// Arrival is the data from one rank, or from all ranks: -1.
type Arrival struct {
	From int
	Data []byte
}

// Pack implements Portable.
func (a Always) Pack() (Luggage, error) { return Luggage{Losts: a.Exchange.Losts()}, nil }

// Unpack implements Portable.
func (a Always) Unpack(l Luggage) error {
	a.Exchange.Remember(l.Losts)
	return nil
}

// Losts returns a copy of the accumulated errors, nil without error feedback.
func (e *Exchange) Losts() []Lost {
	if e.chunked == nil {
		return nil
	}
	return e.chunked.losts.list(e.ops)
}

// list is a copy of all of them, in the order of layers.
func (f Feedbacks) list(o kernels.Ops) []Lost {
	var list []Lost
	for s, l := range f {
		list = append(list, Lost{s.layer, s.cols, s.backward, l.copy(o)})
	}
	slices.SortFunc(list, func(a, b Lost) int {
		if a.Layer != b.Layer || a.Backward == b.Backward {
			return a.Layer - b.Layer
		} else if b.Backward {
			return -1
		}
		return 1
	})
	return list
}

// Remember restores the errors of an exchange elsewhere, which correct later rows. Call it
// before the first Begin.
func (e *Exchange) Remember(list []Lost) {
	if e.chunked != nil && e.chunked.losts != nil {
		e.chunked.losts.remember(list)
	}
}

func (f Feedbacks) remember(list []Lost) {
	for _, l := range list {
		at := series{l.Layer, l.Cols, l.Backward}
		have, ok := f[at]
		if !ok {
			have = new(lost)
			f[at] = have
		}
		if have.away = false; len(have.rows) == len(l.Rows) {
			copy(have.rows, l.Rows)
		} else {
			have.rows = slices.Clone(l.Rows)
		}
	}
}

// Hold waits for the rows of the current transfer and returns a copy of them, as they were
// sent. The transfer continues.
func (t *Transfer) Hold(layer int) (Held, error) {
	held := Held{Layer: layer, Epoch: t.leaving, Cols: t.width, Backward: t.state == backward}
	var err error
	if !t.way.handed {
		held.Blocks, err = t.carrier.hold(t.way)
		return held, err
	}
	err = t.carrier.await()
	come := t.handedTo(held)
	rows := make([]float32, come.Rows*come.Cols)
	kernels.Read(t.ops, rows, come)
	held.Blocks = []Arrival{{-1, mapped.Bytes(rows)}}
	return held, err
}

// handedTo is where rows come in that the communicator puts where Ops compute.
func (e *Exchange) handedTo(h Held) kernels.Mat {
	if h.Backward {
		return e.staged.there.Reshape(len(e.plan.SendRows), h.Cols)
	}
	return e.Ghosts(h.Cols)
}

// GoOn puts a transfer in transit with rows that another transfer has held.
func (t *Transfer) GoOn(h Held) error {
	e := t.Exchange
	t.leaving = h.Epoch
	if h.Backward {
		e.enter(backward, h.Cols)
		e.way = way{backward: true, outStart: e.plan.RecvStart, inStart: e.plan.SendStart, handed: e.handing()}
	} else {
		e.enter(forward, h.Cols)
		e.way = way{outStart: e.plan.SendStart, inStart: e.plan.RecvStart, handed: e.handing()}
	}
	switch {
	case e.coding() && h.Backward:
		e.codeBackward(h.Cols)
	case e.coding():
		e.codeForward(kernels.Mat{Cols: h.Cols})
	case h.Backward:
		e.way.in, e.way.add = e.returning(h.Cols), !e.ops.Remote()
	default:
		e.way.in = e.arriving(h.Cols)
	}
	if e.way.handed {
		kernels.Write(e.ops, e.handedTo(h), mapped.Cast[float32](h.Blocks[0].Data))
		return nil
	}
	return e.carrier.goOn(e.way, h.Blocks)
}

// hold implements carrier.
func (d *direct) hold(w way) ([]Arrival, error) {
	err := d.await()
	return []Arrival{{-1, slices.Clone(mapped.Bytes(d.coming(w)))}}, err
}

// goOn implements carrier.
func (d *direct) goOn(w way, blocks []Arrival) error {
	copy(mapped.Bytes(d.coming(w)), blocks[0].Data)
	return nil
}

// hold implements carrier.
func (h *chunked) hold(way) ([]Arrival, error) {
	err := h.await()
	var list []Arrival
	for _, c := range h.waiting {
		if h.way.coded && c.err == nil {
			c.data = h.unboard(c)
		}
		list = append(list, Arrival{c.from, c.data})
	}
	return list, err
}

// goOn implements carrier.
func (h *chunked) goOn(w way, blocks []Arrival) error {
	h.way, h.rows, h.failed = w, ChunkRows(h.codec, w.in.Cols), nil
	h.out, h.copied = h.out[:0], 0
	if w.coded {
		h.base(h.far.inBase, w.inStart)
		h.far.staged.ready()
	}
	clear(h.owed)
	for _, b := range blocks {
		h.owed[b.From]++
	}
	for _, b := range blocks {
		if err := h.accept(comm.Message{Source: b.From, Data: b.Data}); err != nil {
			return err
		}
	}
	return nil
}

// Losts returns a copy of the accumulated codec errors of all histories.
func (h *Histories) Losts() []Lost { return h.losts.list(h.o.Ops) }

// Remember restores the codec errors of other histories, which correct later rows.
func (h *Histories) Remember(list []Lost) {
	if c := h.list[0].chunked; c != nil && c.losts != nil {
		h.losts.remember(list)
	}
}

// Stand returns a copy of the rows.
func (r *History) Stand(layer int) Stand {
	return Stand{Layer: layer, Backward: r.backward, Rows: slices.Clone(r.rows), Epochs: slices.Clone(r.epochs)}
}

// Restore sets the rows to those of another history.
func (r *History) Restore(s Stand) {
	copy(r.rows, s.Rows)
	copy(r.epochs, s.Epochs)
	r.Publish()
}

// Hold waits for the rows in transit and returns a copy of them, as they were sent.
func (b *Batch) Hold(layer, part int) (Held, error) {
	blocks, err := b.carrier.hold(b.way)
	return Held{Layer: layer, Part: part, Epoch: b.epoch, Cols: b.of.shape.Width, Backward: b.of.backward, Blocks: blocks}, err
}

// GoOn puts a batch in transit with rows that another batch has held.
func (b *Batch) GoOn(r *History, part *Part, h Held) error {
	b.of, b.epoch, b.way = r, h.Epoch, r.coming(part)
	return b.carrier.goOn(b.way, h.Blocks)
}

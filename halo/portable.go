package halo

import (
	"slices"

	"siafu/graph/mapped"
	"siafu/halo/comm"
	"siafu/kernels"
)

// Portable is a Source that can go on elsewhere, or later, where an epoch begins: as a
// new one that takes up what its part knew.
type Portable interface {
	Source
	// Pack is what the source knows at the beginning of an epoch, before the epoch's
	// first transfer; what is on its way to this rank is waited for. It is the
	// caller's. Collective.
	Pack() (Luggage, error)
	// Unpack has a new source go on with it.
	Unpack(l Luggage) error
}

var _ Portable = Always{}

// Luggage is what a part's transfers know beside the rows of the day.
type Luggage struct {
	Losts  []Lost  // by codecs
	Stands []Stand // rows that are used until others come
	Held   []Held  // rows that have come, and are used later
}

// Lost is what a codec that feeds errors back has lost of the rows of a layer.
type Lost struct {
	Layer, Cols int
	Backward    bool
	Rows        []float32
}

// Stand is the rows of a layer and direction, and of which epochs they are. Sent is what
// this rank has sent last, where that matters, and when, by rank.
type Stand struct {
	Layer    int
	Backward bool
	Rows     []float32
	Epochs   []int32
	Sent     []float32
	SentAt   []int32
}

// Held is an exchange whose rows have come, and have not been put in their place: of a
// part of the plan, in blocks as they have travelled.
type Held struct {
	Layer, Part, Epoch, Cols int
	Backward                 bool
	Blocks                   []Arrival
}

// Arrival is what has come from a rank, or of all ranks: -1.
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

// Losts is a copy of what has been lost so far; nil where errors are not fed back.
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

// Remember lets rows be corrected by what an exchange elsewhere has lost of them. To
// be called before the first Begin.
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

// Hold waits for the rows of the transfer under way and gives a copy of them, as they
// have travelled. The transfer goes on.
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

// GoOn is under way with rows that another transfer has held.
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

// Losts is a copy of what codecs have lost of the rows of all histories.
func (h *Histories) Losts() []Lost { return h.losts.list(h.o.Ops) }

// Remember lets rows be corrected by what has been lost of them elsewhere.
func (h *Histories) Remember(list []Lost) {
	if c := h.list[0].chunked; c != nil && c.losts != nil {
		h.losts.remember(list)
	}
}

// Stand is a copy of the rows.
func (r *History) Stand(layer int) Stand {
	return Stand{Layer: layer, Backward: r.backward, Rows: slices.Clone(r.rows), Epochs: slices.Clone(r.epochs)}
}

// Restore sets the rows to those of another history.
func (r *History) Restore(s Stand) {
	copy(r.rows, s.Rows)
	copy(r.epochs, s.Epochs)
	r.Publish()
}

// Hold waits for the rows under way and gives a copy of them, as they have travelled.
func (b *Batch) Hold(layer, part int) (Held, error) {
	blocks, err := b.carrier.hold(b.way)
	return Held{Layer: layer, Part: part, Epoch: b.epoch, Cols: b.of.shape.Width, Backward: b.of.backward, Blocks: blocks}, err
}

// GoOn is under way with rows that another batch has held.
func (b *Batch) GoOn(r *History, part *Part, h Held) error {
	b.of, b.epoch, b.way = r, h.Epoch, r.coming(part)
	return b.carrier.goOn(b.way, h.Blocks)
}

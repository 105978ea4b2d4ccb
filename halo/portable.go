package halo

import (
	"slices"

	"siafu/graph/mapped"
	"siafu/halo/codec"
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
	return e.chunked.losts.list()
}

// list is a copy of all of them, in the order of layers.
func (f Feedbacks) list() []Lost {
	var list []Lost
	for s, rows := range f {
		list = append(list, Lost{s.layer, s.cols, s.backward, slices.Clone(rows)})
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
		if have, ok := f[at]; ok && len(have) == len(l.Rows) {
			copy(have, l.Rows)
		} else {
			f[at] = slices.Clone(codec.Feedback(l.Rows))
		}
	}
}

// Hold waits for the rows of the transfer under way and gives a copy of them, as they
// have travelled. The transfer goes on.
func (t *Transfer) Hold(layer int) (Held, error) {
	blocks, err := t.carrier.hold(t.way)
	return Held{Layer: layer, Epoch: t.leaving, Cols: t.width, Backward: t.state == backward, Blocks: blocks}, err
}

// GoOn is under way with rows that another transfer has held.
func (t *Transfer) GoOn(h Held) {
	e := t.Exchange
	t.leaving = h.Epoch
	if h.Backward {
		e.enter(backward, h.Cols)
		e.way = way{backward: true, add: !e.ops.Remote(), in: e.returning(h.Cols), outStart: e.plan.RecvStart, inStart: e.plan.SendStart}
	} else {
		e.enter(forward, h.Cols)
		e.way = way{
			in:       codec.Rows{X: e.staged.ghosts[:e.plan.Ghosts*h.Cols], Cols: h.Cols, Len: e.plan.Ghosts},
			outStart: e.plan.SendStart, inStart: e.plan.RecvStart,
		}
	}
	e.carrier.goOn(e.way, h.Blocks)
}

// hold implements carrier.
func (d *direct) hold(w way) ([]Arrival, error) {
	err := d.await()
	return []Arrival{{-1, slices.Clone(mapped.Bytes(d.coming(w)))}}, err
}

// goOn implements carrier.
func (d *direct) goOn(w way, blocks []Arrival) { copy(mapped.Bytes(d.coming(w)), blocks[0].Data) }

// hold implements carrier.
func (h *chunked) hold(way) ([]Arrival, error) {
	err := h.await()
	var list []Arrival
	for _, c := range h.waiting {
		list = append(list, Arrival{c.from, c.data})
	}
	return list, err
}

// goOn implements carrier.
func (h *chunked) goOn(w way, blocks []Arrival) {
	h.way, h.rows = w, ChunkRows(h.codec, w.in.Cols)
	clear(h.owed)
	for _, b := range blocks {
		h.waiting = append(h.waiting, incoming{from: b.From, data: b.Data})
	}
}

// Losts is a copy of what codecs have lost of the rows of all histories.
func (h *Histories) Losts() []Lost { return h.losts.list() }

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
func (b *Batch) GoOn(r *History, part *Part, h Held) {
	b.of, b.epoch, b.way = r, h.Epoch, r.coming(part)
	b.carrier.goOn(b.way, h.Blocks)
}

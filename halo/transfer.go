package halo

import (
	"siafu/halo/codec"
	"siafu/kernels"
)

// Transfer is what a Collective uses an exchange for: rows of one layer in one
// direction, of one epoch after another.
type Transfer struct {
	*Exchange
	seed     uint64
	width    int
	leaving  int      // the epoch of the rows that were offered last
	brought  [1]Block // what Ghosts are; arrivals of them
	arrivals int
}

// NewTransfer makes the transfer of rows so wide; codecs that round at random draw
// by seed. Others may use the exchange too, in turn.
func NewTransfer(e *Exchange, width int, seed uint64) *Transfer {
	return &Transfer{Exchange: e, width: width, seed: seed}
}

// Forget ends the transfer, if it is under way, and puts zeros in the place of what
// it has brought. Collective.
func (t *Transfer) Forget() error {
	err := t.Drop()
	t.ops.Clear(t.Ghosts(t.width))
	t.arrivals = 0
	return err
}

// Choice is a policy that chooses among transfers.
type Choice interface {
	// Leaving is the transfer that takes the rows of a slot to other ranks.
	Leaving(s Slot) *Transfer
	// Arriving is the one that brings those which the slot uses. While it has
	// never been under way its rows are zeros, and nobody has sent gradients.
	Arriving(s Slot) *Transfer
}

// Chosen has the methods of a Collective that follow from a choice.
type Chosen struct{ Choice }

// Reserve implements Collective.
func (c Chosen) Reserve(l Shape) {
	c.Leaving(Slot{Layer: l.Layer}).Exchange.Reserve(l.Layer, l.Width, l.Backward)
}

// Room implements Source.
func (c Chosen) Room(s Slot) kernels.Mat {
	t := c.Leaving(s)
	if s.Backward {
		return t.Ghosts(t.width)
	}
	return t.Sums(t.width)
}

// Offer implements Source.
func (c Chosen) Offer(s Slot, rows kernels.Mat, lo, hi int) error {
	t := c.Leaving(s)
	if lo != 0 || hi != rows.Rows || rows.Cols != t.width {
		panic("halo: a collective transfer takes all rows at once")
	}
	t.leaving = s.Epoch
	k := Key{Seed: t.seed, Epoch: s.Epoch, Layer: s.Layer, Apart: s.Apart}
	if s.Backward {
		return t.BeginBackward(t.width, k)
	}
	return t.BeginForward(rows, k)
}

// Take implements Source. Gradients are decoded when they are added.
func (c Chosen) Take(s Slot) (lo, hi int, err error) {
	t := c.Arriving(s)
	if s.Backward || !t.UnderWay() {
		return 0, 0, nil
	}
	rows, err := t.EndForward()
	t.brought[0], t.arrivals = Block{Rows: rows.Rows, Epoch: t.leaving}, min(rows.Rows, 1)
	return 0, rows.Rows, err
}

// Want implements Source. The rows stand until the transfer's exchange begins
// again.
func (c Chosen) Want(s Slot) (View, error) {
	t := c.Arriving(s)
	if s.Backward {
		return View{Rows: t.Sums(t.width)}, nil
	}
	return View{Rows: t.Ghosts(t.width), Blocks: t.brought[:t.arrivals]}, nil
}

// Add implements Source.
func (c Chosen) Add(_ kernels.Ops, s Slot, own kernels.Mat, lo, hi int) error {
	t := c.Arriving(s)
	if lo != 0 || hi != own.Rows {
		panic("halo: a collective transfer adds to all rows at once")
	}
	if !t.UnderWay() {
		return nil
	}
	return t.EndBackward(own)
}

// Always refreshes ghosts in every epoch: one exchange at a time, whose rows are
// used as soon as they come. It is a Collective.
type Always struct {
	Chosen
	*Exchange
}

var _ Collective = Always{}

// layered is the choice of Always: a transfer a layer, nil for one that does not
// gather.
type layered []*Transfer

func (l layered) Leaving(s Slot) *Transfer  { return l[s.Layer] }
func (l layered) Arriving(s Slot) *Transfer { return l[s.Layer] }

// NewAlways makes the transfers of layers with an exchange, which has room for the
// widest.
func NewAlways(e *Exchange, shapes []Shape, seed uint64) Always {
	var list layered
	for _, s := range shapes {
		for len(list) <= s.Layer {
			list = append(list, nil)
		}
		list[s.Layer] = NewTransfer(e, s.Width, seed)
	}
	return Always{Chosen{list}, e}
}

// Reserve implements Collective.
func (a Always) Reserve(l Shape) { a.Chosen.Reserve(l) }

// Arrived implements Source.
func (a Always) Arrived(Slot) (bool, error) { return a.Exchange.Arrived() }

// Await implements Collective.
func (a Always) Await(Slot) error { return a.Exchange.Await() }

// Progress implements Collective. Who waits asks whether the rows have arrived.
func (a Always) Progress() error { return nil }

// Settle implements Collective. Nothing outlives the task that has used it.
func (a Always) Settle() error { return nil }

// UnderWay tells whether a transfer has begun and not been ended.
func (e *Exchange) UnderWay() bool { return e.state != "" }

// Drop ends the transfer under way, if there is one, and forgets what it has
// brought. Collective.
func (e *Exchange) Drop() error {
	switch e.state {
	case forward:
		_, err := e.EndForward()
		return err
	case backward:
		if e.scrap.IsNil() {
			e.scrap = kernels.PlaceMat(e.ops, e.arena, e.plan.Own, e.maxCols, make([]float32, e.plan.Own*e.maxCols))
		}
		return e.EndBackward(e.scrap.Reshape(e.plan.Own, e.way.in.Cols))
	}
	return nil
}

// Separate lets several exchanges of the same ranks be under way at once: their
// messages bear tag, which is above 0 and below 32768. Exchanges with the same
// tag must end in the order in which they begin. To be called before the first
// Begin.
func (e *Exchange) Separate(tag int) {
	e.tag = tag
	if e.chunked != nil {
		e.chunked.tag = tag
	}
}

// Reserve makes the room that Begin would make else for what a codec loses of a
// layer's rows of so many columns and, if backward, of their gradients.
func (e *Exchange) Reserve(layer, cols int, backward bool) {
	if e.chunked == nil || e.chunked.losts == nil {
		return
	}
	e.chunked.losses(series{layer, cols, false}, len(e.plan.SendRows))
	if backward {
		e.chunked.losses(series{layer, cols, true}, e.plan.Ghosts)
	}
}

// Feedbacks is what codecs that feed errors back have lost of rows, by layer,
// width and direction.
type Feedbacks map[series]codec.Feedback

// FeedBack makes exchanges, of which each carries the same rows in turn, correct
// each other's errors. To be called before the first Begin, where the codec feeds
// errors back.
func (e *Exchange) FeedBack(f Feedbacks) {
	if e.chunked != nil && e.chunked.losts != nil {
		e.chunked.losts = f
	}
}

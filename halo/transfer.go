package halo

import (
	"siafu/kernels"
)

// Transfer sends the rows of one layer in one direction through an exchange, one epoch
// after another.
type Transfer struct {
	*Exchange
	seed        uint64
	width       int
	sentEpoch   int      // the epoch of the rows that were offered last
	received    [1]Block // the block of all ghosts
	numReceived int
}

// NewTransfer returns the transfer of rows of the given width. seed is the seed of codecs
// with random rounding. Several transfers may use the exchange, one after another.
func NewTransfer(e *Exchange, width int, seed uint64) *Transfer {
	return &Transfer{Exchange: e, width: width, seed: seed}
}

// Forget ends the transfer, if it is in transit, and sets its received rows to zero.
// Collective.
func (t *Transfer) Forget() error {
	err := t.Drop()
	t.ops.Clear(t.Ghosts(t.width))
	t.numReceived = 0
	return err
}

// Choice is a policy that selects among transfers.
type Choice interface {
	// SendTransfer returns the transfer that sends the rows of a slot to other ranks.
	SendTransfer(s Slot) *Transfer
	// RecvTransfer returns the transfer that receives the rows for the slot. Before its first
	// use its rows are zeros, and no gradients have arrived.
	RecvTransfer(s Slot) *Transfer
}

// TransferSource implements the methods of a Collective that follow from a choice.
type TransferSource struct{ Choice }

// Reserve implements Collective.
func (c TransferSource) Reserve(l Shape) {
	c.SendTransfer(Slot{Layer: l.Layer}).Exchange.Reserve(l.Layer, l.Width, l.Backward)
}

// SendBuffer implements Source.
func (c TransferSource) SendBuffer(s Slot) kernels.Mat {
	t := c.SendTransfer(s)
	if s.Backward {
		return t.Ghosts(t.width)
	}
	return t.Sums(t.width)
}

// Offer implements Source.
func (c TransferSource) Offer(s Slot, rows kernels.Mat, lo, hi int) error {
	t := c.SendTransfer(s)
	if lo != 0 || hi != rows.Rows || rows.Cols != t.width {
		panic("halo: a collective transfer takes all rows at once")
	}
	t.sentEpoch = s.Epoch
	k := Key{Seed: t.seed, Epoch: s.Epoch, Layer: s.Layer, OutsideTraining: s.OutsideTraining}
	if s.Backward {
		return t.BeginBackward(t.width, k)
	}
	return t.BeginForward(rows, k)
}

// Take implements Source. Gradients are decoded when they are added.
func (c TransferSource) Take(s Slot) (lo, hi int, err error) {
	t := c.RecvTransfer(s)
	if s.Backward || !t.UnderWay() {
		return 0, 0, nil
	}
	rows, err := t.EndForward()
	t.received[0], t.numReceived = Block{Rows: rows.Rows, Epoch: t.sentEpoch}, min(rows.Rows, 1)
	return 0, rows.Rows, err
}

// View implements Source. The rows are valid until the transfer's exchange begins again.
func (c TransferSource) View(s Slot) (View, error) {
	t := c.RecvTransfer(s)
	if s.Backward {
		return View{Rows: t.Sums(t.width)}, nil
	}
	return View{Rows: t.Ghosts(t.width), Blocks: t.received[:t.numReceived]}, nil
}

// Add implements Source.
func (c TransferSource) Add(_ kernels.Ops, s Slot, own kernels.Mat, lo, hi int) error {
	t := c.RecvTransfer(s)
	if lo != 0 || hi != own.Rows {
		panic("halo: a collective transfer adds to all rows at once")
	}
	if !t.UnderWay() {
		return nil
	}
	return t.EndBackward(own)
}

// Always refreshes ghost rows in every epoch with one exchange at a time, and uses the rows
// as soon as they arrive. It is a Collective.
type Always struct {
	TransferSource
	*Exchange
}

var _ Collective = Always{}

// layered is the choice of Always: one transfer per layer, nil for a layer that does not
// gather.
type layered []*Transfer

func (l layered) SendTransfer(s Slot) *Transfer { return l[s.Layer] }
func (l layered) RecvTransfer(s Slot) *Transfer { return l[s.Layer] }

// NewAlways makes the transfers of layers with an exchange, which has memory for the widest
// layer.
func NewAlways(e *Exchange, shapes []Shape, seed uint64) Always {
	var list layered
	for _, s := range shapes {
		for len(list) <= s.Layer {
			list = append(list, nil)
		}
		list[s.Layer] = NewTransfer(e, s.Width, seed)
	}
	return Always{TransferSource{list}, e}
}

// Through makes an exchange of another plan transfer the rows of a layer.
func (a Always) Through(e *Exchange, layer, width int, seed uint64) Always {
	list := a.Choice.(layered)
	for len(list) <= layer {
		list = append(list, nil)
	}
	list[layer] = NewTransfer(e, width, seed)
	a.Choice = list
	return a
}

// Reserve implements Collective.
func (a Always) Reserve(l Shape) { a.TransferSource.Reserve(l) }

// Arrived implements Source.
func (a Always) Arrived(s Slot) (bool, error) { return a.RecvTransfer(s).Arrived() }

// Await implements Collective.
func (a Always) Await(s Slot) error { return a.RecvTransfer(s).Await() }

// Progress implements Collective. A waiting caller calls Arrived instead.
func (a Always) Progress() error { return nil }

// Settle implements Collective. No transfer outlives its task.
func (a Always) Settle() error { return nil }

// UnderWay reports whether a transfer has begun and has not ended.
func (e *Exchange) UnderWay() bool { return e.state != "" }

// Drop ends the transfer in transit, if there is one, and discards its rows. Collective.
func (e *Exchange) Drop() error {
	switch e.state {
	case forward:
		_, err := e.EndForward()
		return err
	case backward:
		if e.discarded.IsNil() {
			e.discarded = kernels.PlaceMat(e.ops, e.arena, e.plan.Own, e.maxCols, make([]float32, e.plan.Own*e.maxCols))
		}
		return e.EndBackward(e.discarded.Reshape(e.plan.Own, e.direction.in.Cols))
	}
	return nil
}

// Separate allows several exchanges of the same ranks in transit at once. Their messages
// have the given tag, which is above 0 and below 32768. Exchanges with the same tag must
// end in the order in which they begin. Call it before the first Begin.
func (e *Exchange) Separate(tag int) {
	e.tag = tag
	if e.chunked != nil {
		e.chunked.tag = tag
	}
}

// Reserve allocates the memory for codec errors of a layer's rows of cols columns and, if
// backward, of their gradients. Otherwise Begin allocates it.
func (e *Exchange) Reserve(layer, cols int, backward bool) {
	e.chunked.reserve(Shape{Layer: layer, Width: cols, Backward: backward}, e.plan)
}

// Feedbacks has the accumulated errors of codecs with error feedback, by layer, width and
// direction.
type Feedbacks map[series]*errorBuffer

// FeedBack shares errors between exchanges that send the same rows in alternation, so that
// each corrects the errors of the others. Call it before the first Begin, if the codec uses
// error feedback.
func (e *Exchange) FeedBack(f Feedbacks) {
	if e.chunked != nil && e.chunked.codecErrors != nil {
		e.chunked.codecErrors = f
	}
}

package halo

import (
	"siafu/halo/codec"
	"siafu/kernels"
)

// Slot names rows that travel between ranks: those of a layer in an epoch,
// forward to the ghosts of own vertices or backward, as gradients, to the
// owners of ghosts.
type Slot struct {
	Epoch, Layer int
	Backward     bool
}

// Source supplies the ghosts of synchronous passes. It says with which transfer
// the rows of a slot leave this rank, and with which transfer those come that the
// slot's gather uses: where ghosts are refreshed in every epoch the same one
// (Always), else another one, which may have begun epochs ago. Package refresh
// has the policies.
//
// In every epoch each slot that gathers is gone through once, and in the same
// order on all ranks: its rows are written to Leaving, whose Begin is called;
// Begun; Arrived until it is true, or Await; and the End of Arriving, if that is
// under way. Begun, Arrived, Await and Progress are called by one worker at a time,
// while others may use the transfers of Leaving and of Arriving.
type Source interface {
	// Leaving is the transfer that takes the rows of a slot to other ranks.
	Leaving(s Slot) *Exchange
	// Begun tells that it is under way.
	Begun(s Slot)
	// Arrived tells, without waiting, whether all rows that the slot uses are
	// here.
	Arrived(s Slot) (bool, error)
	// Await returns when they are.
	Await(s Slot) error
	// Progress moves transfers on that nobody waits for yet. It does not wait.
	Progress() error
	// Arriving is the transfer that brings them. It is not under way before the
	// first epoch that has any: its Ghosts are then zeros, and nobody has sent
	// gradients.
	Arriving(s Slot) *Exchange
	// Settle ends every transfer that is still under way and forgets its rows.
	// Collective.
	Settle() error
	// TakeStats returns what all transfers have done since the last call.
	TakeStats() Stats
}

// Always refreshes ghosts in every epoch: one transfer at a time, whose rows are
// used as soon as they come.
type Always struct{ *Exchange }

// Leaving implements Source.
func (a Always) Leaving(Slot) *Exchange { return a.Exchange }

// Begun implements Source.
func (a Always) Begun(Slot) {}

// Arrived implements Source.
func (a Always) Arrived(Slot) (bool, error) { return a.Exchange.Arrived() }

// Await implements Source.
func (a Always) Await(Slot) error { return a.Exchange.Await() }

// Progress implements Source. Who waits asks whether the rows have arrived.
func (a Always) Progress() error { return nil }

// Arriving implements Source.
func (a Always) Arriving(Slot) *Exchange { return a.Exchange }

// Settle implements Source. Nothing outlives the task that has used it.
func (a Always) Settle() error { return nil }

// Add adds the counts of o.
func (s *Stats) Add(o Stats) {
	s.RawBytes += o.RawBytes
	s.SentBytes += o.SentBytes
	s.Messages += o.Messages
	s.Encode += o.Encode
	s.Wait += o.Wait
	s.Decode += o.Decode
}

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

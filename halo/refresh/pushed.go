package refresh

import (
	"math"
	"sync/atomic"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Pushed provides the newest rows that other ranks have pushed, of any epoch. A rank pushes
// its own rows every N of its epochs. It waits for other ranks only once, for the first
// rows of all of them (DIGEST-A, ICLR'23 submission, §3.2; there a store has the rows, here
// each rank has the ghosts that it gathers). Gradients of ghosts are not returned.
//
// At most one message per layer is in transit from one rank to another. If the previous
// message has not been stored, rows that are due are not sent yet. Therefore a slow rank has no
// backlog of messages, and receives new rows in the next epoch of their owner.
type Pushed struct {
	*Bounded
	every int
	pump  MessagePump
	sends [][]rankSend // by layer and rank
}

// rankSend is the state of sending a layer's rows to a rank.
type rankSend struct {
	due, inTransit bool
	taken          atomic.Bool // the message under way
}

// MessagePump connects a Pushed to the receiver of messages, which passes them to Accept and
// Taken.
type MessagePump interface {
	// Poll processes received messages. Await waits for a message and processes it.
	Poll() error
	Await() error
	// ConfirmStored notifies rank from that its rows of a layer have been stored.
	ConfirmStored(from, layer int) error
}

var _ halo.Collective = (*Pushed)(nil)

// NewPushed returns a source like NewBounded, but without a bound and without gradients. It
// sends rows every given number of epochs.
func NewPushed(o BoundedOptions, every int, ops kernels.Ops, a *mapped.Arena) *Pushed {
	o.Staleness = math.MaxInt32
	forward := make([]halo.Shape, len(o.Shapes))
	for k, l := range o.Shapes {
		forward[k] = halo.Shape{Layer: l.Layer, Width: l.Width}
	}
	o.Shapes = forward
	p := &Pushed{Bounded: NewBounded(o, ops, a), every: every}
	p.sendsTo = p.mayPush
	for range p.layers {
		sends := make([]rankSend, o.Plan.Parts)
		for q := range sends {
			sends[q].due = true
		}
		p.sends = append(p.sends, sends)
	}
	return p
}

// Connect sets the receiver of messages. Call it before the first rows are offered.
func (p *Pushed) Connect(m MessagePump) { p.pump = m }

// Offer implements halo.Source.
func (p *Pushed) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	anyDue := false
	for q := range p.sends[at.Layer] {
		l := &p.sends[at.Layer][q]
		l.due = l.due || (at.Epoch-1)%p.every == 0
		l.inTransit = l.inTransit && !l.taken.Load()
		anyDue = anyDue || l.due && !l.inTransit
	}
	if !anyDue {
		return nil
	}
	return p.Bounded.Offer(at, rows, lo, hi)
}

// mayPush reports whether offered rows are sent to rank q, and records it.
func (p *Pushed) mayPush(at halo.Slot, q int) bool {
	l := &p.sends[at.Layer][q]
	if l.inTransit || !l.due {
		return false
	}
	l.due = false
	if p.o.Plan.SendStart[q] < p.o.Plan.SendStart[q+1] {
		l.inTransit = true
		l.taken.Store(false)
	}
	return true
}

// Taken records that a rank has stored the last rows of a layer. It returns false if there
// are no such rows.
func (p *Pushed) Taken(by, layer int) bool {
	if layer >= len(p.sends) || by < 0 || by >= len(p.sends[layer]) {
		return false
	}
	p.sends[layer][by].taken.Store(true)
	return true
}

// Take implements halo.Source. It stores all received rows.
func (p *Pushed) Take(at halo.Slot) (lo, hi int, err error) {
	for p.at(at).hasPending() {
		_, _, from, err := p.take(at)
		if err == nil {
			err = p.pump.ConfirmStored(from, at.Layer)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return 0, p.o.Plan.Ghosts, nil
}

// Await implements halo.Collective.
func (p *Pushed) Await(at halo.Slot) error {
	for !p.ready(at) {
		if err := p.pump.Await(); err != nil {
			return err
		}
	}
	return nil
}

// Arrived implements halo.Source: every ghost has a row, or a received message has it.
func (p *Pushed) Arrived(at halo.Slot) (bool, error) { return p.ready(at), nil }

func (p *Pushed) ready(at halo.Slot) bool {
	r := p.at(at)
	r.mu.Lock()
	defer r.mu.Unlock()
	missing := r.missing
	for _, a := range r.pending {
		missing -= a.block.Rows // before the first rows are stored, none arrives twice
	}
	return missing <= 0
}

// Progress implements halo.Collective.
func (p *Pushed) Progress() error { return p.pump.Poll() }

// Reserve implements halo.Collective. There is no error feedback.
func (p *Pushed) Reserve(halo.Shape) {}

// Settle implements halo.Collective. The outbox sends all rows.
func (p *Pushed) Settle() error { return nil }

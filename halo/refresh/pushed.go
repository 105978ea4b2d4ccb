package refresh

import (
	"math"
	"sync/atomic"

	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/kernels"
)

// Pushed lets each rank gather the newest rows that others have pushed, of whatever
// epoch, and push its own every so many of its epochs, all without waiting (DIGEST-A,
// ICLR'23 submission, §3.2, where a store holds the rows; here each rank has those that it
// gathers). Gradients of ghosts stay where they are. A rank waits for the first rows
// of all others, once.
//
// Of a layer, one message is under way from one rank to another at most: while the
// last one has not been taken, rows that are due stay due. A rank that is slow so has
// no heap of rows before it, and gets new ones in the next epoch of whoever has them.
type Pushed struct {
	*Bounded
	every int
	mail  Mail
	legs  [][]leg // by layer and rank
}

// leg is the way of a layer's rows to a rank.
type leg struct {
	due, under bool
	taken      atomic.Bool // the message under way
}

// Mail is how a Pushed hears of other ranks, whose messages somebody else receives
// and hands to Accept and Taken.
type Mail interface {
	// Poll takes what has come, and Await waits for something and takes that.
	Poll() error
	Await() error
	// Took tells rank from that its rows of a layer are in their place.
	Took(from, layer int) error
}

var _ halo.Collective = (*Pushed)(nil)

// NewPushed is NewBounded, without a bound and without gradients, and has rows leave
// every so many epochs.
func NewPushed(o BoundedOptions, every int, ops kernels.Ops, a *mapped.Arena) *Pushed {
	o.Staleness = math.MaxInt32
	forward := make([]halo.Shape, len(o.Shapes))
	for k, l := range o.Shapes {
		forward[k] = halo.Shape{Layer: l.Layer, Width: l.Width}
	}
	o.Shapes = forward
	p := &Pushed{Bounded: NewBounded(o, ops, a), every: every}
	p.goes = p.leaves
	for range p.layers {
		legs := make([]leg, o.Plan.Parts)
		for q := range legs {
			legs[q].due = true
		}
		p.legs = append(p.legs, legs)
	}
	return p
}

// Connect says who takes messages, before the first rows are offered.
func (p *Pushed) Connect(m Mail) { p.mail = m }

// Offer implements halo.Source.
func (p *Pushed) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	some := false
	for q := range p.legs[at.Layer] {
		l := &p.legs[at.Layer][q]
		l.due = l.due || (at.Epoch-1)%p.every == 0
		l.under = l.under && !l.taken.Load()
		some = some || l.due && !l.under
	}
	if !some {
		return nil
	}
	return p.Bounded.Offer(at, rows, lo, hi)
}

// leaves tells whether rows that are offered leave for rank q, and notes that they do.
func (p *Pushed) leaves(at halo.Slot, q int) bool {
	l := &p.legs[at.Layer][q]
	if l.under || !l.due {
		return false
	}
	l.due = false
	if p.o.Plan.SendStart[q] < p.o.Plan.SendStart[q+1] {
		l.under = true
		l.taken.Store(false)
	}
	return true
}

// Taken notes that a rank has put the last rows of a layer into their place; false
// where there are no such rows.
func (p *Pushed) Taken(by, layer int) bool {
	if layer >= len(p.legs) || by < 0 || by >= len(p.legs[layer]) {
		return false
	}
	p.legs[layer][by].taken.Store(true)
	return true
}

// Take implements halo.Source: all that has come is put into its place.
func (p *Pushed) Take(at halo.Slot) (lo, hi int, err error) {
	for p.at(at).waits() {
		_, _, from, err := p.take(at)
		if err == nil {
			err = p.mail.Took(from, at.Layer)
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
		if err := p.mail.Await(); err != nil {
			return err
		}
	}
	return nil
}

// Arrived implements halo.Source: every ghost has had a row, or is about to.
func (p *Pushed) Arrived(at halo.Slot) (bool, error) { return p.ready(at), nil }

func (p *Pushed) ready(at halo.Slot) bool {
	r := p.at(at)
	r.mu.Lock()
	defer r.mu.Unlock()
	missing := r.missing
	for _, a := range r.pending {
		missing -= a.block.Rows // before the first rows are there, none comes twice
	}
	return missing <= 0
}

// Progress implements halo.Collective.
func (p *Pushed) Progress() error { return p.mail.Poll() }

// Reserve implements halo.Collective: codecs lose nothing that is fed back.
func (p *Pushed) Reserve(halo.Shape) {}

// Settle implements halo.Collective: rows leave with their outbox.
func (p *Pushed) Settle() error { return nil }

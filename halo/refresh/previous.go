package refresh

import (
	"slices"
	"sync"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Previous provides the ghost rows, and the gradients of ghosts, of the previous epoch.
// Transfers overlap with a whole epoch, and no rank waits for them (PipeGCN, ICLR'22,
// algorithm 1). The first epoch uses zeros.
//
// Each slot has two transfers with their own memory, used alternately: one sends the rows
// of this epoch while the rows from the other are in use.
type Previous struct {
	halo.TransferSource
	slots     map[slotKey]*[2]*halo.Transfer
	list      []*halo.Transfer
	inTransit transit[*halo.Transfer]
}

// transit lists the transfers in transit that no task uses, in the order of their start.
type transit[T interface {
	comparable
	Arrived() (bool, error)
}] struct {
	mu   sync.Mutex
	list []T
}

func (l *transit[T]) add(t T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, t)
}

// remove removes a transfer that a task is about to end.
func (l *transit[T]) remove(t T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := slices.Index(l.list, t); k >= 0 {
		l.list = slices.Delete(l.list, k, k+1)
	}
}

// progress advances the transfers. It does not wait.
func (l *transit[T]) progress() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.list {
		if _, err := t.Arrived(); err != nil {
			return err
		}
	}
	return nil
}

var _ halo.Collective = (*Previous)(nil)

// slotKey is a slot of every epoch.
type slotKey struct {
	layer    int
	backward bool
}

// NewPrevious makes the transfers of all layers. seed is the seed of codecs with random
// rounding. The other arguments are those of halo.NewExchange; each transfer gets a fork of
// ops. Collective.
func NewPrevious(shapes []halo.Shape, seed uint64, c comm.Comm, p *halo.Plan, rows codec.Codec, team halo.Parallel,
	ops kernels.Ops, a *mapped.Arena) *Previous {
	s, lost := &Previous{slots: map[slotKey]*[2]*halo.Transfer{}}, halo.Feedbacks{}
	s.TransferSource.Choice = s
	add := func(at slotKey, width int) {
		pair := &[2]*halo.Transfer{}
		for k := range pair {
			e := halo.NewExchange(c, p, rows, team, ops.Fork(), a, width)
			e.Separate(halo.Tag(len(s.list)))
			e.FeedBack(lost)
			pair[k] = halo.NewTransfer(e, width, seed)
			s.list = append(s.list, pair[k])
		}
		s.slots[at] = pair
	}
	for _, l := range shapes {
		add(slotKey{l.Layer, false}, l.Width)
		if l.Backward {
			add(slotKey{l.Layer, true}, l.Width)
		}
	}
	s.inTransit.list = make([]*halo.Transfer, 0, len(s.list))
	return s
}

// SendTransfer implements halo.Choice.
func (s *Previous) SendTransfer(at halo.Slot) *halo.Transfer {
	return s.slots[slotKey{at.Layer, at.Backward}][at.Epoch%2]
}

// RecvTransfer implements halo.Choice.
func (s *Previous) RecvTransfer(at halo.Slot) *halo.Transfer {
	return s.slots[slotKey{at.Layer, at.Backward}][(at.Epoch+1)%2]
}

// Offer implements halo.Source.
func (s *Previous) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	if err := s.TransferSource.Offer(at, rows, lo, hi); err != nil {
		return err
	}
	s.inTransit.add(s.SendTransfer(at))
	return nil
}

// Arrived implements halo.Source.
func (s *Previous) Arrived(at halo.Slot) (bool, error) {
	t := s.RecvTransfer(at)
	if !t.UnderWay() {
		return true, nil
	}
	arrived, err := t.Arrived()
	if arrived {
		s.inTransit.remove(t)
	}
	return arrived, err
}

// Progress implements halo.Collective.
func (s *Previous) Progress() error { return s.inTransit.progress() }

// Await implements halo.Collective.
func (s *Previous) Await(at halo.Slot) error {
	t := s.RecvTransfer(at)
	if !t.UnderWay() {
		return nil
	}
	s.inTransit.remove(t)
	return t.Await()
}

// Settle implements halo.Collective.
func (s *Previous) Settle() error {
	for _, t := range s.inTransit.list {
		if err := t.Drop(); err != nil {
			return err
		}
	}
	s.inTransit.list = s.inTransit.list[:0]
	for _, t := range s.list {
		if err := t.Forget(); err != nil {
			return err
		}
	}
	return nil
}

// TakeStats implements halo.Source.
func (s *Previous) TakeStats() halo.Stats {
	var all halo.Stats
	for _, t := range s.list {
		all.Add(t.TakeStats())
	}
	return all
}

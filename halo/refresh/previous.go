package refresh

import (
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/kernels"
)

// Previous lets every epoch use the ghosts, and the gradients of ghosts, of the
// epoch before, so that transfers have a whole epoch's time and nobody waits for
// them (PipeGCN, ICLR'22, algorithm 1). The first epoch has zeros instead.
//
// Each slot has two transfers with memory of their own, which take turns: the
// rows of this epoch travel with one, while those that the other has brought are
// in use.
type Previous struct {
	slots map[place]*[2]*halo.Exchange
	list  []*halo.Exchange
	// The transfers under way that no task uses, in the order in which they began.
	travelling []*halo.Exchange
	// For Pack: what has left, by transfer in the order of list, none unless they
	// record, and what codecs had lost when Pack was last called.
	sent []*halo.Recorder
	lost []halo.Lost
}

var _ halo.Source = (*Previous)(nil)

// place is a slot of every epoch.
type place struct {
	layer    int
	backward bool
}

// Shape is a layer that gathers.
type Shape struct {
	Layer, Width int
	Backward     bool // gradients of ghosts go home, too
}

// The tags of transfers, in turn: layers are many more than tags.
const firstTag, tags = 64, 16 << 10

// NewPrevious makes the transfers of all layers. The arguments after shapes are
// those of halo.NewExchange; each transfer gets a fork of ops. Collective.
func NewPrevious(shapes []Shape, c comm.Comm, p *halo.Plan, rows codec.Codec, team halo.Parallel, ops kernels.Ops, a *mapped.Arena) *Previous {
	s, lost := &Previous{slots: map[place]*[2]*halo.Exchange{}}, halo.Feedbacks{}
	add := func(at place, width int) {
		pair := &[2]*halo.Exchange{}
		for k := range pair {
			e := halo.NewExchange(c, p, rows, team, ops.Fork(), a, width)
			e.Separate(firstTag + len(s.list)%tags)
			e.FeedBack(lost)
			pair[k], s.list = e, append(s.list, e)
		}
		s.slots[at] = pair
	}
	for _, l := range shapes {
		add(place{l.Layer, false}, l.Width)
		if l.Backward {
			add(place{l.Layer, true}, l.Width)
		}
	}
	s.travelling = make([]*halo.Exchange, 0, len(s.list))
	return s
}

// Leaving implements halo.Source.
func (s *Previous) Leaving(at halo.Slot) *halo.Exchange {
	return s.slots[place{at.Layer, at.Backward}][at.Epoch%2]
}

// Arriving implements halo.Source.
func (s *Previous) Arriving(at halo.Slot) *halo.Exchange {
	return s.slots[place{at.Layer, at.Backward}][(at.Epoch+1)%2]
}

// Begun implements halo.Source.
func (s *Previous) Begun(at halo.Slot) { s.travelling = append(s.travelling, s.Leaving(at)) }

// Arrived implements halo.Source.
func (s *Previous) Arrived(at halo.Slot) (bool, error) {
	e := s.Arriving(at)
	if !e.UnderWay() {
		return true, nil
	}
	arrived, err := e.Arrived()
	if arrived {
		s.takeOut(e)
	}
	return arrived, err
}

// Progress implements halo.Source.
func (s *Previous) Progress() error {
	for _, e := range s.travelling {
		if _, err := e.Arrived(); err != nil {
			return err
		}
	}
	return nil
}

// Await implements halo.Source.
func (s *Previous) Await(at halo.Slot) error {
	e := s.Arriving(at)
	if !e.UnderWay() {
		return nil
	}
	s.takeOut(e)
	return e.Await()
}

// takeOut leaves a transfer to the task that ends it.
func (s *Previous) takeOut(e *halo.Exchange) {
	for k, other := range s.travelling {
		if other == e {
			s.travelling = append(s.travelling[:k], s.travelling[k+1:]...)
			return
		}
	}
}

// Settle implements halo.Source.
func (s *Previous) Settle() error {
	for _, e := range s.travelling {
		if err := e.Drop(); err != nil {
			return err
		}
	}
	s.travelling = s.travelling[:0]
	return nil
}

// TakeStats implements halo.Source.
func (s *Previous) TakeStats() halo.Stats {
	var all halo.Stats
	for _, e := range s.list {
		all.Add(e.TakeStats())
	}
	return all
}

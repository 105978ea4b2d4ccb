package ranks

import (
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
)

// route is what a pass goes through: which edges it gathers along, where the
// rows of ghosts come from, and the tasks of the way forward and back.
type route struct {
	graph  *graphwork.Work // nil in a network without propagation
	source halo.Source     // of ghosts; nil where none are gathered

	there, back *schedule.Walk
	pieces      []int // bounds of ghosts whose gradients are one task
	sumPieces   []int // the same of the sums for other ranks
}

// slot is that of a task's rows.
func slot(t schedule.Task) halo.Slot {
	back := t.Stage == schedule.SpreadBack || t.Stage == schedule.ReceiveBack || t.Stage == schedule.GhostGrads || t.Stage == schedule.AddSums
	return halo.Slot{Epoch: t.Epoch, Layer: t.Layer, Backward: back}
}

// refresh makes the route of training where it differs from that of evaluations,
// which is exact. o is what that has been made with.
func (s *lockstep) refresh(r *run, o graphwork.Options, a *mapped.Arena) {
	if s.exchange == nil || r.cfg.Exact() {
		return
	}
	way := *s.exact
	switch r.cfg.Refresh {
	case config.Previous:
		way.source = refresh.NewPrevious(s.shapes(), r.peers, s.graph.Plan, r.codecs[0], r.packers, s.adder, a)
	case config.Never:
		o.Alone, o.Forward = true, false
		way.graph, way.source = graphwork.New(r.net, s.intervals[0].net.Layers, r.shard, o, s.adder, a), nil
		s.build(&way, r.cfg.Mode == "nopipe")
	}
	s.route, s.training = &way, &way
}

// shapes are the layers that gather.
func (s *lockstep) shapes() []refresh.Shape {
	var list []refresh.Shape
	for l, layer := range s.intervals[0].net.Layers {
		if s.gathers(l) {
			list = append(list, refresh.Shape{Layer: l, Width: s.graph.Layer(l).Width, Backward: layer.GathersBack()})
		}
	}
	return list
}

// transfer runs a task of rows that go to other ranks or come from there.
func (s *lockstep) transfer(worker int, t schedule.Task) error {
	l, at := s.graph.Layer(t.Layer), slot(t)
	key := halo.Key{Seed: s.seed, Epoch: t.Epoch, Layer: t.Layer, Apart: !s.pass.Train}
	switch t.Stage {
	case schedule.Sum:
		from, to := s.sumPieces[t.Interval], s.sumPieces[t.Interval+1]
		s.graph.Sums(s.crew.teams[worker], l, from, s.source.Leaving(at).Sums(l.Width).Part(from, to))
	case schedule.Spread:
		l.Enter(s.pass)
		err := s.source.Leaving(at).BeginForward(l.Rows, key)
		s.tuning.sample(place{t.Layer, false})
		return err
	case schedule.Receive:
		in := s.source.Arriving(at)
		ghosts := in.Ghosts(l.Width)
		if in.UnderWay() {
			var err error
			if ghosts, err = in.EndForward(); err != nil {
				return err
			}
		}
		s.graph.TakeGhosts(s.crew.teams[worker], l, ghosts)
	case schedule.GhostGrads:
		from, to := s.pieces[t.Interval], s.pieces[t.Interval+1]
		s.graph.GhostGrads(s.crew.teams[worker], l, from, s.source.Leaving(at).Ghosts(l.Width).Part(from, to))
	case schedule.SpreadBack:
		err := s.source.Leaving(at).BeginBackward(l.Width, key)
		s.tuning.sample(place{t.Layer, true})
		return err
	case schedule.ReceiveBack:
		if in := s.source.Arriving(at); in.UnderWay() {
			return in.EndBackward(s.graph.Backward(l))
		}
	}
	return nil
}

// addSums adds to an interval's gradients what those of sums give them.
func (s *lockstep) addSums(i *interval, t schedule.Task) {
	l := s.graph.Layer(t.Layer)
	s.graph.AddSums(l, i.at(t.Layer), s.source.Arriving(slot(t)).Sums(l.Width))
}

// settle ends the transfers that outlive their epoch. Collective over the graph
// ranks.
func (s *lockstep) settle() error {
	if s.training.source == nil {
		return nil
	}
	return s.training.source.Settle()
}

package engine

import (
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
)

// In the synchronous modes rows go to other ranks and come from them here, and
// nowhere else: lockstep calls transfer for the tasks that move rows or write
// what is going to be moved, and asks the route's source of ghosts for the
// events between.

// route is what a pass goes through: which edges it gathers along, where the
// rows of ghosts come from, and its tasks forward and backward.
type route struct {
	graph  *graphwork.Work // nil in a network without propagation
	ghosts halo.Source     // nil where none are gathered

	forwardWalk, backwardWalk, epochWalk *walk

	pieces    []int // bounds of ghosts whose gradients are one task
	sumPieces []int // the same of the sums for other ranks
}

// connect makes the routes of evaluations and of training. reduction may be nil;
// all memory comes from a.
func (s *lockstep) connect(e *Engine, reduction *halo.Reduction, a *mapped.Arena) {
	o := graphwork.Options{Half: e.Config.Gather == "bf16", Reduction: reduction}
	o.Forward = s.store.Memory() == model.Forward || e.Config.Refresh == config.Never && e.Peers.Size() > 1
	s.prepare(e, o, e.Codecs[0], a)
	s.refresh(e, o, a)
}

// refresh makes the route of training where it differs from that of evaluations,
// which is exact. o is what that has been made with.
func (s *lockstep) refresh(e *Engine, o graphwork.Options, a *mapped.Arena) {
	if s.exchange == nil || e.Config.Exact() {
		return
	}
	way := *s.exact
	switch e.Config.Refresh {
	case config.Previous:
		way.ghosts = refresh.NewPrevious(s.shapes(), e.Peers, way.graph.Plan, e.Codecs[0], e.packers, s.adder, a)
	case config.Never:
		o.Alone, o.Forward = true, false
		way.graph, way.ghosts = graphwork.New(s.store, e.Shard, o, s.adder, a), nil
		a.Fill(func() { s.build(&way, e.Config.Mode == "nopipe") })
	}
	s.route, s.training = &way, &way
}

// reserve makes the room for what codecs lose of the rows of training.
func (s *lockstep) reserve() {
	for _, l := range s.shapes() {
		if s.training.ghosts != nil {
			s.training.ghosts.Leaving(halo.Slot{Layer: l.Layer}).Reserve(l.Layer, l.Width, l.Backward)
		}
	}
}

// shapes are the layers that gather.
func (s *lockstep) shapes() []refresh.Shape {
	var list []refresh.Shape
	for l := range s.store.Network.Layers {
		if g := s.store.Network.Gathering(l); g.Width > 0 {
			list = append(list, refresh.Shape{Layer: l, Width: g.Width, Backward: g.Backward})
		}
	}
	return list
}

// slot is that of a task's rows.
func slot(t schedule.Task) halo.Slot {
	backward := false
	switch t.Stage {
	case schedule.GhostGrads, schedule.SendBackward, schedule.ReceiveBackward, schedule.AddSums:
		backward = true
	}
	return halo.Slot{Epoch: t.Epoch, Layer: t.Layer, Backward: backward}
}

// transfer runs a task of a layer between this rank and the others. Send and
// Receive, forward and backward, are collective over the graph ranks.
func (s *lockstep) transfer(worker kernels.Ops, l *graphwork.Layer, t schedule.Task) error {
	at, key := slot(t), halo.Key{Seed: s.seed, Epoch: t.Epoch, Layer: t.Layer, Apart: !s.pass.Train}
	switch t.Stage {
	case schedule.Sum:
		from, to := s.sumPieces[t.Interval], s.sumPieces[t.Interval+1]
		s.graph.Sums(worker, l, from, s.ghosts.Leaving(at).Sums(l.Width).Part(from, to))
	case schedule.Send:
		s.graph.Enter(l, s.pass)
		return s.ghosts.Leaving(at).BeginForward(l.Rows, key)
	case schedule.Receive:
		return s.receive(worker, l, at)
	case schedule.GhostGrads:
		from, to := s.pieces[t.Interval], s.pieces[t.Interval+1]
		s.graph.GhostGrads(worker, l, from, s.ghosts.Leaving(at).Ghosts(l.Width).Part(from, to))
	case schedule.SendBackward:
		return s.ghosts.Leaving(at).BeginBackward(l.Width, key)
	case schedule.ReceiveBackward:
		if in := s.ghosts.Arriving(at); in.UnderWay() {
			return in.EndBackward(s.graph.Backward(l))
		}
	}
	return nil
}

// receive puts the rows of ghosts into their place: zeros where none have been
// sent yet.
func (s *lockstep) receive(worker kernels.Ops, l *graphwork.Layer, at halo.Slot) error {
	in := s.ghosts.Arriving(at)
	rows := in.Ghosts(l.Width)
	if in.UnderWay() {
		var err error
		if rows, err = in.EndForward(); err != nil {
			return err
		}
	}
	s.graph.TakeGhosts(worker, l, rows)
	return nil
}

// addSums adds to an interval's gradients what those of sums, which have come
// back, give them.
func (s *lockstep) addSums(i *interval, t schedule.Task) {
	l := s.graph.Layer(t.Layer)
	s.graph.AddSums(l, i.at(t.Layer), s.ghosts.Arriving(slot(t)).Sums(l.Width))
}

// settle ends the transfers that outlive their epoch. Collective over the graph
// ranks.
func (s *lockstep) settle() error {
	if s.training.ghosts == nil {
		return nil
	}
	return s.training.ghosts.Settle()
}

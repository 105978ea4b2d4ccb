package engine

import (
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
)

// All transfer of rows in the synchronous modes is in this file. lockstep calls transfer for
// tasks that move rows or write rows to send, and queries the route's source of ghosts for the
// events between.

// route is the configuration of a pass: the edges it gathers along, the source of ghost rows,
// and its forward and backward tasks.
type route struct {
	graph          *graphwork.Work // nil if no layer gathers
	ghosts         halo.Collective // nil if no rows are exchanged
	keepsGradients bool            // gradients of ghosts are not returned
	localGhosts    localGhosts

	forwardWalk, backwardWalk, epochWalk *walk

	pieces    []int // bounds of the pieces of ghosts; the gradients of a piece are one task
	sumPieces []int // bounds of the pieces of sums for other ranks
}

// aggregates reports whether any layer gathers along the route.
func (r *route) aggregates() bool { return r.graph != nil }

// exchanges reports whether ranks exchange rows along the route.
func (r *route) exchanges() bool { return r.ghosts != nil }

// connectRoutes makes the routes of evaluations and of training. reduction may be nil;
// all memory comes from a.
func (s *lockstep) connectRoutes(e *Engine, reduction *halo.Reduction, a *mapped.Arena) {
	if e.Config.Mode == config.Free && s.store.Memory() != model.Forward {
		s.connectFree(e, a)
		return
	}
	o := graphwork.Options{Half: e.Config.Gather == "bf16", Reduction: reduction, Targets: true, Codes: e.codes}
	evaluates := e.Config.Alone() && e.Peers.Size() > 1 && e.Config.MeasureStaleness == 0 && e.Config.ServerCorrection == 0
	o.Forward = s.store.Memory() == model.Forward || evaluates
	s.prepare(e, o, e.Codecs[0], a)
	s.prepareMask(e, a)
	s.connectTraining(e, o, a)
	if s.store.Memory() != model.Forward {
		a.Fill(func() { e.outline = s.outline(s.training, e.Config.Mode == "nopipe") })
	}
	s.prepareMeasurement(e, a)
}

// connectTraining makes the route of training if it differs from the exact route of
// evaluations. o has the options of that route.
func (s *lockstep) connectTraining(e *Engine, o graphwork.Options, a *mapped.Arena) {
	if !s.exact.exchanges() || e.Config.Exact() || e.Config.Mode == config.Free || len(s.shapes(s.exact)) == 0 {
		return
	}
	newRoute, policy := *s.exact, e.Config.Ghosts()
	newRoute.keepsGradients = !e.Config.Returns()
	ho := halo.HistoryOptions{
		Shapes: s.shapes(&newRoute), Seed: e.Config.Seed, Comm: e.Peers, Plan: newRoute.graph.Plan, Codec: e.Codecs[0],
		Team: e.packers, Ops: s.adder, Arena: a,
	}
	switch {
	case policy.NoGhosts() || policy.Alternates():
		o.Alone, o.Forward, o.Reduction = true, false, nil
		newRoute.graph, newRoute.ghosts = graphwork.New(s.store, e.Shard, o, s.adder, a), nil
	case policy.Exact(): // evaluations have the same exchange
	default:
		newRoute.ghosts = e.predicted(policy.NewSource(ho), ho, &newRoute, s.idleGhosts(newRoute.graph.MaxWidth()))
	}
	if !newRoute.exchanges() || newRoute.keepsGradients {
		a.Fill(func() { s.build(&newRoute, e.Config.Mode == "nopipe") })
	}
	s.route, s.training, s.inexactRoute = &newRoute, &newRoute, &newRoute
	s.alternates = policy.Alternates()
}

// returnsGradients reports whether gradients of ghosts return to their owners along the route.
func (r *route) returnsGradients() bool { return r.exchanges() && !r.keepsGradients }

// awaitsGradients reports whether gradients of a layer's rows arrive from other ranks.
func (r *route) awaitsGradients(l int) bool {
	return r.returnsGradients() && (!r.localGhosts.covers(l) || r.localGhosts.receives(l))
}

// shapes returns the layers that gather along a route.
func (s *lockstep) shapes(r *route) []halo.Shape {
	var list []halo.Shape
	for _, l := range r.graph.Shapes() {
		l.Backward = l.Backward && !r.keepsGradients
		if !r.localGhosts.covers(l.Layer) {
			list = append(list, l)
		}
	}
	return list
}

// reserveResiduals allocates the residuals of lossy codecs in training. With phases, exact
// epochs train too.
func (s *lockstep) reserveResiduals() {
	training := s.training
	if s.alternates {
		training = s.exact
	}
	if !training.exchanges() {
		return
	}
	for _, l := range training.graph.Shapes() {
		l.Backward = l.Backward && !training.keepsGradients
		if !training.localGhosts.covers(l.Layer) || training.localGhosts.receives(l.Layer) {
			training.ghosts.Reserve(l)
		}
	}
}

// slotOf returns the slot of a layer in the current pass.
func (s *lockstep) slotOf(layer int, backward bool) halo.Slot {
	return halo.Slot{Epoch: s.pass.Epoch, Layer: layer, Backward: backward, OutsideTraining: !s.pass.Train ||
		s.route != s.training, Ahead: s.refreshOnly}
}

func (s *lockstep) slot(t schedule.Task) halo.Slot {
	backward := false
	switch t.Stage {
	case schedule.GhostGrads, schedule.SendBackward, schedule.ReceiveBackward, schedule.AddSums:
		backward = true
	}
	return s.slotOf(t.Layer, backward)
}

// transfer runs a task of a layer between this rank and the others. Send and
// Receive, forward and backward, are collective over the graph ranks.
func (s *lockstep) transfer(worker kernels.Ops, l *graphwork.Layer, t schedule.Task) error {
	slot := s.slot(t)
	switch t.Stage {
	case schedule.Sum:
		if sums := s.ghosts.SendBuffer(slot); !sums.IsNil() {
			from, to := s.sumPieces[t.Interval], s.sumPieces[t.Interval+1]
			l.Sums(worker, from, sums.Part(from, to))
		}
	case schedule.Send:
		if s.localGhosts.isMixed(t.Layer) {
			return s.ghosts.Offer(slot, l.Rows, 0, l.Rows.Rows)
		}
		return s.ghosts.Offer(slot, s.store.Sent(t.Layer, s.pass), 0, l.Rows.Rows)
	case schedule.Receive:
		return s.receive(worker, l, slot)
	case schedule.EmitGhosts:
		s.localGhosts.emit(worker, s, l, t)
	case schedule.EmitGhostsBackward:
		if s.localGhosts.isMixed(t.Layer) {
			s.localGhosts.grads(worker, s, l, t)
		}
		s.localGhosts.emitBackward(worker, t, s.pass)
	case schedule.PlaceGhosts:
		return s.localGhosts.mixed.place(worker, s, l, t.Layer, t.Interval)
	case schedule.GhostGrads:
		switch {
		case s.localGhosts.isMixed(t.Layer):
			s.localGhosts.mixed.grads(worker, s, l, t.Interval)
			return nil
		case s.localGhosts.covers(t.Layer):
			s.localGhosts.grads(worker, s, l, t)
			return nil
		}
		if grads := s.ghosts.SendBuffer(slot); !grads.IsNil() {
			from, to := s.pieces[t.Interval], s.pieces[t.Interval+1]
			l.GhostGrads(worker, from, grads.Part(from, to))
		}
	case schedule.SendBackward:
		if s.localGhosts.isMixed(t.Layer) {
			return s.localGhosts.mixed.send(worker, s, l, slot)
		}
		grads := s.ghosts.SendBuffer(slot)
		return s.ghosts.Offer(slot, grads, 0, grads.Rows)
	case schedule.ReceiveBackward:
		return s.ghosts.Add(worker, slot, l.Backward(), 0, l.Rows.Rows)
	}
	return nil
}

// receive stores the ghost rows: zeros for rows that never arrived.
func (s *lockstep) receive(worker kernels.Ops, l *graphwork.Layer, slot halo.Slot) error {
	if _, _, err := s.ghosts.Take(slot); err != nil {
		return err
	}
	if s.localGhosts.isMixed(slot.Layer) {
		return nil // PlaceGhosts reads them
	}
	view, err := s.ghosts.View(slot)
	if err == nil {
		err = s.stale.recordRows(worker, slot, view, s.ghosts)
		l.TakeGhosts(worker, s.masked(worker, slot.Layer, view.Rows))
	}
	return err
}

// addSums adds the returned gradients of sums to an interval's gradients.
func (s *lockstep) addSums(i *interval, t schedule.Task) error {
	view, err := s.ghosts.View(s.slot(t))
	if err == nil {
		s.graph.Layer(t.Layer).AddSums(i.graphInterval(t.Layer), view.Rows)
	}
	return err
}

// settle completes the transfers that outlast their epoch. Collective over the graph ranks.
func (s *lockstep) settle() error {
	if !s.training.exchanges() {
		return nil
	}
	return s.training.ghosts.Settle()
}

package engine

import (
	"slices"

	"siafu/ranks/schedule"
)

// passes builds the dependencies of the two passes along a route of a lockstep.
type passes struct {
	s       *lockstep
	r       *route
	barrier bool // nopipe: one stage at a time, all intervals
	g       *schedule.Graph
}

// build makes the walks of a route.
func (s *lockstep) build(r *route, barrier bool) {
	forward := passes{s, r, barrier, &schedule.Graph{}}
	forward.forward()
	backward := passes{s, r, barrier, &schedule.Graph{}}
	backward.backward()
	r.forwardWalk, r.backwardWalk = schedule.NewWalk(forward.g), schedule.NewWalk(backward.g)
}

// each adds a task of every interval; that of interval i comes after the i-th
// of each list, or after the only one.
func (p *passes) each(stage schedule.Stage, layer int, after ...[]schedule.ID) []schedule.ID {
	ids := make([]schedule.ID, len(p.s.intervals))
	for i := range ids {
		ids[i] = p.g.Task(schedule.Task{Stage: stage, Layer: layer, Interval: i}, pick(after, i)...)
	}
	return p.stage(ids)
}

// whole adds a task of all intervals together.
func (p *passes) whole(stage schedule.Stage, layer int, after ...[]schedule.ID) []schedule.ID {
	return []schedule.ID{p.g.Task(schedule.Task{Stage: stage, Layer: layer, Interval: schedule.Whole}, all(after)...)}
}

// leave adds the departure of messages to all ranks, and the event that the
// messages of all ranks have come.
func (p *passes) leave(leave, arrive schedule.Stage, layer int, after []schedule.ID) []schedule.ID {
	left := p.whole(leave, layer, after)
	return []schedule.ID{p.g.Event(schedule.Task{Stage: arrive, Layer: layer, Interval: schedule.Whole}, left...)}
}

// join is one place after all.
func (p *passes) join(ids []schedule.ID) []schedule.ID {
	if len(ids) == 0 {
		return nil
	}
	return []schedule.ID{p.g.Join(ids...)}
}

// stage ends a stage: without overlap, nothing goes on before all of it is done.
func (p *passes) stage(ids []schedule.ID) []schedule.ID {
	if p.barrier {
		return p.join(ids)
	}
	return ids
}

func pick(lists [][]schedule.ID, i int) []schedule.ID {
	var ids []schedule.ID
	for _, l := range lists {
		switch {
		case len(l) == 1:
			ids = append(ids, l[0])
		case len(l) > 1:
			ids = append(ids, l[i])
		}
	}
	return ids
}

func all(lists [][]schedule.ID) []schedule.ID {
	var ids []schedule.ID
	for _, l := range lists {
		ids = append(ids, l...)
	}
	return ids
}

// forward is a pass from the features to the loss.
func (p *passes) forward() {
	s := p.s
	layers := s.intervals[0].net.Layers
	var done []schedule.ID // the layer before
	for l := range layers {
		if l > 0 || !s.intervals[0].net.InputCached() {
			done = p.each(schedule.Emit, l, done)
		}
		if s.gathers(l) {
			done = p.gather(l, p.join(done))
		}
		done = p.each(schedule.Apply, l, done)
	}
	if s.endsInLoss {
		p.each(schedule.Loss, len(layers)-1, done)
	}
}

// gather is layer l's, once all rows are there. Sums for other ranks come first,
// so that they are on their way while the rest is computed.
func (p *passes) gather(l int, rows []schedule.ID) []schedule.ID {
	var ghosts []schedule.ID
	if p.r.ghosts != nil {
		sums := p.pieces(schedule.Sum, l, p.r.sumPieces, rows)
		ghosts = p.whole(schedule.Receive, l, p.leave(schedule.Send, schedule.Receive, l, sums))
	}
	if p.barrier && ghosts != nil {
		rows = ghosts
	}
	return p.each(schedule.GatherGhosts, l, p.each(schedule.GatherOwn, l, rows), ghosts)
}

// backward is a pass from the gradient of the logits to the gradients of the
// weights.
func (p *passes) backward() {
	s := p.s
	layers := s.intervals[0].net.Layers
	var done, updated []schedule.ID
	for l := len(layers) - 1; l >= 0; l-- {
		done = p.each(schedule.ApplyBackward, l, done)
		if s.gathers(l) && layers[l].GathersBackward() {
			done = p.gatherBackward(l, p.join(done))
		}
		done = p.each(schedule.EmitBackward, l, done)
		updated = p.whole(schedule.Update, l, p.join(done), updated)
	}
}

// gatherBackward is layer l's, once all gradients are there. Those of ghosts come
// first, so that they are on their way while the rest is computed; what returns
// is added when all intervals have their own sums.
func (p *passes) gatherBackward(l int, grads []schedule.ID) []schedule.ID {
	if p.r.ghosts == nil {
		return p.each(schedule.GatherBackward, l, grads)
	}
	ghosts := p.pieces(schedule.GhostGrads, l, p.r.pieces, grads)
	var own []schedule.ID
	if p.barrier { // nothing while they travel
		own = p.join(p.each(schedule.GatherBackward, l, ghosts))
		ghosts = own
	}
	came := p.leave(schedule.SendBackward, schedule.ReceiveBackward, l, ghosts)
	if !p.barrier {
		own = p.join(p.each(schedule.GatherBackward, l, grads))
	}
	returned := p.whole(schedule.ReceiveBackward, l, own, came)
	if len(p.r.sumPieces) > 1 {
		returned = p.each(schedule.AddSums, l, returned)
	}
	return returned
}

// pieces adds a task for each piece of what goes to other ranks; it returns the
// place after all of them.
func (p *passes) pieces(stage schedule.Stage, l int, bounds []int, after []schedule.ID) []schedule.ID {
	ids := slices.Clone(after)
	for k := range len(bounds) - 1 {
		ids = append(ids, p.g.Task(schedule.Task{Stage: stage, Layer: l, Interval: k}, after...))
	}
	return p.join(ids)
}

// gathers tells whether layer l gathers in every pass.
func (s *lockstep) gathers(l int) bool { return s.exact.graph != nil && s.exact.graph.Layer(l) != nil }

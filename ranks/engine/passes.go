package engine

import (
	"slices"

	"siafu/kernels/model"
	"siafu/ranks/schedule"
)

// passes builds the dependencies of a pass, and what its tensor tasks do.
type passes struct {
	Outline
	do    func(layer int, stage model.Stage) []model.Do
	g     *schedule.Graph
	tasks cuts
	open  *[]model.Do   // what the last task does, where that is a tensor task
	known []schedule.ID // the last places of ghosts whose features are known
}

// newPasses begins to build a pass.
func newPasses(o Outline, do func(layer int, stage model.Stage) []model.Do) *passes {
	return &passes{Outline: o, do: do, g: &schedule.Graph{}, tasks: make(cuts, len(o.Layers))}
}

// build makes the walks of a route.
func (s *lockstep) build(r *route, barrier bool) {
	o := s.outline(r, barrier)
	walkOf := func(way func(p *passes)) *walk {
		p := newPasses(o, s.store.Do)
		way(p)
		p.tasks.thin(s.store, s.tensor.Wishes())
		return &walk{schedule.NewWalk(p.g), p.tasks}
	}
	r.forwardWalk = walkOf(func(p *passes) { p.forward() })
	r.backwardWalk = walkOf(func(p *passes) { p.backward(nil) })
	r.epochWalk = walkOf(func(p *passes) { p.backward(p.forward()) })
}

// tensor adds a tensor task of every interval, or a stage to the one before, where
// nothing lies between the two.
func (p *passes) tensor(stage schedule.Stage, layer int, after ...[]schedule.ID) []schedule.ID {
	list := p.do(layer, tensorStages[stage])
	if p.Fused && p.open != nil {
		*p.open = append(*p.open, list...)
		return after[0]
	}
	p.tasks[layer][stage].do = list
	ids := p.each(stage, layer, after...)
	p.open = &p.tasks[layer][stage].do
	return ids
}

// each adds a task of every interval; that of interval i comes after the i-th
// of each list, or after the only one.
func (p *passes) each(stage schedule.Stage, layer int, after ...[]schedule.ID) []schedule.ID {
	p.open = nil
	ids := make([]schedule.ID, p.Intervals)
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

// stage ends a stage: without overlap, nothing continues before all of it is done.
func (p *passes) stage(ids []schedule.ID) []schedule.ID {
	if p.Barrier {
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

// forward is the way from the features to the loss. It returns the last places.
func (p *passes) forward() (done []schedule.ID) {
	last := len(p.Layers) - 1
	for l := range last + 1 {
		if l > 0 || !p.InputKept {
			done = p.tensor(schedule.Emit, l, done)
		}
		if p.Layers[l].Gathers {
			done = p.gather(l, p.join(done))
		}
		done = p.total(schedule.Total, l, done)
		done = p.tensor(schedule.Apply, l, done)
	}
	switch {
	case p.Pairs:
		p.open = nil
		done = p.whole(schedule.Loss, last, p.join(done))
	case p.Loss:
		done = p.tensor(schedule.Loss, last, done)
	}
	return done
}

// gather is layer l's, once all rows are there. Sums for other ranks come first,
// so that they are on their way while the rest is computed.
func (p *passes) gather(l int, rows []schedule.ID) []schedule.ID {
	var ghosts []schedule.ID
	switch {
	case p.knows(l):
		var after []schedule.ID
		if p.Barrier {
			after = rows
		}
		ghosts = p.pieces(schedule.EmitGhosts, l, p.Known, after)
	case p.Ghosts:
		sums := p.pieces(schedule.Sum, l, p.Sums, rows)
		ghosts = p.whole(schedule.Receive, l, p.leave(schedule.Send, schedule.Receive, l, sums))
	}
	if p.Barrier && ghosts != nil {
		rows = ghosts
	}
	return p.each(schedule.GatherGhosts, l, p.each(schedule.GatherOwn, l, rows), ghosts)
}

// total adds up a layer's sums over the vertices of all ranks, where it has any.
func (p *passes) total(stage schedule.Stage, l int, done []schedule.ID) []schedule.ID {
	if !p.Layers[l].Sums {
		return done
	}
	p.open = nil
	return p.whole(stage, l, p.join(done))
}

// backward is the way from the gradient of the logits to the gradients of the
// weights.
func (p *passes) backward(done []schedule.ID) {
	var updated []schedule.ID
	for l := len(p.Layers) - 1; l >= 0; l-- {
		done = p.tensor(schedule.ApplyBackward, l, done)
		if p.Layers[l].GathersBackward {
			done = p.gatherBackward(l, p.join(done))
		}
		done = p.total(schedule.TotalBackward, l, done)
		done = p.tensor(schedule.EmitBackward, l, done)
		updated = p.whole(schedule.Update, l, p.join(slices.Concat(done, p.known)), updated)
	}
}

// knows reports whether what ghosts emit in layer l is made here.
func (p *passes) knows(l int) bool { return l == 0 && p.Known > 0 }

// gatherBackward is layer l's, once all gradients are there. Those of ghosts come
// first, so that they are on their way while the rest is computed; what returns
// is added when all intervals have their own sums.
func (p *passes) gatherBackward(l int, grads []schedule.ID) []schedule.ID {
	switch {
	case p.knows(l):
		return p.gatherKnown(l, grads)
	case !p.Returns:
		return p.each(schedule.GatherBackward, l, grads)
	}
	ghosts := p.pieces(schedule.GhostGrads, l, p.Pieces, grads)
	var own []schedule.ID
	if p.Barrier { // nothing while they travel
		own = p.join(p.each(schedule.GatherBackward, l, ghosts))
		ghosts = own
	}
	came := p.leave(schedule.SendBackward, schedule.ReceiveBackward, l, ghosts)
	if !p.Barrier {
		own = p.join(p.each(schedule.GatherBackward, l, grads))
	}
	returned := p.whole(schedule.ReceiveBackward, l, own, came)
	if p.Sums > 0 {
		returned = p.each(schedule.AddSums, l, returned)
	}
	return returned
}

// gatherKnown is gatherBackward where the gradients of ghosts stay, and meet their features here.
func (p *passes) gatherKnown(l int, grads []schedule.ID) []schedule.ID {
	p.open = nil
	for k := range p.Known {
		at := schedule.Task{Stage: schedule.GhostGrads, Layer: l, Interval: k}
		got := p.g.Task(at, grads...)
		at.Stage = schedule.EmitGhostsBackward
		p.known = append(p.known, p.g.Task(at, got))
	}
	if p.Barrier {
		grads = p.join(p.known)
	}
	return p.each(schedule.GatherBackward, l, grads)
}

// pieces adds a task for each of n pieces of what goes to other ranks; it returns the
// place after all of them.
func (p *passes) pieces(stage schedule.Stage, l int, n int, after []schedule.ID) []schedule.ID {
	ids := slices.Clone(after)
	for k := range n {
		ids = append(ids, p.g.Task(schedule.Task{Stage: stage, Layer: l, Interval: k}, after...))
	}
	return p.join(ids)
}

// gathers reports whether layer l gathers in every pass.
func (s *lockstep) gathers(l int) bool { return s.store.Network.Gathers(l) }

package engine

import (
	"slices"

	"siafu/kernels/model"
	"siafu/ranks/schedule"
)

// passBuilder builds the dependencies of a pass, and the work of its tensor tasks.
type passBuilder struct {
	Outline
	do         func(layer int, stage model.Stage) []model.Do
	g          *schedule.Graph
	tasks      tensorWorkTable
	legs       []leg
	openTask   *[]model.Do   // the work of the last task, if that is a tensor task
	localRows  []schedule.ID // tasks that compute the own and ghost rows of the last layer whose ghost rows are computed here
	ghostTasks []schedule.ID // the last tasks of ghosts whose rows are computed here
}

// newPassBuilder begins to build a pass.
func newPassBuilder(o Outline, do func(layer int, stage model.Stage) []model.Do) *passBuilder {
	return &passBuilder{Outline: o, do: do, g: &schedule.Graph{}, tasks: make(tensorWorkTable, len(o.Layers))}
}

// build makes the walks of a route.
func (s *lockstep) build(r *route, barrier bool) {
	o := s.outline(r, barrier)
	walkOf := func(addTasks func(p *passBuilder)) *walk {
		p := newPassBuilder(o, s.store.Do)
		addTasks(p)
		p.tasks.setRecompute(s.store, s.tensor.RequestOptions())
		return &walk{schedule.NewWalk(p.g), p.tasks, p.legs}
	}
	r.forwardWalk = walkOf(func(p *passBuilder) { p.forward() })
	r.backwardWalk = walkOf(func(p *passBuilder) { p.backward(nil) })
	r.epochWalk = walkOf(func(p *passBuilder) { p.backward(p.forward()) })
}

// addTensorTasks adds a tensor task of every interval, or a stage to the previous one if
// nothing is between the two.
func (p *passBuilder) addTensorTasks(stage schedule.Stage, layer int, after ...[]schedule.ID) []schedule.ID {
	list := p.do(layer, tensorStages[stage])
	if p.Fused && p.openTask != nil {
		*p.openTask = append(*p.openTask, list...)
		return after[0]
	}
	p.tasks[layer][stage].do = list
	ids := p.addPerInterval(stage, layer, after...)
	p.openTask = &p.tasks[layer][stage].do
	return ids
}

// addPerInterval adds a task of every interval. The task of interval i depends on the i-th
// element of each list, or on the only element.
func (p *passBuilder) addPerInterval(stage schedule.Stage, layer int, after ...[]schedule.ID) []schedule.ID {
	p.openTask = nil
	p.addLeg(schedule.Task{Stage: stage, Layer: layer}, after)
	ids := make([]schedule.ID, p.Intervals)
	for i := range ids {
		ids[i] = p.g.Task(schedule.Task{Stage: stage, Layer: layer, Interval: i}, dependenciesOf(after, i)...)
	}
	if p.Barrier { // without overlap, no task continues before the stage is complete
		return p.join(ids)
	}
	return ids
}

// addWhole adds a task of all intervals together.
func (p *passBuilder) addWhole(stage schedule.Stage, layer int, after ...[]schedule.ID) []schedule.ID {
	return []schedule.ID{p.g.Task(schedule.Task{Stage: stage, Layer: layer, Interval: schedule.Whole}, slices.Concat(after...)...)}
}

// addExchange adds the sending of messages to all ranks, and the event that the messages of
// all ranks have arrived.
func (p *passBuilder) addExchange(leave, arrive schedule.Stage, layer int, after []schedule.ID) []schedule.ID {
	left := p.addWhole(leave, layer, after)
	return []schedule.ID{p.g.Event(schedule.Task{Stage: arrive, Layer: layer, Interval: schedule.Whole}, left...)}
}

// join returns one task that depends on all.
func (p *passBuilder) join(ids []schedule.ID) []schedule.ID {
	if len(ids) == 0 {
		return nil
	}
	return []schedule.ID{p.g.Join(ids...)}
}

func dependenciesOf(lists [][]schedule.ID, i int) []schedule.ID {
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

// forward adds the forward pass of the section, from the features to the loss if it has all layers. It
// returns its last tasks.
func (p *passBuilder) forward() (done []schedule.ID) {
	last, s := len(p.Layers)-1, p.section()
	for l := s.First; l < s.End; l++ {
		if l > 0 || !p.InputCached {
			done = p.addTensorTasks(schedule.Emit, l, done)
		}
		if p.Layers[l].Gathers {
			done = p.addGather(l, p.join(done))
		}
		done = p.addTotals(schedule.Total, l, done)
		done = p.addTensorTasks(schedule.Apply, l, done)
	}
	switch {
	case p.Pairs:
		p.openTask = nil
		done = p.addWhole(schedule.Loss, last, p.join(done))
	case p.Loss:
		done = p.addTensorTasks(schedule.Loss, last, done)
	}
	return done
}

// addGather adds the gather of layer l, after all rows. Sums for other ranks come first, so
// that they are in transit while the rest is computed.
func (p *passBuilder) addGather(l int, rows []schedule.ID) []schedule.ID {
	var ghosts []schedule.ID
	of, tasks, first := p.ghostRows(l)
	switch {
	case of.computed:
		var after []schedule.ID
		switch {
		case p.Barrier:
			after = rows
		case !first: // gathers the rows of the layer before, which the next gather may overwrite
			after = p.localRows
		}
		var arrived []schedule.ID
		if of.received {
			arrived = p.addWhole(schedule.Receive, l, p.addExchange(schedule.Send, schedule.Receive, l, rows))
		}
		ghosts = p.addPieces(schedule.EmitGhosts, l, tasks, after)
		if of.placed { // rows replace those of the layer before, which all intervals have gathered
			ghosts = p.addPieces(schedule.PlaceGhosts, l, p.Mixed, p.join(slices.Concat(rows, ghosts, arrived)))
		}
		if !first {
			rows = p.join(slices.Concat(rows, ghosts))
		}
		p.localRows = p.join(slices.Concat(rows, ghosts))
	case of.received:
		sums := p.addPieces(schedule.Sum, l, p.Sums, rows)
		ghosts = p.addWhole(schedule.Receive, l, p.addExchange(schedule.Send, schedule.Receive, l, sums))
	}
	if (p.Barrier || p.Late) && len(ghosts) > 0 { // computed ghost rows may be complete before the own rows
		rows = p.join(slices.Concat(rows, ghosts))
	}
	rows = p.addSlices(schedule.LoadSlice, schedule.GatherSlice, l, rows)
	return p.addPerInterval(schedule.GatherGhosts, l, p.addPerInterval(schedule.GatherOwn, l, rows), ghosts)
}

// addSlices adds the gathers of all slices of layer l's columns but the last, and the copies of all. A
// slice is copied when all intervals have gathered the one before.
func (p *passBuilder) addSlices(load, gather schedule.Stage, l int, rows []schedule.ID) []schedule.ID {
	for k := range p.Layers[l].Slices {
		if k > 0 {
			rows = p.join(p.addPerSlice(gather, l, k-1, rows))
		}
		rows = p.join(p.addPerSlice(load, l, k, rows))
	}
	return rows
}

func (p *passBuilder) addPerSlice(stage schedule.Stage, l, slice int, after []schedule.ID) (ids []schedule.ID) {
	p.openTask = nil
	t := schedule.Task{Stage: stage, Layer: l, Slice: slice}
	p.addLeg(t, [][]schedule.ID{after})
	for t.Interval = range p.Intervals {
		ids = append(ids, p.g.Task(t, after...))
	}
	return ids
}

// addTotals adds the task for a layer's sums over the vertices of all ranks, if it has any.
func (p *passBuilder) addTotals(stage schedule.Stage, l int, done []schedule.ID) []schedule.ID {
	if !p.Layers[l].Sums {
		return done
	}
	p.openTask = nil
	return p.addWhole(stage, l, p.join(done))
}

// backward adds the backward pass of the section, from the gradient of the logits to the gradients of
// the weights.
func (p *passBuilder) backward(done []schedule.ID) {
	var updated []schedule.ID
	s := p.section()
	for l := s.End - 1; l >= s.First; l-- {
		done = p.addTensorTasks(schedule.ApplyBackward, l, done)
		if p.Layers[l].GathersBackward {
			done = p.gatherBackward(l, p.join(done))
		}
		done = p.addTotals(schedule.TotalBackward, l, done)
		done = p.addTensorTasks(schedule.EmitBackward, l, done)
		updated = p.addWhole(schedule.Update, l, p.join(slices.Concat(done, p.ghostTasks)), updated)
	}
}

// ghostRows returns the origin of the rows of layer l's ghosts, and the number of tasks that compute them here.
// first is true for the first layer that gathers.
func (p *passBuilder) ghostRows(l int) (of ghostRows, tasks int, first bool) {
	at, local := 0, len(p.GhostTasks)
	for _, o := range p.Layers[:l] {
		if o.Gathers {
			at++
		}
	}
	if at < local {
		tasks = p.GhostTasks[at]
	}
	return newGhostRows(at, local, p.Mixed > 0, p.Ghosts, p.Returns), tasks, at == 0
}

// gatherBackward adds the backward gather of layer l, after all gradients. The gradients of ghosts
// come first, so that they are in transit while the rest is computed. Returned gradients are added
// when all intervals have their own sums.
func (p *passBuilder) gatherBackward(l int, grads []schedule.ID) []schedule.ID {
	of, tasks, _ := p.ghostRows(l)
	switch {
	case of.computed:
		return p.gatherLocal(l, tasks, of, grads)
	case !of.returned:
		return p.addPerInterval(schedule.GatherBackward, l, p.addSlices(schedule.LoadSliceBackward, schedule.GatherSliceBackward, l, grads))
	}
	ghosts := p.addPieces(schedule.GhostGrads, l, p.Pieces, grads)
	var own []schedule.ID
	if p.Barrier { // no work while they are in transit
		own = p.join(p.addPerInterval(schedule.GatherBackward, l, ghosts))
		ghosts = own
	}
	came := p.addExchange(schedule.SendBackward, schedule.ReceiveBackward, l, ghosts)
	if !p.Barrier {
		own = p.join(p.addPerInterval(schedule.GatherBackward, l, grads))
	}
	returned := p.addWhole(schedule.ReceiveBackward, l, own, came)
	if p.Sums > 0 {
		returned = p.addPerInterval(schedule.AddSums, l, returned)
	}
	return returned
}

// gatherLocal adds the backward gather of a layer whose ghost rows are computed here. Gradients of
// ghosts are not sent. Layers before the last such layer also gather from ghosts, after the gradients
// of the ghosts.
func (p *passBuilder) gatherLocal(l, tasks int, of ghostRows, grads []schedule.ID) []schedule.ID {
	p.openTask = nil
	grads = p.join(slices.Concat(grads, p.ghostTasks))
	var came []schedule.ID
	got := grads
	if of.placed {
		got = p.addPieces(schedule.GhostGrads, l, p.Mixed, grads)
		if of.returned {
			came = p.addExchange(schedule.SendBackward, schedule.ReceiveBackward, l, got)
		}
	}
	for k := range tasks {
		at, after := schedule.Task{Stage: schedule.GhostGrads, Layer: l, Interval: k}, got
		if !of.placed {
			after = []schedule.ID{p.g.Task(at, grads...)}
		}
		at.Stage = schedule.EmitGhostsBackward
		p.ghostTasks = append(p.ghostTasks, p.g.Task(at, after...))
	}
	if p.Barrier {
		grads = p.join(p.ghostTasks)
	}
	done := p.addPerInterval(schedule.GatherBackward, l, grads)
	if len(came) > 0 {
		done = p.addWhole(schedule.ReceiveBackward, l, p.join(done), came)
	}
	return done
}

// addPieces adds a task for each of n pieces of the data for other ranks. It returns a task
// that depends on all of them.
func (p *passBuilder) addPieces(stage schedule.Stage, l int, n int, after []schedule.ID) []schedule.ID {
	ids := slices.Clone(after)
	for k := range n {
		ids = append(ids, p.g.Task(schedule.Task{Stage: stage, Layer: l, Interval: k}, after...))
	}
	return p.join(ids)
}

// gathers reports whether layer l gathers in every pass.
func (s *lockstep) gathers(l int) bool { return s.store.Network.Gathers(l) }

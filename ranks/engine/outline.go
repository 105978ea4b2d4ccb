package engine

import (
	"siafu/kernels/model"
	"siafu/ranks/schedule"
)

// Outline has the numbers that determine the dependencies of a synchronous pass. It
// contains no graph, no values and nothing of other ranks. A run walks the task graphs of
// its own outline. A simulator with only an outline gets the same graphs.
type Outline struct {
	Layers    []LayerOutline
	Intervals int  // of the rank's vertices
	InputKept bool // ÂX: the first layer emits nothing
	Loss      bool // the forward pass ends in it
	Pairs     bool // and it is one of pairs of any vertices
	Ghosts    bool // rows come from other ranks
	Returns   bool // and gradients go back to them
	Sums      int  // tasks that add up rows for other ranks, in each layer
	Pieces    int  // tasks that make gradients of ghosts, in each layer
	Known     int  // tasks that make what ghosts emit in the first layer; 0: rows are exchanged there too
	Barrier   bool // nopipe: one stage at a time, all intervals
	Fused     bool // tensor tasks that follow each other are one
}

// LayerOutline describes what a layer needs from the graph and from other vertices.
type LayerOutline struct {
	Gathers, GathersBackward bool
	Sums                     bool // over the vertices of all ranks, on both ways
}

// outline is that of the passes along a route.
func (s *lockstep) outline(r *route, barrier bool) Outline {
	o := Outline{
		Intervals: len(s.intervals), InputKept: s.store.Network.Spec.CacheInput, Loss: s.endsInLoss, Pairs: s.pairing != nil,
		Ghosts: r.ghosts != nil, Returns: r.returns(), Sums: max(len(r.sumPieces)-1, 0), Pieces: max(len(r.pieces)-1, 0),
		Known: r.known.pieces(), Barrier: barrier, Fused: s.tensor.Wishes().Fused,
	}
	o.Layers = layersOf(s.store.Network)
	return o
}

// outline is that of a rank in bounded asynchrony.
func (f *async) outline(store *model.Store) Outline {
	return Outline{
		Layers: layersOf(store.Network), Intervals: len(f.intervals), InputKept: store.Network.Spec.CacheInput, Loss: true,
		Ghosts: f.graph != nil && f.graph.Plan.Ghosts > 0, Fused: f.tensor.Wishes().Fused,
	}
}

func layersOf(net *model.Network) (list []LayerOutline) {
	for l := range net.Layers {
		sums, _ := net.Sums(l)
		list = append(list, LayerOutline{net.Gathers(l), net.GathersBackward(l), sums > 0})
	}
	return list
}

// Forward returns the tasks of the forward pass, from the features to the loss.
func (o Outline) Forward() Pass { return o.pass(func(p *passes) { p.forward() }) }

// Backward returns the tasks of the backward pass, from the loss to the gradients of the
// weights.
func (o Outline) Backward() Pass { return o.pass(func(p *passes) { p.backward(nil) }) }

// Epoch returns the tasks of the forward and the backward pass in one graph.
func (o Outline) Epoch() Pass {
	return o.pass(func(p *passes) { p.backward(p.forward()) })
}

// Pass is the task graph of a pass.
type Pass struct {
	*schedule.Graph
	tasks cuts
}

// Stages returns the stages of a task, in order.
func (p Pass) Stages(t schedule.Task) []schedule.Task {
	if t.Stage >= tensorTasks || p.tasks[t.Layer][t.Stage].do == nil {
		return []schedule.Task{t}
	}
	var list []schedule.Task
	for _, d := range p.tasks[t.Layer][t.Stage].do {
		t.Layer, t.Stage = d.Layer, stageOf(d.Stage)
		list = append(list, t)
	}
	return list
}

func (o Outline) pass(way func(p *passes)) Pass {
	p := newPasses(o, func(layer int, stage model.Stage) []model.Do { return []model.Do{{Layer: layer, Stage: stage}} })
	way(p)
	return Pass{p.g, p.tasks}
}

// Tensor reports whether tasks of a stage are tensor work.
func Tensor(s schedule.Stage) bool {
	_, ok := tensorStages[s]
	return ok
}

// Chain returns the stages of a task of bounded asynchrony, in order.
func (o Outline) Chain(t schedule.Task) []schedule.Task {
	list := []schedule.Task{t}
	for next, more := o.fused(t); more; next, more = o.fused(next) {
		list = append(list, next)
	}
	return list
}

package engine

import (
	"slices"

	"siafu/kernels/model"
	"siafu/ranks/schedule"
)

// Outline has the numbers that determine the dependencies of a synchronous pass. It contains
// no graph, no values and no data of other ranks. A run walks the task graphs of its own
// outline. A simulator with only an outline gets the same graphs.
type Outline struct {
	Layers      []LayerOutline
	Section     model.Section // of the pass, if not all layers: a stage of a pipeline
	Intervals   int           // of the rank's vertices
	InputCached bool          // ÂX: the first layer emits nothing
	Loss        bool          // the forward pass ends in the loss
	Pairs       bool          // the loss is over pairs of any vertices
	GhostOutline
	Barrier bool // nopipe: all intervals are in the same stage
	Late    bool // own rows are gathered only when all rows have arrived
	Fused   bool // consecutive tensor tasks are one
}

// GhostOutline describes the tasks of ghost rows.
type GhostOutline struct {
	Ghosts     bool  // rows come from other ranks
	Returns    bool  // gradients return to other ranks
	Sums       int   // tasks that add up rows for other ranks, in each layer
	Pieces     int   // tasks that make gradients of ghosts, in each layer
	GhostTasks []int // tasks that compute the ghosts' rows, by layer that gathers; later ones exchange rows
	// tasks that put the rows of ghosts together, some of which are computed and some received in the last
	// layer of GhostTasks; 0: all are computed
	Mixed int
}

// LayerOutline describes what a layer needs from the graph and from other vertices.
type LayerOutline struct {
	Gathers, GathersBackward bool
	Slices                   int  // in which columns are gathered; 0: all at once
	Sums                     bool // over the vertices of all ranks, forward and backward
}

// outline returns the outline of the passes along a route.
func (s *lockstep) outline(r *route, barrier bool) Outline {
	o := Outline{
		Intervals: len(s.intervals), InputCached: s.store.Network.Spec.CacheInput, Loss: s.endsInLoss, Pairs: s.pairs,
		GhostOutline: GhostOutline{
			Ghosts: r.exchanges(), Returns: slices.ContainsFunc(r.rows, func(g ghostRows) bool { return g.returned }),
			Sums: max(len(r.sumPieces)-1, 0), Pieces: max(len(r.pieces)-1, 0),
			GhostTasks: r.localGhosts.pieces(), Mixed: max(len(r.localGhosts.mixed.pieces)-1, 0),
		},
		Barrier: barrier, Late: s.store.Exchanges(), Fused: s.tensor.RequestOptions().Fused,
	}
	o.Layers, o.Section = layersOf(s.store.Network), s.store.Section
	for l := range o.Layers {
		if r.aggregates() && o.Layers[l].Gathers {
			o.Layers[l].Slices = max(len(s.store.Slices(l))-1, 0)
		}
	}
	o.Loss = o.Loss && o.section().Has(len(o.Layers)-1)
	return o
}

// section returns the layers of the pass.
func (o Outline) section() model.Section {
	if o.Section == (model.Section{}) {
		return model.Section{End: len(o.Layers)}
	}
	return o.Section
}

// outline returns the outline of a rank in bounded asynchrony, with a number of ghosts.
func (f *asyncRank) outline(store *model.Store, ghosts int) Outline {
	return Outline{
		Layers: layersOf(store.Network), Intervals: len(f.intervals), InputCached: store.Network.Spec.CacheInput, Loss: true,
		GhostOutline: GhostOutline{Ghosts: store.Network.GathersAny() && ghosts > 0}, Fused: f.tensor.RequestOptions().Fused,
	}
}

func layersOf(net *model.Network) (list []LayerOutline) {
	for l := range net.Layers {
		sums, _ := net.Sums(l)
		list = append(list, LayerOutline{Gathers: net.Gathers(l), GathersBackward: net.GathersBackward(l), Sums: sums > 0})
	}
	return list
}

// Forward returns the tasks of the forward pass, from the features to the loss.
func (o Outline) Forward() PassGraph { return o.buildPass(func(p *passBuilder) { p.forward() }) }

// Backward returns the tasks of the backward pass, from the loss to the gradients of the
// weights.
func (o Outline) Backward() PassGraph { return o.buildPass(func(p *passBuilder) { p.backward(nil) }) }

// Epoch returns the tasks of the forward and the backward pass in one graph.
func (o Outline) Epoch() PassGraph {
	return o.buildPass(func(p *passBuilder) { p.backward(p.forward()) })
}

// PassGraph is the task graph of a pass.
type PassGraph struct {
	*schedule.Graph
	tasks     tensorWorkTable
	legs      []leg
	intervals int
}

// FetchAhead is the number of bytes of files above which no further part is fetched ahead of the tasks.
const FetchAhead = fetchAhead

// Fetches returns the first task of each fetch of files, in the order in which a rank reads ahead.
func (p PassGraph) Fetches() (list []schedule.Task) {
	for _, l := range p.legs {
		for i := range p.intervals {
			first := l[0]
			first.Interval = i
			list = append(list, first)
		}
	}
	return list
}

// FetchOf returns the place in Fetches of the fetch for which a task waits; -1: none.
func (p PassGraph) FetchOf(t schedule.Task) int {
	if t.Interval == schedule.Whole || OfGhosts(t.Stage) {
		return -1
	}
	return indexOf(p.legs, t)*p.intervals + t.Interval
}

// Stages returns the stages of a task, in order.
func (p PassGraph) Stages(t schedule.Task) []schedule.Task {
	if t.Stage >= tensorTasks || len(p.tasks[t.Layer][t.Stage].do) == 0 {
		return []schedule.Task{t}
	}
	var list []schedule.Task
	for _, d := range p.tasks[t.Layer][t.Stage].do {
		t.Layer, t.Stage = d.Layer, stageOf(d.Stage)
		list = append(list, t)
	}
	return list
}

func (o Outline) buildPass(addTasks func(p *passBuilder)) PassGraph {
	p := newPassBuilder(o, func(layer int, stage model.Stage) []model.Do { return []model.Do{{Layer: layer, Stage: stage}} })
	addTasks(p)
	return PassGraph{p.g, p.tasks, p.legs, o.Intervals}
}

// Tensor reports whether tasks of a stage are tensor work.
func Tensor(s schedule.Stage) bool {
	_, ok := tensorStages[s]
	return ok
}

// FusedStages returns the stages of a task of bounded asynchrony, in order.
func (o Outline) FusedStages(t schedule.Task) []schedule.Task {
	list := []schedule.Task{t}
	for next, more := o.fusedSuccessor(t); more; next, more = o.fusedSuccessor(next) {
		list = append(list, next)
	}
	return list
}

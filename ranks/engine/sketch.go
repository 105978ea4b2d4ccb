package engine

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// SketchedStage is a stage of a pipeline, and the edges of the whole graph. It is ignored without
// pipelines.
type SketchedStage struct {
	Number int
	Edges  int64
}

// Sketch makes the arrays of a graph rank on a shard, which is a sketch itself, to estimate
// their memory. m is the lifetime of values. Weights and the intervals' own arrays
// (model.Spec.Footprint) are not included. kept has the arrays that live as long as the
// run, or as a stretch in bounded asynchrony. scratch has the arrays that are freed after
// ÂX has been computed or the ghost features have arrived. Both arenas are sketches, and
// ops allocates from them; b runs tensor tasks.
//
// If ops or b computes on a device, Sketch makes intervals there, only one if features are
// sparse. It runs each of their tasks once to measure the memory of arithmetic. Sums that
// ranks compute for each other depend on the edges and are not included. counts has the
// numbers from which s was sketched. Nothing is collective.
//
// Design note: one interval stands for all intervals in host memory, because the matrices
// cover all own vertices, for any number of intervals.
func Sketch(c config.Config, net model.Spec, m model.Memory, codecs []codec.Codec, s *shard.Shard, counts shard.Counts, ops kernels.Ops,
	b tensor.Backend, kept, scratch *mapped.Arena, stage SketchedStage) {
	onDevice, requested := ops.Remote(), c.Intervals
	if !onDevice || s.Features.Sparse != nil {
		c.Intervals = 1
	}
	e := &Engine{
		Rank: Rank{
			Problem: Problem{Config: c, Shard: s, Network: net, Codecs: codecs},
			Comms:   Comms{Peers: absentRanks{rank: s.Rank, size: s.Parts}},
			Machine: Machine{Arena: kept, Tensor: b},
		},
		workers: &workers{teams: []kernels.Ops{sketchOps{ops}}},
	}
	if c.Edges == config.CodedEdges {
		e.codes = graphwork.NewCodes(nil, kept, counts.CodedBits)
	}
	if c.Intervals = requested; m&model.InChain > 0 {
		n := max(c.IntervalsOf(net, s.NumOwn(), counts.Edges), 1)
		e.slotRows = (s.NumOwn() + n - 1) / n
	}
	if c.Pipeline != "" {
		e.Stages = absentRanks{rank: stage.Number, size: c.Pipelining().Stages}
		e.Meta = &graph.Meta{Vertices: s.Vertices, Edges: stage.Edges}
	}
	var hops []shard.Hop
	e.halo, hops = e.sketchLocalHalo(counts, kept)
	store := e.store(e.network(), m, kept)
	if net.CacheInput {
		e.sketchInput(store, onDevice, scratch)
	}
	var list []*interval
	if onDevice {
		list = e.newIntervals(store, e.sketchWeights(m, kept), kept)
	}
	e.sketchTasks(m, requested)
	if m == model.Separate {
		f := &asyncRank{cfg: c, resources: e.resources(0), layers: make([]*graphwork.Layer, net.Layers())}
		if store.Network.GathersAny() {
			_ = f.prepare(e, store, 0, kept) // fails only with received rows
		}
		runEachTask(tensor.CPU{}, store, list, f.graph)
		return
	}
	if c.Batches() > 0 {
		e.sketchBatches(store, counts, kept)
	}
	e.sketchGhostFeatures(store.Network, hops, kept, scratch)
	t := e.lockstep(store, nil)
	var reduction *halo.Reduction // same size as a reduction without sums
	if e.preAggregates() {
		reduction = halo.Plain(s)
	}
	t.connectRoutes(e, reduction, kept)
	exact := t.routes.exact
	exact.localGhosts.begin(exact, model.Pass{Epoch: 1, Train: m != model.Forward})
	t.routes.reserveResiduals()
	e.correctionBatch(ops, kept)
	if t.routes.connected() {
		for _, other := range codecs[1:] {
			exact.exchange.Use(other)
		}
	}
	runEachTask(tensor.CPU{}, store, list, t.routes.training.graph, exact.graph)
}

// sketchInput allocates the memory to compute ÂX, and frees it.
func (e *Engine) sketchInput(store *model.Store, onDevice bool, scratch *mapped.Arena) {
	a := mapped.NewSketch()
	once := e.columnCaches(store, nil, new(int), e.Arena, a)
	e.newGhostInput(CachedWidth(e.Network), e.Arena, a)
	if onDevice {
		runEachTask(once.tensor, once.store, once.intervals, once.routes.exact.graph)
	}
	for _, s := range a.Shares() {
		mapped.Make[byte](scratch.For(s.Purpose), int(s.Bytes))
	}
	a.Free()
}

// sketchWeights returns the shared weights of intervals, empty if each has its own.
func (e *Engine) sketchWeights(m model.Memory, a *mapped.Arena) kernels.Mat {
	if m == model.Separate {
		return kernels.Mat{}
	}
	return kernels.NewMat(e.workers.teams[0], a, e.Network.NumWeights(), 1)
}

// sketchTasks makes a backend that stores values hold and run the tasks of intervals; asked is
// the requested number of intervals. Memory of this process is not counted again.
func (e *Engine) sketchTasks(m model.Memory, requested int) {
	if !e.Tensor.StoresValues() {
		return
	}
	if e.Shard.Features.Sparse == nil {
		e.Config.Intervals = requested
	}
	a := mapped.NewSketch()
	store := e.store(e.network(), m, a)
	if e.Network.CacheInput {
		store.CacheInput(e.Config.Features == "bf16", a)
	}
	list := e.newIntervals(store, e.sketchWeights(m, a), a)
	e.reserveBackend(store, list, a)
	runEachTask(e.Tensor, store, list)
}

// runEachTask runs each task of intervals once, and each gather.
func runEachTask(b tensor.Backend, store *model.Store, list []*interval, graphs ...*graphwork.Work) {
	net, p := store.Network, model.Pass{Epoch: 1, Train: store.Memory() != model.Forward}
	for _, i := range list {
		i.loss.Count = true
		for l := range net.Layers {
			for s := model.Emit; s < model.Stages; s++ {
				if net.Has(model.Do{Layer: l, Stage: s}) && (p.Train || !s.Backward()) && s != model.Draw {
					i.runTask(b, l, s, store.Do(l, s), p)
				}
			}
			for _, w := range graphs {
				i.gather(w, store, l, p)
			}
		}
	}
}

// runTask runs a tensor task.
func (i *interval) runTask(b tensor.Backend, l int, s model.Stage, list []model.Do, p model.Pass) {
	t := schedule.Task{Stage: stageOf(s), Layer: l, Interval: i.index}
	if done, _ := i.start(b, t, 0, p.Epoch, p, tensorWork{do: list}); !done {
		<-b.Finished() // an error here occurs again in the run
	}
}

// gather runs the graph work of a layer.
func (i *interval) gather(w *graphwork.Work, store *model.Store, l int, p model.Pass) {
	if !store.Network.Gathers(l) {
		return
	}
	layer, part := w.Layer(l), i.graphInterval(l)
	if layer.Rows.IsNil() {
		layer.Rows = store.Emitted(l, p)
	}
	layer.Begin(p, i.frame.Weights)
	rows := kernels.Mat{Rows: w.Plan.Ghosts, Cols: layer.Width}
	layer.Publish(part, i.part(layer.Rows))
	layer.GatherOwn(part, p)
	if layer.Ghosts.IsNil() {
		layer.TakeGhosts(i.ops, rows)
	}
	layer.GatherGhosts(part, p)
	if !p.Train || !layer.Returns() {
		return
	}
	layer.PublishGrads(part, i.frame.At(model.Do{Layer: l, Stage: model.ApplyBackward}, model.GatheredGrad))
	layer.GhostGrads(i.ops, 0, rows)
	layer.GatherBackward(part, p)
}

// sketchOps is one Ops for all users that never compute.
type sketchOps struct{ kernels.Ops }

func (o sketchOps) Fork() kernels.Ops { return o }

// absentRanks are the graph ranks of a sketch. Only their number is known.
type absentRanks struct {
	world.Comm // nil: never used
	rank, size int
}

func (a absentRanks) Rank() int { return a.rank }

func (a absentRanks) Size() int { return a.size }

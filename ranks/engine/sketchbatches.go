package engine

import (
	"math"
	"slices"

	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/history"
	"siafu/halo/sample"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
)

// sketchBatches allocates the memory of mini-batches in addition to a trainer with the values
// of store, without the intervals' own memory. The number of vertices outside of a batch
// depends on the edges. It is estimated for uniformly random edges: clusters have fewer.
func (e *Engine) sketchBatches(store *model.Store, c shard.Counts, a *mapped.Arena) {
	switch kind := e.Config.Batching(); {
	case kind.Draws():
		e.sketchSampledSteps(c, a)
		return
	case kind.Kind == config.Variates:
		e.newHistoryStore(a)
		e.sketchVariates(c, a)
		return
	}
	e.newHistoryStore(a)
	b, net, count := e.batchStore(store.Vertices()), e.network(), int64(e.Config.Batches())
	one := outsideShare(c, count)
	part := shard.Sketch(shard.Shard{Parts: 1, Directed: e.Shard.Directed, FeatureDim: e.Shard.FeatureDim, Weighted: e.Shard.Weighted},
		one, true, mapped.NewSketch())
	each := mapped.NewSketch()
	work := graphwork.New(b, part, graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true}, e.workers.teams[0], each)
	bytes := each.Used() + 4*one.Edges + 16*one.Vertices + 12*one.Ghosts + 8*one.Vertices
	if part.Weighted {
		bytes += 4*one.Edges + 8*(one.Vertices+one.Ghosts)
	}
	mapped.Make[byte](a.For(BatchEdges), int(count*bytes))

	width, most := widest(net), int(one.Ghosts)
	host := mapped.Make[float32](a.For(halo.Ghosts), most*width)
	kernels.PlaceMat(e.workers.teams[0], a.For(halo.Ghosts), most, width, host)
	mapped.Make[uint32](a.For(halo.Ghosts), most)
	new(batches).predictedBatches(e, nil, most, nil)
	e.sketchOutsideRows(one, a)
	travelling := min(one.Ghosts, int64(len(e.Shard.Ghosts))) // received, and about the same number sent
	mapped.Make[byte](a.For(history.Lists), int(2*travelling)*(4*work.MaxWidth()+4))
	mapped.Make[uint32](a.For(history.Lists), int(min(count*travelling, c.Cut)))
}

// outsideShare returns the counts of one of count batches.
func outsideShare(c shard.Counts, count int64) shard.Counts {
	n, edges := (c.Vertices+count-1)/count, (c.Edges+count-1)/count
	inside := float64(n) / float64(max(c.Vertices+c.Ghosts, 1))
	others := float64(c.Vertices + c.Ghosts - n)
	out := int64(float64(edges) * (1 - inside))
	return shard.Counts{
		Vertices: n, Edges: edges, Cut: out, Ghosts: int64(others * (1 - math.Exp(-float64(out)/max(others, 1)))),
		Train: (c.Train + count - 1) / count, TrainEdges: (c.TrainEdges + count - 1) / count,
		TrainCut: int64(float64(c.TrainEdges) / float64(count) * (1 - inside)), FeatureNNZ: (c.FeatureNNZ + count - 1) / count,
	}
}

// sketchVariates allocates the memory of steps with sampled neighbours, as newVariates does,
// without the samples, which each step makes again.
func (e *Engine) sketchVariates(c shard.Counts, a *mapped.Arena) {
	more := make([]int, len(e.Network.GatherLayers())+1)
	more[1] = RefreshedRows(c, len(more)-1) // at the depth with most neighbours
	rows, inner := e.maxFieldSize(int(c.Train), more)
	net := e.variatesNetwork()
	e.sketchStepBuffers(net, net.Section(), []int{rows}, a)
	e.Network.Coefficients(graphwork.Degrees(e.Shard), e.Shard.NumOwn(), a.For(graphwork.Coefficients))
	width, ghosts := widest(net), e.Shard.NumGhosts()
	rest := a.For(halo.Ghosts)
	mapped.Make[float32](rest, ghosts*width)
	mapped.Make[uint32](rest, ghosts)
	mapped.Make[float32](rest, inner*width)
	new(batches).predictVariates(e, history.SketchVariates(e.historyShapes(), halo.NewPlan(e.Shard)), int(c.Train))
	mapped.Make[uint32](a.For(history.Lists), int(c.SendRows))
	mapped.Make[byte](a.For(history.Lists), (int(c.SendRows)+ghosts)*(4*width+4))
}

// sketchStepBuffers allocates as newStepBuffers does, without the intervals' own memory.
func (e *Engine) sketchStepBuffers(net *model.Network, of model.Section, most []int, a *mapped.Arena) *model.Store {
	r := e.allocStepBuffers(net, of, most, a)
	return model.NewSectionStore(net, of, r.vertices(r.rows), passMemory(e.Config), e.workers.teams[0], a.For(Activations))
}

// sketchSampledSteps allocates the memory of sampled steps. Values have room for the largest
// possible step, and use the estimated one. In a run, each step allocates the rest by its
// samples. The estimate assumes that no two samples of a step are the same vertex: this holds
// for few samples, and is too much for a small graph.
func (e *Engine) sketchSampledSteps(c shard.Counts, a *mapped.Arena) {
	b, most, net := e.Config.Batching(), MaxSampledRows(e.Config, e.Shard.Vertices, c), e.batchNetwork()
	along := e.edgeData()
	var blocks []graphwork.Block
	for _, n := range SampledEdges(e.Config, c, most) {
		// Edge attributes are on the heap, as in the sample.
		head := shard.Shard{Parts: 1, Directed: true, Weighted: along.Weighted, EdgeDim: along.EdgeDim}
		counts := shard.Counts{Vertices: n.Rows, Edges: n.Edges}
		blocks = append(blocks, graphwork.Block{Shard: shard.Sketch(head, counts, false, mapped.NewSketch())})
	}
	switch b.Kind {
	case config.Cluster:
		sample.SketchClusters(e.Shard, a)
	case config.Saint:
		sample.SketchWalks(e.walking(), a)
	default:
		sample.Sketch(e.sampling(), a)
	}
	shared := len(net.Spec.GatherLayers()) - len(blocks)
	blocks = append(slices.Repeat(blocks[:1], shared), blocks...)
	step := func(of model.Section) {
		store := e.sketchStepBuffers(net, of, most, a)
		graphwork.NewBlocks(store, blocksOfLayers(net.Spec, blocks), graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true},
			e.workers.teams[0], a.For(BatchEdges))
	}
	if !e.pipelined() {
		step(net.Section())
		return
	}
	p := e.pipelineStage()
	for stage, of := range e.stages(net) {
		for range p.slots(stage) {
			step(of)
		}
	}
}

// widest returns the largest width of the rows that a network gathers.
func widest(n *model.Network) (width int) {
	for l := range n.Layers {
		if n.Gathers(l) {
			width = max(width, n.Layers[l].GatherWidth())
		}
	}
	return width
}

package engine

import (
	"math"

	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/history"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
)

// sketchBatches makes what mini-batches make beside a trainer whose values store has,
// without what their intervals have by themselves. How many vertices lie outside of a
// batch depends on the edges, and is foretold as if each led anywhere: clusters have
// fewer.
func (e *Engine) sketchBatches(store *model.Store, c shard.Counts, a *mapped.Arena) {
	e.history(a)
	if e.Config.Samples() > 0 {
		e.sketchVariates(c, a)
		return
	}
	b, net, count := e.batchStore(store.Vertices()), e.network(), int64(e.Config.Batches())
	one := outsideShare(c, count)
	part := shard.Sketch(shard.Shard{Parts: 1, Directed: e.Shard.Directed, FeatureDim: e.Shard.FeatureDim}, one, true, mapped.NewSketch())
	each := mapped.NewSketch()
	work := graphwork.New(b, part, graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true}, e.workers.teams[0], each)
	bytes := each.Used() + 4*one.Edges + 16*one.Vertices + 12*one.Ghosts + 8*one.Vertices
	mapped.Make[byte](a.For(BatchEdges), int(count*bytes))

	width, most := widest(net), int(one.Ghosts)
	host := mapped.Make[float32](a.For(halo.Ghosts), most*width)
	kernels.PlaceMat(e.workers.teams[0], a.For(halo.Ghosts), most, width, host)
	mapped.Make[uint32](a.For(halo.Ghosts), most)
	travelling := min(one.Ghosts, int64(len(e.Shard.Ghosts))) // in, and about as many out
	mapped.Make[byte](a.For(history.Lists), int(2*travelling)*(4*work.MaxWidth()+4))
	mapped.Make[uint32](a.For(history.Lists), int(min(count*travelling, c.Cut)))
}

// outsideShare is what is in a batch, of so many.
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

// sketchVariates makes what steps with sampled neighbours need, as newVariates does,
// without the samples, which are made anew in each.
func (e *Engine) sketchVariates(c shard.Counts, a *mapped.Arena) {
	rows, inner := e.mostInField(int(c.Train))
	net, ops, values := e.network(), e.workers.teams[0], a.For(Activations)
	kernels.NewMat(ops, values, rows, e.Network.Dims[0])
	in := model.Vertices{
		Features: model.Features{Rows: rows, Dim: e.Network.Dims[0]}, IDs: kernels.HostVector(mapped.Make[uint32](values, rows)),
		LocalIDs: kernels.HostVector(mapped.Make[uint32](mapped.NewSketch(), rows)),
	}
	mapped.Make[int32](values, rows)
	mapped.Make[uint8](values, rows)
	model.NewStore(net, in, kept(e.Config), ops, values)
	e.Network.Coefficients(e.Shard.InDegree, e.Shard.OutDegree, e.Shard.NumOwn(), a.For(graphwork.Coefficients))
	width, ghosts := widest(net), e.Shard.NumGhosts()
	rest := a.For(halo.Ghosts)
	mapped.Make[float32](rest, ghosts*width)
	mapped.Make[uint32](rest, ghosts)
	mapped.Make[float32](rest, inner*width)
	mapped.Make[uint32](a.For(history.Lists), int(c.SendRows))
	mapped.Make[byte](a.For(history.Lists), (int(c.SendRows)+ghosts)*(4*width+4))
}

// widest is the width of the widest rows that a network gathers.
func widest(n *model.Network) (width int) {
	for l := range n.Layers {
		if n.Gathers(l) {
			width = max(width, n.Layers[l].GatherWidth())
		}
	}
	return width
}

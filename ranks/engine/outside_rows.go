package engine

import (
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/history"
	"siafu/halo/sample"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
)

// outsideRows computes the rows of the vertices outside of a mini-batch from their neighbours in the
// batch (GraphFM-OB): the layers of a gcn, along the batch's edges reversed. It has no backward pass. The
// zero value computes nothing.
type outsideRows struct {
	e        *Engine
	store    *model.Store // of the largest number of outside vertices, forward only
	ids      []uint32     // of the current batch
	features kernels.Mat  // of the batch's vertices
	input    kernels.Mat  // Â X of outside vertices, from the batch's vertices
	vertices []uint32     // 0, 1, …: own vertices, of which a batch is a part
	batches  []outsideEdges
	frame    *model.Frame

	current *outsideEdges
	pass    model.Pass
}

// outsideEdges are a batch's edges to the vertices outside.
type outsideEdges struct {
	first, rows int // own vertices of the batch
	ids         []uint32
	offsets     []int64
	cols        []uint32 // rows of the batch
	weights     []float32
	row, col    []float32 // coefficients of outside vertices and of the batch's
}

// OutsideEdges is the purpose of the memory for edges to vertices outside of mini-batches.
const OutsideEdges = "edges to vertices outside of mini-batches"

// newOutsideRows allocates the computation for mini-batches of a trainer with at most the given number of
// outside vertices. It computes nothing if --predict does not request it.
func (e *Engine) newOutsideRows(t *trainer, cuts []history.BatchVertices, parts []*shard.Shard, outside int) *outsideRows {
	if !e.Config.Averages() {
		return &outsideRows{}
	}
	a := e.Arena
	most := 0
	for _, c := range cuts {
		most = max(most, c.Rows)
	}
	o := e.allocOutsideRows(most, outside, a)
	for k, c := range cuts {
		o.batches = append(o.batches, o.newEdges(c, parts[k], a))
	}
	o.frame = o.store.Batch(o.in(0), 0, 0, 0, o.input, e.packers, t.sharedWeights, nil)
	return o
}

// allocOutsideRows allocates the values for batches of at most the given numbers of vertices.
func (e *Engine) allocOutsideRows(rows, outside int, a *mapped.Arena) *outsideRows {
	o, ops := &outsideRows{e: e}, e.workers.teams[0]
	a = a.For(Activations)
	o.ids, o.vertices = mapped.Make[uint32](a, outside), mapped.Make[uint32](a, e.Shard.NumOwn())
	a.Fill(func() {
		for v := range o.vertices {
			o.vertices[v] = uint32(v)
		}
	})
	dim := e.Network.Dims[0]
	o.features, o.input = kernels.NewMat(ops, a, rows, dim), kernels.NewMat(ops, a, outside, dim)
	o.store = model.NewStore(model.New(e.network().Spec, false), o.in(outside), model.Forward, ops, a)
	return o
}

// in returns the first outside vertices.
func (o *outsideRows) in(n int) model.Vertices {
	return model.Vertices{
		Features: model.Features{Rows: n, Dim: o.input.Cols},
		IDs:      kernels.HostVector(o.ids[:n]), LocalIDs: kernels.HostVector(o.ids),
	}
}

// newEdges reverses the edges from outside of a batch.
func (o *outsideRows) newEdges(c history.BatchVertices, part *shard.Shard, a *mapped.Arena) outsideEdges {
	n, outside := part.NumOwn(), part.NumGhosts()
	coef := o.e.Network.Coefficients(graphwork.Degrees(part), n+outside, a.For(graphwork.Coefficients))
	x := outsideEdges{first: c.First, rows: c.Rows, ids: part.Ghosts, row: coef.Row[n:], col: coef.Col[:n]}
	a = a.For(OutsideEdges)
	x.offsets = mapped.Make[int64](a, outside+1)
	visit := func(found func(v int, k int64, to int)) {
		for v := range n {
			for k := part.InOwnEnd[v]; k < part.In.Offsets[v+1]; k++ {
				found(v, k, int(part.In.Cols[k])-n)
			}
		}
	}
	visit(func(_ int, _ int64, to int) { x.offsets[to+1]++ })
	for i := range outside {
		x.offsets[i+1] += x.offsets[i]
	}
	x.cols = mapped.Make[uint32](a, int(x.offsets[outside]))
	if part.Weighted {
		x.weights = mapped.Make[float32](a, len(x.cols))
	}
	next := append([]int64(nil), x.offsets...)
	visit(func(v int, k int64, to int) {
		at := next[to]
		next[to]++
		if x.cols[at] = uint32(v); part.Weighted {
			x.weights[at] = part.Weights[k]
		}
	})
	return x
}

// begin sets the batch of the next pass.
func (o *outsideRows) begin(batch, pass int) {
	if len(o.batches) == 0 {
		return
	}
	b := &o.batches[batch]
	o.current, o.pass = b, model.Pass{Epoch: pass, Train: true}
	copy(o.ids, b.ids)
	n := len(b.ids)
	o.frame = o.store.Batch(o.in(n), 0, n, 0, o.input, o.e.packers, o.frame.Weights, o.frame)
	sample.ExpandRows(o.features, &o.e.Shard.Features, o.vertices[b.first:b.first+b.rows], o.e.packers)
}

// rows returns the rows [outside x width] that layer at.Layer gathers from the outside vertices. batch has
// the batch's rows of this layer, which the next layer gathers. Call it for all layers in turn.
func (o *outsideRows) rows(at halo.Slot, batch kernels.Mat) kernels.Mat {
	l, n := at.Layer, len(o.current.ids)
	if l == 1 {
		o.gather(o.input.Part(0, n), o.features)
	}
	for _, d := range append(o.store.Do(l-1, model.Apply), o.store.Do(l, model.Emit)...) {
		o.frame.Run(d, o.pass, o.e.packers)
	}
	hat := o.store.Emitted(l, o.pass).Part(0, n)
	if next := l + 1; next < len(o.store.Network.Layers) {
		o.gather(o.store.Forward(l, model.Gathered).Part(0, n), batch)
	}
	return hat
}

// gather sets dst to the sums of rows of the batch over the edges to the outside vertices.
func (o *outsideRows) gather(dst, rows kernels.Mat) {
	b, n := o.current, len(o.current.ids)
	o.e.packers.SpMM(dst, kernels.Edges{
		Begin: kernels.HostVector(b.offsets[:n]), End: kernels.HostVector(b.offsets[1 : n+1]), Cols: kernels.HostVector(b.cols),
		Weights: kernels.HostVector(b.weights), RowScale: kernels.HostVector(b.row), ColScale: kernels.HostVector(b.col),
	}, rows.Part(0, b.rows), false)
}

// sketchOutsideRows allocates what newOutsideRows does for equal batches with the given counts.
func (e *Engine) sketchOutsideRows(one shard.Counts, a *mapped.Arena) {
	if !e.Config.Averages() {
		return
	}
	e.allocOutsideRows(int(one.Vertices), int(one.Ghosts), a)
	bytes := 4*one.Cut + 8*(one.Ghosts+1) + 8*(one.Vertices+one.Ghosts)
	if e.Shard.Weighted {
		bytes += 4 * one.Cut
	}
	mapped.Make[byte](a.For(OutsideEdges), int(int64(e.Config.Batches())*bytes))
}

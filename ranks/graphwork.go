package ranks

import (
	"slices"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/world"
)

// graphWork is what multiplies by the adjacency matrix on one rank: gather
// (GA), scatter (SC) and their gradients.
type graphWork struct {
	shard      *shard.Shard
	transposed *shard.Transposed // edges by source, nil where no layer needs them
	trained    *shard.Transposed // those into training vertices, for the last layer; nil: all
	coef       model.Coefficients
	plan       *halo.Plan
	codec      codec.Codec
	exchange   *halo.Exchange
	team       *kernels.Team
	arena      *mapped.Arena
	clock      *clock
	overlap    bool // gather from own vertices while ghosts are under way
	seed       uint64

	half   bool // gather rows rounded to bfloat16
	halves []kernels.BF16

	attends  []*attended  // one a layer with attention, nil for others
	gathered [][]float32  // one a layer, kept for the way back
	grads    [2][]float32 // of emitted rows; two, so that none is read and written at once
	turn     int
}

// newGraphWork prepares a shard for gathering. All memory comes from a.
func newGraphWork(c Config, net model.Spec, s *shard.Shard, team *kernels.Team, clock *clock, rows codec.Codec, a *mapped.Arena) *graphWork {
	return &graphWork{
		shard: s, plan: halo.NewPlan(s), codec: rows,
		coef: net.Coefficients(s.InDegree, s.OutDegree, s.NumOwn(), a),
		team: team, arena: a, clock: clock, overlap: c.Mode == "pipe", seed: c.Seed, half: c.Gather == "bf16",
	}
}

// prepareBack makes what the way back through the layers of a network needs.
// Edges into training vertices get arrays of their own where those replace the
// arrays of all edges or are less than half of them.
func (g *graphWork) prepareBack(layers []model.Layer) {
	last := len(layers) - 1
	others := slices.ContainsFunc(layers[:last], model.Layer.GathersBack)
	few := 2*g.shard.EdgesInto(graph.SplitTrain) < int64(len(g.shard.In.Cols))
	if layers[last].GathersBack() && (few || g.shard.Directed && !others) {
		g.trained = g.shard.TransposeInto(g.arena, graph.SplitTrain)
	}
	if others || g.trained == nil {
		g.transposed = g.shard.Transpose(g.arena)
	}
}

// connect gives room for rows of ghosts and messages up to width wide.
func (g *graphWork) connect(c world.Comm, width int, a *mapped.Arena) {
	g.exchange = halo.NewExchange(c, g.plan, g.codec, g.team, a, width)
}

// gather is Â rows for own vertices: dst[v] = Σ Â[v,u] rows[u] over the
// in-neighbours u of v and v itself; rows is [own x width]. The result stands
// until layer's next gather. Collective over the graph ranks.
func (g *graphWork) gather(layer int, rows []float32, width int, p model.Pass) ([]float32, error) {
	dst := g.room(layer, g.shard.NumOwn()*width)
	key := halo.Key{Seed: g.seed, Epoch: p.Epoch, Layer: layer, Apart: !p.Train}
	g.clock.start()
	if err := g.exchange.BeginForward(rows, width, key); err != nil {
		return nil, err
	}
	g.clock.lap("SC")
	if g.overlap {
		g.gatherOwn(dst, rows, width)
		g.clock.lap("GA")
	}
	ghosts, err := g.exchange.EndForward()
	g.clock.lap("SC")
	if err != nil {
		return nil, err
	}
	if !g.overlap {
		g.gatherOwn(dst, rows, width)
	}
	g.gatherGhosts(dst, ghosts, width)
	g.clock.lap("GA")
	return dst, nil
}

// gatherOwn sets dst to what own neighbours and the self loop contribute.
func (g *graphWork) gatherOwn(dst, rows []float32, width int) {
	m := g.ownEdges()
	m.RowScale, m.ColScale, m.SelfLoops = g.coef.Row, g.coef.Col, g.coef.SelfLoops
	g.spmm(dst, width, m, rows, false)
}

// gatherGhosts adds what ghosts contribute.
func (g *graphWork) gatherGhosts(dst, ghosts []float32, width int) {
	if g.shard.NumGhosts() == 0 {
		return
	}
	m := g.ghostEdges()
	m.RowScale, m.ColScale = g.coef.Row, g.coef.Col
	g.spmm(dst, width, m, ghosts, true)
}

// spmm gathers rows as they are or rounded to bfloat16. Rounding multiplies by
// the column's scale at the same time.
func (g *graphWork) spmm(dst []float32, width int, m kernels.Gather, rows []float32, add bool) {
	if !g.half {
		kernels.SpMM(g.team, dst, width, m, rows, add)
		return
	}
	n := len(rows) / width
	if need := len(rows) + kernels.HalfSlack; len(g.halves) < need {
		g.halves = mapped.Make[kernels.BF16](g.arena, need)
	}
	kernels.NarrowRows(g.team, g.halves, width, n, width, rows, part(m.ColScale, int(m.Base)))
	m.ColScale = nil
	kernels.SpMMHalf(g.team, dst, width, m, g.halves, add)
}

// gatherGrad is Âᵀ grad for own vertices, the gradient of the rows that were
// gathered; grad is [own x width]. In the last layer it is zero but for
// training vertices, and only edges into those are gone through. Gradients of ghosts travel to their owners,
// who add them to the part of their own edges. The result stands until the
// next but one call. Collective over the graph ranks.
func (g *graphWork) gatherGrad(layer int, grad []float32, width int, last bool, p model.Pass) ([]float32, error) {
	edges := g.transposed
	if last && g.trained != nil {
		edges = g.trained
	}
	if layer < len(g.attends) && g.attends[layer] != nil {
		return g.attendGrad(layer, grad, edges, p)
	}
	dst := g.gradRoom(g.shard.NumOwn() * width)
	key := halo.Key{Seed: g.seed, Epoch: p.Epoch, Layer: layer, Backward: true}

	g.clock.start()
	g.ghostGrads(edges, g.exchange.Ghosts(width), grad, width)
	if !g.overlap {
		g.ownGrads(edges, dst, grad, width)
	}
	g.clock.lap("∇GA")
	if err := g.exchange.BeginBackward(width, key); err != nil {
		return nil, err
	}
	g.clock.lap("∇SC")
	if g.overlap {
		g.ownGrads(edges, dst, grad, width)
		g.clock.lap("∇GA")
	}
	err := g.exchange.EndBackward(dst)
	g.clock.lap("∇SC")
	return dst, err
}

// ghostGrads sets ghosts to the gradients that own destinations give them.
func (g *graphWork) ghostGrads(t *shard.Transposed, ghosts, grad []float32, width int) {
	g.spmm(ghosts, width, kernels.Gather{
		Begin: t.Ghost.Offsets[:t.Ghost.Rows()], End: t.Ghost.Offsets[1:], Cols: t.Ghost.Cols,
		RowScale: part(g.coef.Col, g.shard.NumOwn()), ColScale: g.coef.Row,
	}, grad, false)
}

// ownGrads sets dst to the gradients along own edges and the self loop.
func (g *graphWork) ownGrads(t *shard.Transposed, dst, grad []float32, width int) {
	g.spmm(dst, width, kernels.Gather{
		Begin: t.OwnBegin, End: t.OwnEnd, Cols: t.OwnCols,
		RowScale: g.coef.Col, ColScale: g.coef.Row, SelfLoops: g.coef.SelfLoops,
	}, grad, false)
}

// part is scale from an element on, nil for nil.
func part(scale []float32, from int) []float32 {
	if scale == nil {
		return nil
	}
	return scale[from:]
}

// room is layer's buffer of n floats.
func (g *graphWork) room(layer, n int) []float32 {
	for len(g.gathered) <= layer {
		g.gathered = append(g.gathered, nil)
	}
	if g.gathered[layer] == nil || len(g.gathered[layer]) != n {
		g.gathered[layer] = mapped.Make[float32](g.arena, n)
	}
	return g.gathered[layer]
}

// gradRoom is the next of two buffers, at least n floats long.
func (g *graphWork) gradRoom(n int) []float32 {
	g.turn = 1 - g.turn
	if len(g.grads[g.turn]) < n {
		g.grads[g.turn] = mapped.Make[float32](g.arena, n)
	}
	return g.grads[g.turn][:n]
}

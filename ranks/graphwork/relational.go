package graphwork

import (
	"sync"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// relational gathers the means of each relation and multiplies them by the relation's matrix
// (model.Relational). The forward pass gathers the rows S_r of each relation in blocks that fit in the
// cache, and adds S_r W_r. The backward pass gathers, by source and relation, the gradients T_r of
// outputs divided by the numbers of neighbours: the gradient of the rows is Σ T_r W_rᵀ, and that of
// W_r is Hᵀ T_r over own sources plus, over ghosts, S_rᵀ G. No matrix has a row per edge or relation.
type relational struct {
	l                *Layer
	layer            model.Relational
	edges            *relationEdges
	ops              kernels.Ops
	composed         kernels.Mat // memory for weights, if matrices are composed
	weights          kernels.Mat // matrices of the pass [relations·in x out]
	relations        int
	inWidth, outWide int
	scratch          *scratchPool
}

// blockRows is the number of runs that are multiplied at once: their rows fit in a second-level cache
// with the matrix of a relation.
const blockRows = 512

// RelationArrays is the purpose of the arrays of edges by relation.
const RelationArrays = "edges by relation"

// newRelational returns the relational gather of a layer.
func (w *Work) newRelational(l *Layer, source model.Relational, o Options) *relational {
	g := &relational{l: l, layer: source, ops: w.ops}
	g.relations, g.inWidth, g.outWide = source.RelationShape()
	if source.ComposesRelations() {
		g.composed = w.newZeros(RelationArrays, g.relations*g.inWidth, g.outWide)
	}
	if l.mesh.byRelation == nil {
		l.mesh.byRelation = w.newRelationEdges(l.mesh, g.relations, o)
	}
	g.edges = l.mesh.byRelation
	g.scratch = &scratchPool{rows: blockRows, in: g.inWidth, out: g.outWide, ops: w.ops, arena: w.arena.For(RelationArrays)}
	if source.ComposesRelations() {
		g.scratch.matrices = g.relations * g.inWidth
	}
	if o.Provided == nil || !o.Provided(l.shape.Layer) {
		l.Ghosts, l.copiesGhosts = w.newZeros(halo.Ghosts, l.mesh.Plan.Ghosts, l.Width), true
	}
	return g
}

func (g *relational) Begin(_ model.Pass, weights kernels.Mat) {
	g.weights = g.layer.RelationWeights(g.ops, g.composed, weights)
}

func (g *relational) Publish(Interval, kernels.Mat) {}

func (g *relational) PublishGhosts(kernels.Ops, int, int) {}

func (g *relational) PublishGrads(Interval, kernels.Mat) {}

func (g *relational) GatherOwn(i Interval, _ model.Pass) {
	dst := g.l.gatheredRows(i)
	i.Ops.Clear(dst)
	g.forward(i, g.edges.own, dst, g.l.Rows)
}

func (g *relational) GatherGhosts(i Interval, _ model.Pass) {
	g.forward(i, g.edges.ghost, g.l.gatheredRows(i), g.l.Ghosts)
}

// forward adds Σ_r S_r W_r to dst, the rows of an interval.
func (g *relational) forward(i Interval, e *relationRuns, dst, x kernels.Mat) {
	s := g.scratch.take()
	defer g.scratch.put(s)
	e.eachBlock(g.relations, i.Lo, i.Hi, func(r int, b block) {
		in := s.in.Part(0, b.len())
		i.Ops.SpMM(in, e.edges(b), x, false)
		g.addProduct(i.Ops, dst, s.out, s.index, e, b, i.Lo, func(to kernels.Mat, add bool) {
			i.Ops.MatMul(to, in, g.matrix(g.weights, r), add)
		})
	})
}

// addProduct adds a product to the rows of a block in dst, whose row 0 is vertex lo.
func (g *relational) addProduct(o kernels.Ops, dst, temporary kernels.Mat, index []uint32, e *relationRuns, b block, lo int,
	product func(to kernels.Mat, add bool)) {
	rows := e.rows[b.lo:b.hi]
	if first := int(rows[0]) - lo; int(rows[len(rows)-1])-lo == first+len(rows)-1 {
		product(dst.Part(first, first+len(rows)), true)
		return
	}
	temporary = temporary.Part(0, len(rows))
	product(temporary, false)
	o.AddRows(dst, kernels.Mat{}, relative(index, rows, lo), temporary)
}

// relative returns rows counted from lo, stored in index.
func relative(index, rows []uint32, lo int) kernels.Vector[uint32] {
	index = index[:len(rows)]
	for k, v := range rows {
		index[k] = v - uint32(lo)
	}
	return kernels.HostVector(index)
}

// rowsOf returns the rows of a block in x, whose row 0 is vertex lo: a part of x, or a copy in dst.
func rowsOf(o kernels.Ops, dst, x kernels.Mat, index []uint32, rows []uint32, lo int) kernels.Mat {
	if first := int(rows[0]) - lo; int(rows[len(rows)-1])-lo == first+len(rows)-1 {
		return x.Part(first, first+len(rows))
	}
	dst = dst.Part(0, len(rows))
	o.PackRows(dst, relative(index, rows, lo), x, kernels.Mat{})
	return dst
}

// matrix returns the matrix of relation r among those of all.
func (g *relational) matrix(all kernels.Mat, r int) kernels.Mat {
	return all.Part(r*g.inWidth, (r+1)*g.inWidth)
}

func (g *relational) GhostGrads(o kernels.Ops, first int, dst kernels.Mat) {
	s := g.scratch.take()
	defer g.scratch.put(s)
	o.Clear(dst)
	g.backward(o, s, g.edges.ghostsBySource, first, first+dst.Rows, dst, nil)
}

// backward adds Σ_r T_r W_rᵀ to dst, the gradients of the sources lo to hi-1, and calls also with each T_r.
func (g *relational) backward(o kernels.Ops, s *scratch, e *relationRuns, lo, hi int, dst kernels.Mat,
	also func(r int, rows []uint32, t kernels.Mat)) {
	e.eachBlock(g.relations, lo, hi, func(r int, b block) {
		t := s.out.Part(0, b.len())
		o.SpMM(t, e.edges(b), g.l.Grads, false)
		if also != nil {
			also(r, e.rows[b.lo:b.hi], t)
		}
		g.addProduct(o, dst, s.in, s.index, e, b, lo, func(to kernels.Mat, add bool) {
			o.MatMulTransB(to, t, g.matrix(g.weights, r), add)
		})
	})
}

// GatherBackward also computes the gradients of the matrices, in the interval's Frame.Grad.
func (g *relational) GatherBackward(i Interval, _ model.Pass) {
	o, dst := i.Ops, g.l.backwardRows(i)
	s := g.scratch.take()
	defer g.scratch.put(s)
	grad := g.layer.RelationWeights(o, s.matrices, i.Frame.Grad)
	o.Clear(grad)
	o.Clear(dst)
	own := i.rows(g.l.Recomputed)
	g.backward(o, s, g.edges.ownBySource, i.Lo, i.Hi, dst, func(r int, rows []uint32, t kernels.Mat) {
		o.MatMulTransA(g.matrix(grad, r), rowsOf(o, s.in, own, s.index, rows, i.Lo), t, true)
	})
	if !i.Sources {
		outputs, e := i.rows(g.l.Grads), g.edges.ghost
		e.eachBlock(g.relations, i.Lo, i.Hi, func(r int, b block) {
			in := s.in.Part(0, b.len())
			o.SpMM(in, e.edges(b), g.l.Ghosts, false)
			o.MatMulTransA(g.matrix(grad, r), in, rowsOf(o, s.out, outputs, s.index, e.rows[b.lo:b.hi], i.Lo), true)
		})
	}
	g.layer.RelationGrads(o, grad, i.Frame.Weights, i.Frame.Grad)
}

// scratch is the memory of a task.
type scratch struct {
	in, out, matrices kernels.Mat
	index             []uint32
}

// scratchPool has the scratch of tasks that do not run.
type scratchPool struct {
	rows, in, out, matrices int
	ops                     kernels.Ops
	arena                   *mapped.Arena
	free                    []*scratch
	mutex                   sync.Mutex
}

func (p *scratchPool) take() *scratch {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	return &scratch{in: kernels.NewMat(p.ops, p.arena, p.rows, p.in), out: kernels.NewMat(p.ops, p.arena, p.rows, p.out),
		matrices: kernels.NewMat(p.ops, p.arena, p.matrices, p.out), index: make([]uint32, p.rows)}
}

func (p *scratchPool) put(s *scratch) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.free = append(p.free, s)
}

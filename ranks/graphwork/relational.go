package graphwork

import (
	"slices"
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
//
// If outputs are wider than inputs, as logits of many classes are, the gradients are multiplied before they are
// gathered: PublishGrads computes S_rᵀ G and the rows G W_rᵀ of each destination and relation, of the input's
// width, which the backward pass gathers along the edges of all relations at once.
type relational struct {
	l                 *Layer
	layer             model.Relational
	edges             *relationEdges
	ops               kernels.Ops
	arena             *mapped.Arena
	composed          kernels.Mat // memory for weights, if matrices are composed
	weights           kernels.Mat // matrices of the pass [relations·in x out]
	relations         int
	inWidth, outWidth int
	scratch           scratchPool[scratch]
	// idle relations lead only to vertices whose outputs have no gradient; nil: all have one.
	idle []bool
	// Of gradients that are multiplied first, from own vertices and from ghosts; nil: gathered first.
	ownProducts, ghostProducts *gradProducts
}

// gradProducts are gradients of destinations multiplied by matrices: a row for each run that is not idle.
type gradProducts struct {
	runs   *relationRuns
	first  []int       // row of the first run of each relation, or -1
	rows   kernels.Mat // [runs x in]
	source csr         // columns are rows, by source
	scale  kernels.Vector[float32]
}

// blockRows is the number of runs that are multiplied at once: their rows fit in a second-level cache
// with the matrix of a relation.
const blockRows = 512

// RelationArrays is the purpose of the arrays of edges by relation.
const RelationArrays = "edges by relation"

// newRelational returns the relational gather of a layer.
func (w *Work) newRelational(l *Layer, source model.Relational, o Options) *relational {
	g := &relational{l: l, layer: source, ops: w.ops, arena: w.arena}
	g.relations, g.inWidth, g.outWidth = source.RelationShape()
	if source.ComposesRelations() {
		g.composed = w.newZeros(RelationArrays, g.relations*g.inWidth, g.outWidth)
	}
	g.edges = w.relationEdgesOf(l.mesh, g.relations)
	if spec := &w.store.Network.Spec; o.Targets && !spec.Sums() && l.shape.Layer == slices.Max(spec.GatherLayers()) {
		w.arena.Fill(func() { g.idle = g.edges.idle(w.shard.Split) })
	}
	if source.MultipliesGradsFirst() && !o.Forward {
		g.ownProducts = w.newGradProducts(g, g.edges.own, g.edges.fromOwn, g.edges.ownCount)
		if !o.OneWay {
			g.ghostProducts = w.newGradProducts(g, g.edges.ghost, g.edges.fromGhosts, g.edges.ghostCount)
		}
	} else {
		g.edges.reverse(w, g.relations, o)
	}
	matrices := 0
	if source.ComposesRelations() {
		matrices = g.relations * g.inWidth
	}
	g.scratch.create = func() *scratch {
		newMat := func(rows, cols int) kernels.Mat { return w.newZeros(RelationArrays, rows, cols) }
		return &scratch{in: newMat(blockRows, g.inWidth), out: newMat(blockRows, g.outWidth), matrices: newMat(matrices, g.outWidth),
			index: make([]uint32, blockRows)}
	}
	if o.Provided == nil || !o.Provided(l.shape.Layer) {
		l.Ghosts, l.copiesGhosts = w.newZeros(halo.Ghosts, l.mesh.Plan.Ghosts, l.Width), true
	}
	return g
}

func (g *relational) Begin(_ model.Pass, weights kernels.Mat) {
	g.arena.Fill(func() { g.weights = g.layer.RelationWeights(g.ops, g.composed, weights) })
}

func (g *relational) Publish(Interval, kernels.Mat) {}

func (g *relational) PublishGhosts(kernels.Ops, int, int) {}

func (g *relational) PublishGrads(i Interval, grads kernels.Mat) {
	if g.ownProducts == nil {
		return
	}
	s := g.scratch.take()
	defer g.scratch.put(s)
	o := i.Ops
	sums := g.layer.RelationWeights(o, s.matrices, i.Frame.Grad)
	o.Clear(sums)
	multiply := func(p *gradProducts, x kernels.Mat) {
		p.runs.eachBlock(i.Lo, i.Hi, func(r int, b block) {
			at := p.first[r]
			if at < 0 {
				return
			}
			in, out := s.in.Part(0, b.len()), rowsOf(o, s.out, grads, s.index, p.runs.rows[b.lo:b.hi], i.Lo)
			o.SpMM(in, p.runs.edges(b), x, false)
			o.MatMulTransA(g.matrix(sums, r), in, out, true)
			at -= p.runs.first[r]
			o.MatMulTransB(p.rows.Part(at+b.lo, at+b.hi), out, g.matrix(g.weights, r), false)
		})
	}
	multiply(g.ownProducts, g.ownRows())
	if g.ghostProducts != nil {
		multiply(g.ghostProducts, g.l.Ghosts)
	}
	g.layer.RelationGrads(o, sums, i.Frame.Weights, i.Frame.Grad)
}

// ownRows returns the rows of own vertices in the backward pass.
func (g *relational) ownRows() kernels.Mat {
	if g.l.Recomputed.IsNil() { // the features
		return g.l.Rows
	}
	return g.l.Recomputed
}

// gather sets dst to the products of the sources lo to hi-1.
func (p *gradProducts) gather(o kernels.Ops, lo, hi int, dst kernels.Mat) {
	e := p.source.edges(lo, hi)
	e.ColScale = p.scale
	o.SpMM(dst, e, p.rows, false)
}

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
	e.eachBlock(i.Lo, i.Hi, func(r int, b block) {
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
	if g.ghostProducts != nil {
		g.ghostProducts.gather(o, first, first+dst.Rows, dst)
		return
	}
	s := g.scratch.take()
	defer g.scratch.put(s)
	o.Clear(dst)
	g.backward(o, s, g.edges.ghostsBySource, first, first+dst.Rows, dst, nil)
}

// backward adds Σ_r T_r W_rᵀ to dst, the gradients of the sources lo to hi-1, and calls also with each T_r.
func (g *relational) backward(o kernels.Ops, s *scratch, e *relationRuns, lo, hi int, dst kernels.Mat,
	also func(r int, rows []uint32, t kernels.Mat)) {
	e.eachBlock(lo, hi, func(r int, b block) {
		if g.idle != nil && g.idle[r] {
			return
		}
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

// GatherBackward also computes the gradients of the matrices, in the interval's Frame.Grad, unless
// PublishGrads has.
func (g *relational) GatherBackward(i Interval, _ model.Pass) {
	o, dst := i.Ops, g.l.backwardRows(i)
	if g.ownProducts != nil {
		g.ownProducts.gather(o, i.Lo, i.Hi, dst)
		return
	}
	s := g.scratch.take()
	defer g.scratch.put(s)
	grad := g.layer.RelationWeights(o, s.matrices, i.Frame.Grad)
	o.Clear(grad)
	o.Clear(dst)
	own := i.rows(g.ownRows())
	g.backward(o, s, g.edges.ownBySource, i.Lo, i.Hi, dst, func(r int, rows []uint32, t kernels.Mat) {
		o.MatMulTransA(g.matrix(grad, r), rowsOf(o, s.in, own, s.index, rows, i.Lo), t, true)
	})
	if !i.Sources {
		outputs, e := i.rows(g.l.Grads), g.edges.ghost
		e.eachBlock(i.Lo, i.Hi, func(r int, b block) {
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
type scratchPool[T any] struct {
	create func() *T
	free   []*T
	mutex  sync.Mutex
}

func (p *scratchPool[T]) take() *T {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	return p.create()
}

func (p *scratchPool[T]) put(s *T) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.free = append(p.free, s)
}

package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// relationalAttention is attention whose scores have a term t[r] for each relation r
// (model.RelationalAttention). It gathers relation by relation: a running softmax continues from one
// relation to the next. Forward, the term is added to the scores of destinations, and backward to the
// scores of sources. The gradient of t[r] is the sum of the gradients of either scores over the edges of
// relation r: of sources for edges from own vertices, of destinations for edges from ghosts.
type relationalAttention struct {
	*attention
	edges     *relationEdges
	terms     model.Param
	passTerms kernels.Mat // of the pass, for GhostGrads
	relations int
	pool      scratchPool[attentionScratch]
}

// newAttentionOfRelations returns the attention of a layer that depends on relations.
func (w *Work) newAttentionOfRelations(l *Layer, layer model.Layer, o Options) Gather {
	if emission, ok := layer.(model.RelationalEmission); ok {
		return w.newRelationalEmission(l, emission, o)
	}
	return w.newRelationalAttention(l, layer.(model.RelationalAttention), o)
}

// newRelationalAttention returns the relational attention of a layer.
func (w *Work) newRelationalAttention(l *Layer, source model.RelationalAttention, o Options) *relationalAttention {
	g := &relationalAttention{attention: w.newAttention(l, source, o), terms: source.RelationTerms()}
	g.relations = g.terms.Rows - 1
	g.pool.create = func() *attentionScratch { return &attentionScratch{} }
	g.edges = w.relationEdgesOf(l.mesh, g.relations)
	g.edges.reverse(w, g.relations, o)
	if n := w.shard.NumOwn(); l.mesh.Plan.Ghosts > 0 {
		heads := g.shape.Heads
		g.back.r, g.back.lse, g.back.dots = w.newZeros(Scores, n, heads), w.newZeros(Scores, n, heads), w.newZeros(Scores, n, heads)
	}
	return g
}

func (g *relationalAttention) Begin(p model.Pass, weights kernels.Mat) {
	g.attention.Begin(p, weights)
	g.passTerms = g.terms.In(weights)
}

func (g *relationalAttention) GatherOwn(i Interval, p model.Pass) {
	s := g.pool.take()
	defer g.pool.put(s)
	n := i.Hi - i.Lo
	loops := s.emptyRows(n)
	loops.SelfLoops = true
	g.gather(i, p, s, g.relations, span{0, n}, loops, g.ownEmitted(g.l.Rows), false)
	g.edges.own.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := g.edges.own.span(b, i.Lo)
		g.gather(i, p, s, r, at, s.wholeRows(g.edges.own, b, at, i.Lo), g.ownEmitted(g.l.Rows), true)
	})
}

// gather gathers along the edges of relation r into the rows at of an interval.
func (g *relationalAttention) gather(i Interval, p model.Pass, s *attentionScratch, r int, at span, e kernels.Edges, x kernels.Emitted,
	merge bool) {
	part := func(m kernels.Mat) kernels.Mat {
		if m.IsNil() {
			return m
		}
		return m.Part(at.lo, at.hi)
	}
	e.First = uint32(i.Lo + at.lo)
	scores := s.shifted(i.Ops, part(i.forward(model.Scores)), g.terms.In(i.Frame.Weights), r)
	i.Ops.AttentionGather(g.inInterval(i, p), part(i.rows(g.l.gathered)), part(i.signed(i.forward)), part(i.rows(g.stats)),
		g.l.maskTargets(p, e), x, scores, merge)
}

func (g *relationalAttention) GatherGhosts(i Interval, p model.Pass) {
	s := g.pool.take()
	defer g.pool.put(s)
	g.edges.ghost.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := g.edges.ghost.span(b, i.Lo)
		g.gather(i, p, s, r, at, s.wholeRows(g.edges.ghost, b, at, i.Lo), kernels.Emitted{X: g.l.Ghosts, Scores: g.ghostScores}, true)
	})
	i.Ops.AttentionFinish(g.inInterval(i, p), i.rows(g.l.gathered), i.signed(i.forward), i.rows(g.lse), i.rows(g.stats))
}

func (g *relationalAttention) PublishGrads(i Interval, grads kernels.Mat) {
	g.attention.PublishGrads(i, grads)
	if !g.back.r.IsNil() {
		i.Ops.Copy(i.rows(g.back.r), i.backward(model.Scores))
		i.Ops.Copy(i.rows(g.back.lse), i.rows(g.lse))
		i.Ops.RowDots(i.rows(g.back.dots), grads, i.rows(g.l.gathered))
	}
}

func (g *relationalAttention) GhostGrads(o kernels.Ops, first int, dst kernels.Mat) {
	s := g.pool.take()
	defer g.pool.put(s)
	own := g.l.mesh.shard.NumOwn()
	o.Clear(dst)
	rows := g.backwardGhosts.Part(first, first+dst.Rows)
	g.edges.ghostsBySource.eachRelation(first, first+dst.Rows, func(r int, b block) {
		at := g.edges.ghostsBySource.span(b, first)
		e := s.wholeRows(g.edges.ghostsBySource, b, at, first)
		o.Add(dst.Part(at.lo, at.hi), g.fromTargets(o, g.whole, s, r, e, own+first+at.lo, rows.Part(at.lo, at.hi), g.passTerms))
	})
}

// fromTargets returns the gradient of the sources' rows x along the edges e of relation r. The first
// source has the local id first.
func (g *relationalAttention) fromTargets(o kernels.Ops, a kernels.Attention, s *attentionScratch, r int, e kernels.Edges, first int,
	x, terms kernels.Mat) kernels.Mat {
	own := g.l.mesh.shard.NumOwn()
	grads := s.grads.resized(x.Rows, x.Cols)
	rows := s.shiftedRows(o, x, terms, r, g.shape)
	o.AttentionGradSrc(a, grads, g.l.maskSources(e), first, own, rows, g.attended())
	return grads
}

// GatherBackward also computes the gradients of the terms, in the interval's Frame.Grad.
func (g *relationalAttention) GatherBackward(i Interval, p model.Pass) {
	s := g.pool.take()
	defer g.pool.put(s)
	o, l, n := i.Ops, g.l, i.Hi-i.Lo
	params, terms, sums := g.inInterval(i, p), g.terms.In(i.Frame.Weights), g.terms.In(i.Frame.Grad)
	dst, rows := l.backwardRows(i), i.rows(l.Recomputed)
	o.Clear(sums)
	o.Clear(dst)
	back := func(r int, at span, e kernels.Edges) {
		grads := g.fromTargets(o, params, s, r, e, i.Lo+at.lo, rows.Part(at.lo, at.hi), terms)
		o.Add(dst.Part(at.lo, at.hi), grads)
		scores := s.scores.resized(grads.Rows, g.shape.Heads)
		s.takeScores(scores, grads, g.shape)
		o.ColumnSums(sums.Part(r, r+1), scores, true)
	}
	if !i.Sources {
		loops := s.emptyRows(n)
		loops.SelfLoops, loops.First = true, uint32(i.Lo)
		back(g.relations, span{0, n}, loops)
	}
	g.edges.ownBySource.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := g.edges.ownBySource.span(b, i.Lo)
		back(r, at, s.wholeRows(g.edges.ownBySource, b, at, i.Lo))
	})
	if i.Sources {
		o.Clear(i.backward(model.ScoresGrad))
		return
	}
	ghosts := kernels.Emitted{X: *g.backwardGhosts, Scores: g.ghostScores}
	g.edges.ghost.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := g.edges.ghost.span(b, i.Lo)
		part := func(m kernels.Mat) kernels.Mat { return i.rows(m).Part(at.lo, at.hi) }
		e := s.wholeRows(g.edges.ghost, b, at, i.Lo)
		e.First = uint32(i.Lo + at.lo)
		state := kernels.Attended{R: s.shifted(o, part(g.back.r), terms, r), LSE: part(g.back.lse), Grad: part(l.Grads),
			Dots: part(g.back.dots)}
		grads := s.scores.resized(at.hi-at.lo, g.shape.Heads)
		o.AttentionGradDst(params, grads, kernels.Mat{}, e, ghosts, state, false)
		o.ColumnSums(sums.Part(r, r+1), grads, true)
	})
}

// attentionScratch is the memory of a task of relational attention.
type attentionScratch struct {
	begin, end          []int64
	rows, grads, scores growing
	shiftedScores       growing
}

// growing is a matrix whose memory grows.
type growing struct{ values []float32 }

func (m *growing) resized(rows, cols int) kernels.Mat {
	if n := rows * cols; n > len(m.values) {
		m.values = make([]float32, n)
	}
	return kernels.HostMat(rows, cols, m.values[:rows*cols])
}

// emptyRows returns n rows without edges.
func (s *attentionScratch) emptyRows(n int) kernels.Edges {
	if n > len(s.begin) {
		s.begin, s.end = make([]int64, n), make([]int64, n)
	}
	clear(s.begin[:n])
	clear(s.end[:n])
	return kernels.Edges{Begin: kernels.HostVector(s.begin[:n]), End: kernels.HostVector(s.end[:n])}
}

// wholeRows returns the edges of a block of runs for all rows at of an interval that begins at row lo,
// also for rows without a run.
func (s *attentionScratch) wholeRows(e *relationRuns, b block, at span, lo int) kernels.Edges {
	rows := s.emptyRows(at.hi - at.lo)
	begin, end, next := e.begin.Host(), e.end.Host(), 0
	before := begin[b.lo]
	for run := b.lo; run < b.hi; run++ {
		row := int(e.rows[run]) - lo - at.lo
		for ; next < row; next++ {
			s.begin[next], s.end[next] = before, before
		}
		s.begin[row], s.end[row] = begin[run], end[run]
		before, next = end[run], row+1
	}
	rows.Cols, rows.Base = e.cols, e.base
	return rows
}

// shifted returns scores [n x heads] plus the terms of relation r.
func (s *attentionScratch) shifted(o kernels.Ops, scores, terms kernels.Mat, r int) kernels.Mat {
	dst := s.shiftedScores.resized(scores.Rows, scores.Cols)
	o.BiasReLUDropout(dst, scores, terms.Part(r, r+1), false, nil)
	return dst
}

// shiftedRows returns emitted rows x with the terms of relation r added to their scores.
func (s *attentionScratch) shiftedRows(o kernels.Ops, x, terms kernels.Mat, r int, a kernels.Attention) kernels.Mat {
	dst := s.rows.resized(x.Rows, x.Cols)
	o.Copy(dst, x)
	values, t := dst.Host(), terms.Part(r, r+1).Host()
	for v := range x.Rows {
		scores := values[v*x.Cols+a.Columns() : (v+1)*x.Cols]
		for h := range scores {
			scores[h] += t[h]
		}
	}
	return dst
}

// takeScores copies the scores of emitted rows to dst [n x heads].
func (s *attentionScratch) takeScores(dst, rows kernels.Mat, a kernels.Attention) {
	to, from := dst.Host(), rows.Host()
	for v := range rows.Rows {
		copy(to[v*a.Heads:(v+1)*a.Heads], from[v*rows.Cols+a.Columns():])
	}
}

package graphwork

import (
	"math"
	"slices"

	"siafu/kernels"
	"siafu/kernels/model"
)

// relationalAttention is attention whose scores have a term t[r] for each relation r
// (model.RelationalAttention). It gathers relation by relation: a running softmax continues from one
// relation to the next. Forward, the term is added to the scores of destinations, and backward to the
// scores of sources. The gradient of t[r] is the sum of the gradients of either scores over the edges of
// relation r: of sources for edges from own vertices, of destinations for edges from ghosts.
//
// With β > 0, rows are (1-β) sums + Σ_d (1-β) β^d sums(d): sums(d) are weighted by the softmax of d layers before,
// which has no factor 1-β in the first layer. A running softmax that starts at its final logarithm lse yields
// weights exp(s - lse), and with lse + ln(1/c) these weights times c. In layers with β, lse includes ln(1/(1-β)).
type relationalAttention struct {
	*attention
	edges     *relationEdges
	terms     model.Param
	passTerms kernels.Mat // of the pass, for GhostGrads
	relations int
	beta      float64
	earlier   []earlierSoftmax // of the layers before, nearest first; none if beta is 0
	own       kernels.Mat      // ln(1/(1-β)) [1 x heads]
	pool      scratchPool[attentionScratch]
}

// earlierSoftmax is the softmax of an earlier layer.
type earlierSoftmax struct {
	of     *relationalAttention
	shift  kernels.Mat // d·ln(1/β) [1 x heads], to add to its lse
	packed kernels.Mat // its scores and lse in the format of PackGrad [own x 3·heads]
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
	n, heads := w.shard.NumOwn(), g.shape.Heads
	if l.mesh.Plan.Ghosts > 0 || w.store.Network.Spec.Design.EdgeResidual > 0 {
		g.back.r, g.back.lse, g.back.dots = w.newZeros(Scores, n, heads), w.newZeros(Scores, n, heads), w.newZeros(Scores, n, heads)
	}
	if g.beta = source.EdgeResidual(); g.beta == 0 {
		return g
	}
	same := func(x float64) kernels.Mat {
		return kernels.HostMat(1, heads, slices.Repeat([]float32{float32(x)}, heads))
	}
	g.sums, g.own = w.newZeros(Scores, n, g.shape.Columns()), same(-math.Log(1-g.beta))
	for k := l.shape.Layer - 1; k >= 0; k-- {
		if w.layers[k] != nil {
			g.earlier = append(g.earlier, earlierSoftmax{w.layers[k].Gather.(*relationalAttention),
				same(-math.Log(g.beta) * float64(len(g.earlier)+1)), w.newZeros(Scores, n, 3*heads)})
		}
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
	if !g.back.r.IsNil() { // later layers read it
		i.Ops.Copy(i.rows(g.back.r), i.forward(model.Scores))
	}
	if g.beta > 0 {
		i.Ops.Clear(i.rows(g.l.gathered))
	}
	loops := s.emptyRows(n)
	loops.SelfLoops = true
	g.gather(i, p, s, g.relations, span{0, n}, loops, false)
	g.edges.own.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := g.edges.own.span(b, i.Lo)
		g.gather(i, p, s, r, at, s.wholeRows(g.edges.own, b, at, i.Lo), false)
	})
}

// gather gathers along the edges of relation r into the rows at of an interval, from own vertices or from
// ghosts.
func (g *relationalAttention) gather(i Interval, p model.Pass, s *attentionScratch, r int, at span, e kernels.Edges, ghosts bool) {
	part := func(m kernels.Mat) kernels.Mat {
		if m.IsNil() {
			return m
		}
		return m.Part(at.lo, at.hi)
	}
	e.First = uint32(i.Lo + at.lo)
	x, e := g.emitted(ghosts), g.l.maskTargets(p, e)
	scores := s.shifted(i.Ops, part(i.forward(model.Scores)), g.terms.In(i.Frame.Weights), r)
	i.Ops.AttentionGather(g.inInterval(i, p), part(i.rows(g.sums)), part(i.signed(i.forward)), part(i.rows(g.stats)),
		e, x, scores, ghosts || r < g.relations)
	for _, t := range g.earlier {
		stats := s.stats.resized(at.hi-at.lo, 2*g.shape.Heads)
		i.Ops.Clear(stats)
		i.Ops.PutColumns(stats, 0, s.shifted(i.Ops, part(i.rows(t.of.lse)), t.shift, 0))
		x.Scores = t.of.emitted(ghosts).Scores
		i.Ops.AttentionGather(t.of.whole, part(i.rows(g.l.gathered)), kernels.Mat{}, stats, e, x,
			s.shifted(i.Ops, part(i.rows(t.of.back.r)), t.of.passTerms, r), true)
	}
}

// emitted returns the rows of own vertices or of ghosts.
func (g *relationalAttention) emitted(ghosts bool) kernels.Emitted {
	if ghosts {
		return kernels.Emitted{X: g.l.Ghosts, Scores: g.ghostScores}
	}
	return g.ownEmitted(g.l.Rows)
}

func (g *relationalAttention) GatherGhosts(i Interval, p model.Pass) {
	s := g.pool.take()
	defer g.pool.put(s)
	g.edges.ghost.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := g.edges.ghost.span(b, i.Lo)
		g.gather(i, p, s, r, at, s.wholeRows(g.edges.ghost, b, at, i.Lo), true)
	})
	i.Ops.AttentionFinish(g.inInterval(i, p), i.rows(g.sums), i.signed(i.forward), i.rows(g.lse), i.rows(g.stats))
	if g.beta > 0 {
		i.Ops.Blend(i.rows(g.l.gathered), 1, i.rows(g.sums), float32(1-g.beta))
		i.Ops.Copy(i.rows(g.lse), s.shifted(i.Ops, i.rows(g.lse), g.own, 0))
	}
}

func (g *relationalAttention) PublishGrads(i Interval, grads kernels.Mat) {
	g.attention.PublishGrads(i, grads)
	s := g.pool.take()
	defer g.pool.put(s)
	for _, x := range g.earlier {
		lse := s.shifted(i.Ops, i.rows(x.of.lse), x.shift, 0)
		i.Ops.PackGrad(g.shape, x.packed, i.Lo, i.rows(x.of.back.r), lse, lse) // fromTargets ignores the gradients of these scores
	}
	if scores := i.backward(model.ScoresGrad); g.beta > 0 {
		i.Ops.Blend(scores, float32(1-g.beta), scores, 0)
	}
	if !g.back.r.IsNil() {
		i.Ops.Copy(i.rows(g.back.lse), i.rows(g.lse))
		i.Ops.RowDots(i.rows(g.back.dots), grads, i.rows(g.sums))
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
	grads, e := s.grads.resized(x.Rows, x.Cols), g.l.maskSources(e)
	rows := s.shiftedRows(o, x, terms, r, g.shape)
	o.AttentionGradSrc(a, grads, e, first, own, rows, g.attended())
	for _, t := range g.earlier {
		from, at, more := t.of.scores, first, s.more.resized(x.Rows, x.Cols)
		if first >= own {
			from, at = t.of.ghostScores, first-own
		}
		eachScore(rows, g.shape, func(v, h int, score *float32) {
			*score = g.shape.PackedScore(from, at+v, h) + t.of.passTerms.Host()[r*g.shape.Heads+h]
		})
		o.AttentionGradSrc(t.of.whole, more, e, first, own, rows, kernels.Attended{Grad: g.l.Grads, Packed: t.packed})
		eachScore(more, g.shape, func(_, _ int, score *float32) { *score = 0 })
		o.Add(grads, more)
	}
	return grads
}

// eachScore calls do for the score of each vertex and head in emitted rows.
func eachScore(rows kernels.Mat, a kernels.Attention, do func(v, h int, score *float32)) {
	values := rows.Host()
	for v := range rows.Rows {
		for h := range a.Heads {
			do(v, h, &values[v*rows.Cols+a.Columns()+h])
		}
	}
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
		o.CopyColumns(scores, grads, g.shape.Columns())
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
	stats, more         growing
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
	t := terms.Part(r, r+1).Host()
	eachScore(dst, a, func(_, h int, score *float32) { *score += t[h] })
	return dst
}

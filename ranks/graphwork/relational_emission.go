package graphwork

import (
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// relationalEmission is attention along rows that vertices emit for each relation
// (model.RelationalEmission). The row of vertex u for relation r is row u·relations + r of the emitted
// rows as a matrix with a row for each relation. A running softmax over all relations continues from one
// relation to the next.
type relationalEmission struct {
	*attention
	edges       *relationEdges
	relations   int           // self loops included, as the last one
	softmaxes   []softmax     // one for all relations, whose sums are the layer's, or one for each relation
	own, ghosts []uint32      // columns of edges.own and edges.ghost, as rows of relations
	loops       kernels.Edges // self loops, as rows of relations
	packed      []kernels.Mat // of each relation, in the format of PackGrad [own x 3·heads]
	pool        scratchPool[attentionScratch]
}

// softmax is the state of a softmax over edges into each own vertex.
type softmax struct {
	gathered         kernels.Mat // weighted sums of rows [own x Columns]
	stats, lse, dots kernels.Mat // as those of attention
}

// softmax returns the softmax with the edges of relation r.
func (g *relationalEmission) softmax(r int) *softmax { return &g.softmaxes[r%len(g.softmaxes)] }

// newRelationalEmission returns the attention of a layer that emits rows of relations.
func (w *Work) newRelationalEmission(l *Layer, source model.RelationalEmission, o Options) *relationalEmission {
	g := &relationalEmission{attention: w.newAttention(l, source, o), relations: source.EmittedRelations()}
	g.pool.create = func() *attentionScratch { return &attentionScratch{} }
	g.edges = w.relationEdgesOf(l.mesh, g.relations-1)
	g.edges.reverse(w, g.relations-1, o)
	n, heads, a := w.shard.NumOwn(), g.shape.Heads, w.arena.For(RelationArrays)
	if g.softmaxes = make([]softmax, source.Softmaxes()); len(g.softmaxes) == 1 {
		g.softmaxes[0] = softmax{l.gathered, g.stats, g.lse, g.back.dots}
	} else {
		for r := range g.softmaxes {
			g.softmaxes[r] = softmax{w.newZeros(Scores, n, g.shape.Columns()), w.newZeros(Scores, n, 2*heads), w.newZeros(Scores, n, heads),
				w.newZeros(Scores, n, heads)}
		}
	}
	g.scores = w.newZeros(Scores, n*g.relations, heads)
	g.ghostScores = w.newZeros(Scores, l.mesh.Plan.Ghosts*g.relations, heads)
	g.own, g.ghosts = g.edges.own.columnsOfRelations(a, g.relations), g.edges.ghost.columnsOfRelations(a, g.relations)
	begin, columns := mapped.Make[int64](a, n+1), mapped.Make[uint32](a, n)
	a.Fill(func() {
		for v := range columns {
			begin[v+1], columns[v] = int64(v+1), uint32((v+1)*g.relations-1)
		}
	})
	g.loops = kernels.Edges{Begin: kernels.HostVector(begin[:n]), End: kernels.HostVector(begin[1:]), Cols: kernels.HostVector(columns)}
	for range g.relations {
		g.packed = append(g.packed, w.newZeros(Scores, n, 3*heads))
	}
	return g
}

// columnsOfRelations returns the columns of all runs as rows of relations: column u, counted from the
// base, of an edge of relation r becomes u·relations + r.
func (e *relationRuns) columnsOfRelations(a *mapped.Arena, relations int) []uint32 {
	columns := mapped.Make[uint32](a, e.cols.Len())
	a.Fill(func() {
		begin, end, from := e.begin.Host(), e.end.Host(), e.cols.Host()
		for r := range len(e.first) - 1 {
			for run := e.first[r]; run < e.first[r+1]; run++ {
				for k := begin[run]; k < end[run]; k++ {
					columns[k] = (from[k]-e.base)*uint32(relations) + uint32(r)
				}
			}
		}
	})
	return columns
}

// byRelation returns emitted rows as a matrix with a row for each relation.
func (g *relationalEmission) byRelation(rows kernels.Mat) kernels.Mat {
	return rows.Reshape(rows.Rows*g.relations, g.shape.Emitted())
}

func (g *relationalEmission) Publish(i Interval, rows kernels.Mat) {
	g.packScores(i.Ops, g.scores, i.Lo*g.relations, g.byRelation(rows))
}

func (g *relationalEmission) PublishGhosts(o kernels.Ops, first, count int) {
	g.packScores(o, g.ghostScores, first*g.relations, g.byRelation(g.l.Ghosts.Part(first, first+count)))
}

// eachRelation calls do for the rows of an interval with edges of each relation: with those from own
// vertices, self loops first, or with those from ghosts.
func (g *relationalEmission) eachRelation(i Interval, s *attentionScratch, ghosts bool, do func(r int, at span, e kernels.Edges)) {
	runs, columns := g.edges.own, g.own
	if ghosts {
		runs, columns = g.edges.ghost, g.ghosts
	} else {
		do(g.relations-1, span{0, i.Hi - i.Lo}, i.edges(g.loops))
	}
	runs.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := runs.span(b, i.Lo)
		e := s.wholeRows(runs, b, at, i.Lo)
		e.Cols, e.Base, e.First = kernels.HostVector(columns), 0, uint32(i.Lo+at.lo)
		do(r, at, e)
	})
}

// emitted returns the rows of all relations of own vertices or of ghosts.
func (g *relationalEmission) emitted(rows kernels.Mat, ghosts bool) kernels.Emitted {
	if ghosts {
		return kernels.Emitted{X: g.byRelation(rows), Scores: g.ghostScores}
	}
	return kernels.Emitted{X: g.byRelation(rows.Part(0, g.lse.Rows)), Scores: g.scores}
}

func (g *relationalEmission) gather(i Interval, p model.Pass, rows kernels.Mat, ghosts bool) {
	s := g.pool.take()
	defer g.pool.put(s)
	along := func(r int, at span, e kernels.Edges, merge bool) {
		scores, to := s.columns(i.Ops, i.forward(model.Scores).Part(at.lo, at.hi), r*g.shape.Heads, g.shape.Heads), g.softmax(r)
		i.Ops.AttentionGather(g.shape, i.rows(to.gathered).Part(at.lo, at.hi), kernels.Mat{}, i.rows(to.stats).Part(at.lo, at.hi),
			g.l.maskTargets(p, e), g.emitted(rows, ghosts), scores, merge)
	}
	for r := range g.softmaxes[1:] { // not of the last relation, whose self loops begin a softmax
		if !ghosts {
			along(r, span{0, i.Hi - i.Lo}, s.emptyRows(i.Hi-i.Lo), false)
		}
	}
	g.eachRelation(i, s, ghosts, func(r int, at span, e kernels.Edges) { along(r, at, e, ghosts || r < g.relations-1) })
}

func (g *relationalEmission) GatherOwn(i Interval, p model.Pass) { g.gather(i, p, g.l.Rows, false) }

func (g *relationalEmission) GatherGhosts(i Interval, p model.Pass) {
	g.gather(i, p, g.l.Ghosts, true)
	for r, x := range g.softmaxes {
		i.Ops.AttentionFinish(g.shape, i.rows(x.gathered), kernels.Mat{}, i.rows(x.lse), i.rows(x.stats))
		switch sum := i.rows(g.l.gathered); {
		case len(g.softmaxes) > 1 && r == 0:
			i.Ops.Copy(sum, i.rows(x.gathered))
		case r > 0:
			i.Ops.Add(sum, i.rows(x.gathered))
		}
	}
}

func (g *relationalEmission) PublishGrads(i Interval, grads kernels.Mat) {
	s := g.pool.take()
	defer g.pool.put(s)
	for _, x := range g.softmaxes {
		i.Ops.RowDots(i.rows(x.dots), grads, i.rows(x.gathered))
	}
	for r, packed := range g.packed {
		scores := s.columns(i.Ops, i.backward(model.Scores), r*g.shape.Heads, g.shape.Heads)
		i.Ops.PackGrad(g.shape, packed, i.Lo, scores, i.rows(g.softmax(r).lse), i.rows(g.softmax(r).dots))
	}
}

// toSources sets the columns of relation r in dst [n x relations · Emitted] to the gradient of the
// sources' rows x of the same shape, along edges e by source. The first source has the local id first.
func (g *relationalEmission) toSources(o kernels.Ops, s *attentionScratch, r int, e kernels.Edges, first int, dst, x kernels.Mat) {
	width := g.shape.Emitted()
	rows, grads := s.rows.resized(x.Rows, width), s.grads.resized(x.Rows, width)
	o.CopyColumns(rows, x, r*width)
	o.AttentionGradSrc(g.shape, grads, e, first, g.l.mesh.shard.NumOwn(), rows, kernels.Attended{Grad: g.l.Grads, Packed: g.packed[r]})
	o.PutColumns(dst, r*width, grads)
}

func (g *relationalEmission) GhostGrads(o kernels.Ops, first int, dst kernels.Mat) {
	s := g.pool.take()
	defer g.pool.put(s)
	o.Clear(dst)
	runs, rows := g.edges.ghostsBySource, g.backwardGhosts.Part(first, first+dst.Rows)
	runs.eachRelation(first, first+dst.Rows, func(r int, b block) {
		at := runs.span(b, first)
		e := s.wholeRows(runs, b, at, first)
		g.toSources(o, s, r, e, g.l.mesh.shard.NumOwn()+first+at.lo, dst.Part(at.lo, at.hi), rows.Part(at.lo, at.hi))
	})
}

func (g *relationalEmission) GatherBackward(i Interval, _ model.Pass) {
	s := g.pool.take()
	defer g.pool.put(s)
	o, dst, rows, n := i.Ops, g.l.backwardRows(i), i.rows(g.l.Recomputed), i.Hi-i.Lo
	o.Clear(dst)
	if !i.Sources {
		loops := s.emptyRows(n)
		loops.SelfLoops, loops.First = true, uint32(i.Lo)
		g.toSources(o, s, g.relations-1, loops, i.Lo, dst, rows)
	}
	runs := g.edges.ownBySource
	runs.eachRelation(i.Lo, i.Hi, func(r int, b block) {
		at := runs.span(b, i.Lo)
		g.toSources(o, s, r, s.wholeRows(runs, b, at, i.Lo), i.Lo+at.lo, dst.Part(at.lo, at.hi), rows.Part(at.lo, at.hi))
	})
	scores := i.backward(model.ScoresGrad)
	if o.Clear(scores); i.Sources {
		return
	}
	for _, ghosts := range []bool{false, true} {
		emitted := g.l.Recomputed
		if ghosts {
			emitted = *g.backwardGhosts
		}
		g.eachRelation(i, s, ghosts, func(r int, at span, e kernels.Edges) {
			g.toTargets(i, s, r, at, e, g.emitted(emitted, ghosts), scores)
		})
	}
}

// toTargets adds the gradient of the destinations' scores of relation r along the edges e.
func (g *relationalEmission) toTargets(i Interval, s *attentionScratch, r int, at span, e kernels.Edges, x kernels.Emitted,
	scores kernels.Mat) {
	heads := g.shape.Heads
	part := func(m kernels.Mat) kernels.Mat { return i.rows(m).Part(at.lo, at.hi) }
	dst := scores.Part(at.lo, at.hi)
	grads := s.scores.resized(dst.Rows, heads)
	i.Ops.CopyColumns(grads, dst, r*heads)
	state := kernels.Attended{R: s.columns(i.Ops, i.backward(model.Scores).Part(at.lo, at.hi), r*heads, heads), LSE: part(g.softmax(r).lse),
		Grad: part(g.l.Grads), Dots: part(g.softmax(r).dots)}
	i.Ops.AttentionGradDst(g.shape, grads, kernels.Mat{}, e, x, state, true)
	i.Ops.PutColumns(dst, r*heads, grads)
}

// columns returns a copy of the columns [from, from+n) of x.
func (s *attentionScratch) columns(o kernels.Ops, x kernels.Mat, from, n int) kernels.Mat {
	dst := s.shiftedScores.resized(x.Rows, n)
	o.CopyColumns(dst, x, from)
	return dst
}

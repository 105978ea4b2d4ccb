package graphwork

import (
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// attention gathers with attention (Dorylus's ApplyEdge). In addition to the rows of its layer it has
// their scores, and the state of destinations.
type attention struct {
	l      *Layer
	store  *model.Store
	source model.Attended // of parameters
	// Written by each interval's gather, and read only by that interval.
	sums  kernels.Mat // of rows, weighted by the softmax [own x Columns]: the layer's gathered rows, unless it adds others
	lse   kernels.Mat // logarithm of the softmax's denominator [own x heads]
	stats kernels.Mat // running maximum and running sum of the softmax, by head [own x 2·heads]
	// Scores of the emitted rows of own vertices and of ghosts [own or ghosts x heads], written
	// together with these rows. Dynamic scores are not stored.
	scores, ghostScores kernels.Mat
	backwardGhosts      *kernels.Mat // rows of ghosts on the backward pass
	// The state of destinations from which AttentionGradSrc computes the gradients of sources.
	// PublishGrads writes it, and other intervals of the rank read it. r, lse and dots exist only if
	// the Ops computes the gradients of destinations along edges.
	back struct {
		r      kernels.Mat // scores of destinations [own x ScoreWidth]
		lse    kernels.Mat // copy of lse [own x heads]
		dots   kernels.Mat // gradient · output, for each row and head [own x heads]
		packed kernels.Mat // r, lse and dots in the format of PackGrad [own x 3·heads]
	}
	shape     kernels.Attention // without dropout and weights
	published publishedWeights
	self      kernels.Vector[float32] // features of self loops [own x EdgeDim]; none without edge features
	drop      *model.Dropout
	// The attention for GhostGrads, which runs outside of intervals.
	whole kernels.Attention
	mask  kernels.Dropout
}

// newAttention returns the attention of a layer.
func (w *Work) newAttention(l *Layer, source model.Attended, o Options) *attention {
	n, shape := w.shard.NumOwn(), source.Attention(kernels.Mat{})
	newScores := func(width int) kernels.Mat { return w.newZeros(Scores, n, width) }
	g := &attention{
		l: l, store: w.store, source: source, shape: shape, drop: source.EdgeDropout(),
		self: w.meanEdgeFeatures(), backwardGhosts: &l.Ghosts, sums: l.gathered,
	}
	if !shape.Dynamic {
		l.shape.Scores, g.scores = shape.Heads, newScores(shape.Heads)
	}
	if o.Linked != nil {
		other := o.Linked.Layer(l.shape.Layer)
		g.ghostScores, g.backwardGhosts = other.Gather.(*attention).scores, &other.Recomputed
	} else {
		w.allocGhosts(g, o)
	}
	g.back.packed = newScores(3 * shape.Heads)
	g.lse, g.stats = newScores(shape.Heads), newScores(2*shape.Heads)
	if !w.ops.Has(kernels.SignedAttention) || w.store.Backward(l.shape.Layer, model.Signed).IsNil() {
		g.back.r, g.back.lse, g.back.dots = newScores(shape.ScoreWidth()), newScores(shape.Heads), newScores(shape.Heads)
	}
	if shape.Dynamic && o.Asynchronous {
		g.published = w.newPublishedWeights(shape)
	}
	return g
}

// allocGhosts allocates the scores of ghosts, and their rows unless the caller provides them.
func (w *Work) allocGhosts(g *attention, o Options) {
	l := g.l
	if !g.shape.Dynamic {
		g.ghostScores = w.newZeros(Scores, w.Plan.Ghosts, g.shape.Heads)
	}
	if !o.Asynchronous && (o.Provided == nil || !o.Provided(l.shape.Layer)) {
		l.Ghosts, l.copiesGhosts = w.newZeros(halo.Ghosts, w.Plan.Ghosts, l.Width), true
	}
}

func (g *attention) Begin(p model.Pass, weights kernels.Mat) {
	g.whole = g.published.attach(g.source.Attention(weights))
	g.whole.Drop = g.drop.Mask(p, g.store.LocalIDs(), &g.mask)
}

func (g *attention) Publish(i Interval, rows kernels.Mat) { g.packScores(i.Ops, g.scores, i.Lo, rows) }

func (g *attention) PublishGhosts(o kernels.Ops, first, count int) {
	g.packScores(o, g.ghostScores, first, g.l.Ghosts.Part(first, first+count))
}

// packScores computes the scores of rows from first on. Gathers compute dynamic scores.
func (g *attention) packScores(o kernels.Ops, scores kernels.Mat, first int, rows kernels.Mat) {
	if !g.shape.Dynamic {
		o.PackScores(g.shape, scores, first, rows)
	}
}

// inInterval returns the parameters and the dropout mask of the interval's edges in a pass.
func (g *attention) inInterval(i Interval, p model.Pass) kernels.Attention {
	a := g.source.Attention(i.Frame.Weights)
	a.Drop = g.drop.Mask(p, g.store.LocalIDs(), i.Mask)
	return a
}

// forward (backward) returns the interval's rows of a value in the Apply (ApplyBackward) stage.
func (i Interval) forward(v model.Value) kernels.Mat {
	return i.Frame.At(model.Do{Layer: i.Layer, Stage: model.Apply}, v)
}
func (i Interval) backward(v model.Value) kernels.Mat {
	return i.Frame.At(model.Do{Layer: i.Layer, Stage: model.ApplyBackward}, v)
}

func (g *attention) GatherOwn(i Interval, p model.Pass) {
	edges := g.l.maskTargets(p, g.withSelfLoops(i, g.l.ownEdges(i)))
	params, dst, stats := g.inInterval(i, p), i.rows(g.l.gathered), i.rows(g.stats)
	i.Ops.AttentionGather(params, dst, i.signed(i.forward), stats, edges, g.ownEmitted(g.l.Rows), i.forward(model.Scores), false)
}

// withSelfLoops adds the self loops of an interval's vertices to e.
func (g *attention) withSelfLoops(i Interval, e kernels.Edges) kernels.Edges {
	dim := g.self.Len() / max(g.lse.Rows, 1)
	e.SelfLoops, e.Self = true, g.self.Part(i.Lo*dim, i.Hi*dim)
	return e
}

func (g *attention) GatherGhosts(i Interval, p model.Pass) {
	edges := g.l.maskTargets(p, g.l.ghostEdges(i))
	params, dst, stats := g.inInterval(i, p), i.rows(g.l.gathered), i.rows(g.stats)
	signed := i.signed(i.forward)
	ghosts := kernels.Emitted{X: g.l.Ghosts, Scores: g.ghostScores}
	i.Ops.AttentionGather(params, dst, signed, stats, edges, ghosts, i.forward(model.Scores), true)
	i.Ops.AttentionFinish(params, dst, signed, i.rows(g.lse), stats)
}

// signed returns the matrix of the sums of emitted rows, each weighted by its coefficient and by
// the slope of the LeakyReLU at its score. AttentionGradSigned computes the gradients of
// destination scores from these sums, without edges. The matrix is empty if the interval's Ops has
// no kernels for it, and in passes without a backward pass.
func (i Interval) signed(value func(model.Value) kernels.Mat) (rows kernels.Mat) {
	if i.Ops.Has(kernels.SignedAttention) {
		rows = value(model.Signed)
	}
	return rows
}

func (g *attention) PublishGrads(i Interval, grads kernels.Mat) {
	b := &g.back
	if signed := i.signed(i.backward); !signed.IsNil() {
		dots := i.rows(g.stats).Reshape(i.Hi-i.Lo, g.shape.Heads) // reuses stats, which are no longer needed
		i.Ops.RowDots(dots, grads, i.rows(g.sums))
		i.Ops.AttentionGradSigned(g.shape, i.backward(model.ScoresGrad), signed, grads, dots)
		i.Ops.PackGrad(g.shape, b.packed, i.Lo, i.backward(model.Scores), i.rows(g.lse), dots)
		return
	}
	g.published.publish(i, g.source.Attention(i.Frame.Weights))
	i.Ops.Copy(i.rows(b.r), i.backward(model.Scores))
	i.Ops.Copy(i.rows(b.lse), i.rows(g.lse))
	i.Ops.RowDots(i.rows(b.dots), grads, i.rows(g.sums))
	i.Ops.PackGrad(g.shape, b.packed, i.Lo, i.rows(b.r), i.rows(b.lse), i.rows(b.dots))
}

// ownEmitted returns the emitted rows of own vertices, with their scores.
func (g *attention) ownEmitted(rows kernels.Mat) kernels.Emitted {
	return kernels.Emitted{X: rows.Part(0, g.lse.Rows), Scores: g.scores}
}

// attended returns the backward pass's state of own vertices.
func (g *attention) attended() kernels.Attended {
	return kernels.Attended{R: g.back.r, LSE: g.back.lse, Grad: g.l.Grads, Dots: g.back.dots, Packed: g.back.packed}
}

func (g *attention) GhostGrads(o kernels.Ops, first int, dst kernels.Mat) {
	own, end := g.l.mesh.shard.NumOwn(), first+dst.Rows
	edges := g.l.maskSources(g.l.edges.ghost.edges(first, end))
	o.AttentionGradSrc(g.whole, dst, edges, own+first, own, g.backwardGhosts.Part(first, end), g.attended())
}

// GatherBackward also computes the gradient of the layer's scores.
func (g *attention) GatherBackward(i Interval, p model.Pass) {
	l, edges, dst := g.l, i.edges(g.l.edges.own), g.l.backwardRows(i)
	params, own := g.inInterval(i, p), g.withSelfLoops(i, l.ownEdges(i))
	scoresGrad, alongGrad := i.backward(model.ScoresGrad), i.backward(model.AlongGrad)
	if !i.Sources {
		edges = g.withSelfLoops(i, edges)
	}
	sources := g.published.attach(params)
	i.Ops.AttentionGradSrc(sources, dst, l.maskSources(edges), i.Lo, l.mesh.shard.NumOwn(), i.rows(l.Recomputed), g.attended())
	if i.Sources { // these vertices are sources only and gathered nothing
		i.Ops.Clear(scoresGrad)
		if !alongGrad.IsNil() {
			i.Ops.Clear(alongGrad)
		}
		return
	}
	if !i.signed(i.backward).IsNil() {
		return // PublishGrads has already computed these gradients
	}
	state := kernels.Attended{
		R: i.rows(g.back.r), LSE: i.rows(g.back.lse),
		Grad: i.rows(l.Grads), Dots: i.rows(g.back.dots),
	}
	i.Ops.AttentionGradDst(params, scoresGrad, alongGrad, own, g.ownEmitted(l.Recomputed), state, false)
	ghosts := kernels.Emitted{X: *g.backwardGhosts, Scores: g.ghostScores}
	i.Ops.AttentionGradDst(params, scoresGrad, alongGrad, l.ghostEdges(i), ghosts, state, true)
}

// meanEdgeFeatures returns the features of self loops [own x EdgeDim]: the mean over each vertex's
// incoming edges. It is empty if the network uses no edge features.
func (w *Work) meanEdgeFeatures() kernels.Vector[float32] {
	switch d := w.store.Network.Spec.Design; {
	case d.EdgeDim > 0:
		return place(w, w.shard.EdgeMeans)
	case d.EdgeFeatures:
		return w.meanEdgeWeights()
	}
	return kernels.Vector[float32]{}
}

// meanEdgeWeights returns the weights of self loops [own]: the mean weight of incoming edges.
func (w *Work) meanEdgeWeights() kernels.Vector[float32] {
	self := mapped.Make[float32](w.arena.For(Coefficients), w.shard.NumOwn())
	w.arena.Fill(func() {
		for v := range self {
			if in := w.shard.InDegree[v]; in > 0 {
				self[v] = w.shard.InStrength[v] / float32(in)
			}
		}
	})
	return place(w, self)
}

package graphwork

import (
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// attention is the state that a layer with attention (Dorylus's ApplyEdge) has in addition to its
// rows. heads is 0 in a layer without attention.
type attention struct {
	heads int
	layer model.Attended
	// Written by each interval's gather, and read only by that interval.
	lse   kernels.Mat // logarithm of the softmax's denominator [own x heads]
	stats kernels.Mat // running maximum and running sum of the softmax, by head [own x 2·heads]
	// Scores of the emitted rows of own vertices and of ghosts [own or ghosts x heads], written
	// together with these rows. Dynamic scores are not stored.
	scores, ghostScores kernels.Mat
	// The state of destinations from which AttentionGradSrc computes the gradients of sources.
	// publishBackward writes it with the gradients, and other intervals of the rank read it. r,
	// lse and dots exist only if the Ops computes the gradients of destinations along edges.
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

// allocAttention allocates the attention of a layer, and the rows of its ghosts unless the
// caller provides them.
func (w *Work) allocAttention(l *Layer, index int, layer model.Attended, o Options) {
	n := w.shard.NumOwn()
	newScores := func(width int) kernels.Mat { return w.newZeros(Scores, n, width) }
	l.layer, l.shape, l.drop = layer, layer.Attention(kernels.Mat{}), layer.EdgeDropout()
	l.heads = l.shape.Heads
	if !l.shape.Dynamic {
		l.scores = newScores(l.heads)
		if !o.Linked {
			l.ghostScores = w.newZeros(Scores, w.Plan.Ghosts, l.heads)
		}
	}
	spec := w.store.Network.Spec
	computedHere := index <= spec.GhostLayer() && spec.LocalShare == 0
	if !o.Asynchronous && !computedHere {
		l.Ghosts = w.newZeros(halo.Ghosts, w.Plan.Ghosts, l.Width)
	}
	l.back.packed = newScores(3 * l.heads)
	l.lse, l.stats = newScores(l.heads), newScores(2*l.heads)
	if !w.ops.Has(kernels.SignedAttention) || w.store.Backward(index, model.Signed).IsNil() {
		l.back.r, l.back.lse, l.back.dots = newScores(l.shape.ScoreWidth()), newScores(l.heads), newScores(l.heads)
	}
	if l.shape.Dynamic && o.Asynchronous {
		w.allocPublished(l)
	}
	l.self = w.meanEdgeFeatures()
}

// Enter sets the pass and the weights of later calls of GhostGrads. The weights are ignored if
// intervals have published their own.
func (w *Work) Enter(l *Layer, p model.Pass, weights kernels.Mat) {
	if l.heads == 0 {
		return
	}
	l.whole = l.published.attach(l.layer.Attention(weights))
	l.whole.Drop = l.drop.Mask(p, w.store.LocalIDs(), &l.mask)
}

// attention returns the parameters and the dropout mask of the interval's edges in a pass.
func (w *Work) attention(l *Layer, i Interval, p model.Pass) kernels.Attention {
	a := l.layer.Attention(i.Frame.Weights)
	a.Drop = l.drop.Mask(p, w.store.LocalIDs(), i.Mask)
	return a
}

// forward (backward) returns the interval's rows of a value in the Apply (ApplyBackward) stage.
func (i Interval) forward(v model.Value) kernels.Mat {
	return i.Frame.At(model.Do{Layer: i.Layer, Stage: model.Apply}, v)
}
func (i Interval) backward(v model.Value) kernels.Mat {
	return i.Frame.At(model.Do{Layer: i.Layer, Stage: model.ApplyBackward}, v)
}

// attendOwn implements GatherOwn with attention.
func (w *Work) attendOwn(l *Layer, i Interval, p model.Pass) {
	edges := l.maskTargets(p, l.withSelfLoops(i, l.ownEdges(i)))
	params, dst, stats := w.attention(l, i, p), i.rows(l.gathered), i.rows(l.stats)
	i.Ops.AttentionGather(params, dst, i.signed(i.forward), stats, edges, l.ownEmitted(l.Rows), i.forward(model.Scores), false)
}

// withSelfLoops adds the self loops of an interval's vertices to e.
func (l *Layer) withSelfLoops(i Interval, e kernels.Edges) kernels.Edges {
	dim := l.self.Len() / max(l.lse.Rows, 1)
	e.SelfLoops, e.Self = true, l.self.Part(i.Lo*dim, i.Hi*dim)
	return e
}

// attendGhosts implements GatherGhosts with attention.
func (w *Work) attendGhosts(l *Layer, i Interval, p model.Pass) {
	edges := l.maskTargets(p, l.ghostEdges(i))
	params, dst, stats := w.attention(l, i, p), i.rows(l.gathered), i.rows(l.stats)
	signed := i.signed(i.forward)
	i.Ops.AttentionGather(params, dst, signed, stats, edges, l.ghostEmitted(l.Ghosts), i.forward(model.Scores), true)
	i.Ops.AttentionFinish(params, dst, signed, i.rows(l.lse), stats)
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

// publishBackward implements PublishGrads with attention.
func (w *Work) publishBackward(l *Layer, i Interval, grads kernels.Mat) {
	b := &l.back
	if signed := i.signed(i.backward); !signed.IsNil() {
		dots := i.rows(l.stats).Reshape(i.Hi-i.Lo, l.heads) // reuses stats, which are no longer needed
		i.Ops.RowDots(dots, grads, i.rows(l.gathered))
		i.Ops.AttentionGradSigned(l.shape, i.backward(model.ScoresGrad), signed, grads, dots)
		i.Ops.PackGrad(l.shape, b.packed, i.Lo, i.backward(model.Scores), i.rows(l.lse), dots)
		return
	}
	l.published.publish(i, l.layer.Attention(i.Frame.Weights))
	i.Ops.Copy(i.rows(b.r), i.backward(model.Scores))
	i.Ops.Copy(i.rows(b.lse), i.rows(l.lse))
	i.Ops.RowDots(i.rows(b.dots), grads, i.rows(l.gathered))
	i.Ops.PackGrad(l.shape, b.packed, i.Lo, i.rows(b.r), i.rows(b.lse), i.rows(b.dots))
}

// ownEmitted and ghostEmitted return the emitted rows of own vertices and of ghosts, with their
// scores.
func (l *Layer) ownEmitted(rows kernels.Mat) kernels.Emitted {
	return kernels.Emitted{X: rows.Part(0, l.lse.Rows), Scores: l.scores}
}
func (l *Layer) ghostEmitted(rows kernels.Mat) kernels.Emitted {
	return kernels.Emitted{X: rows, Scores: l.ghostScores}
}

// attended returns the backward pass's state of own vertices.
func (l *Layer) attended() kernels.Attended {
	return kernels.Attended{R: l.back.r, LSE: l.back.lse, Grad: l.Grads, Dots: l.back.dots, Packed: l.back.packed}
}

// attendBackward implements GatherBackward with attention. It also computes the gradient of the
// layer's scores.
func (w *Work) attendBackward(l *Layer, i Interval, p model.Pass, dst kernels.Mat, edges kernels.Edges) {
	params, own := w.attention(l, i, p), l.withSelfLoops(i, l.ownEdges(i))
	scoresGrad, alongGrad := i.backward(model.ScoresGrad), i.backward(model.AlongGrad)
	if !i.Sources {
		edges = l.withSelfLoops(i, edges)
	}
	i.Ops.AttentionGradSrc(l.published.attach(params), dst, l.maskSources(edges), i.Lo, l.mesh.shard.NumOwn(), i.rows(l.Recomputed), l.attended())
	if i.Sources { // these vertices are sources only and gathered nothing
		i.Ops.Clear(scoresGrad)
		if !alongGrad.IsNil() {
			i.Ops.Clear(alongGrad)
		}
		return
	}
	if !i.signed(i.backward).IsNil() {
		return // publishBackward has already computed these gradients
	}
	state := kernels.Attended{
		R: i.rows(l.back.r), LSE: i.rows(l.back.lse),
		Grad: i.rows(l.Grads), Dots: i.rows(l.back.dots),
	}
	i.Ops.AttentionGradDst(params, scoresGrad, alongGrad, own, l.ownEmitted(l.Recomputed), state, false)
	i.Ops.AttentionGradDst(params, scoresGrad, alongGrad, l.ghostEdges(i), l.ghostEmitted(l.backwardGhosts()), state, true)
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

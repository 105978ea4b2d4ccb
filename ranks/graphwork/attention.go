package graphwork

import (
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
)

// attention is what a layer with attention (AE) knows beside its rows; heads is
// 0 for a layer without.
type attention struct {
	heads int
	// Of each interval's own gather: parts that nobody else reads.
	lse   kernels.Mat // [own x heads]
	stats kernels.Mat // [own x 2·heads]
	// Of the emitted rows, published with them [own or ghosts x heads].
	scores, ghostScores kernels.Mat
	// Published with the gradients: what sources need to know of those who
	// attended to them [own x heads], and the same packed.
	back struct{ r, lse, dots, packed kernels.Mat }
	// For gradients of ghosts, which are no interval's.
	whole kernels.Attention
	drop  *kernels.Dropout
}

// attend gives room for the attention of a layer, and for the rows of its ghosts
// unless those are the caller's.
func (w *Work) attend(l *Layer, layer model.Attended, o Options) {
	at, n := layer.Attention(model.Pass{Train: true}), w.shard.NumOwn()
	room := func(width int) kernels.Mat { return w.room(Gathered, n, width) }
	l.scores, l.ghostScores = room(at.Heads), w.room(Gathered, w.Plan.Ghosts, at.Heads)
	if !o.Apart {
		l.Ghosts = w.room(halo.Ghosts, w.Plan.Ghosts, l.Width)
	}
	l.back.packed = room(3 * at.Heads)
	l.heads, l.GradWidth, l.whole = at.Heads, at.Columns(), at.Attention
	if at.Drop != nil {
		own := *at.Drop
		l.drop = &own
	}
	l.lse, l.stats = room(at.Heads), room(2*at.Heads)
	l.back.r, l.back.lse, l.back.dots = room(at.Heads), room(at.Heads), room(at.Heads)
}

// Enter says which pass the calls of GhostGrads that follow belong to.
func (l *Layer) Enter(p model.Pass) { l.whole.Drop = p.Mask(l.drop) }

// attention is that of the interval's layer in a pass.
func (i Interval) attention(p model.Pass) model.Attention {
	return i.Layer.(model.Attended).Attention(p)
}

// attendOwn is GatherOwn with attention.
func (w *Work) attendOwn(l *Layer, i Interval, p model.Pass) {
	at := i.attention(p)
	edges := w.ownEdges(i)
	edges.SelfLoops = true
	i.Ops.AttentionGather(at.Attention, i.rows(l.gathered), i.rows(l.stats), edges, l.own(), at.R, false)
}

// attendGhosts is GatherGhosts with attention.
func (w *Work) attendGhosts(l *Layer, i Interval, p model.Pass) kernels.Mat {
	at, dst, stats := i.attention(p), i.rows(l.gathered), i.rows(l.stats)
	i.Ops.AttentionGather(at.Attention, dst, stats, w.ghostEdges(i), l.theirs(), at.R, true)
	i.Ops.AttentionFinish(at.Attention, dst, i.rows(l.lse), stats)
	return dst
}

// publishBackward is PublishGrads with attention.
func (w *Work) publishBackward(l *Layer, i Interval, grads kernels.Mat, p model.Pass) {
	b := &l.back
	i.Ops.Copy(i.rows(b.r), i.attention(p).R)
	i.Ops.Copy(i.rows(b.lse), i.rows(l.lse))
	i.Ops.RowDots(i.rows(b.dots), grads, i.rows(l.gathered))
	i.Ops.PackGrad(l.whole, b.packed, i.Lo, i.rows(b.r), i.rows(b.lse), i.rows(b.dots))
}

// own and theirs are the rows of own vertices and of ghosts, with their scores.
func (l *Layer) own() kernels.Emitted {
	return kernels.Emitted{X: l.Rows, Scores: l.scores}
}
func (l *Layer) theirs() kernels.Emitted {
	return kernels.Emitted{X: l.Ghosts, Scores: l.ghostScores}
}

// known is what the way back knows of own vertices.
func (l *Layer) known() kernels.Attended {
	return kernels.Attended{R: l.back.r, LSE: l.back.lse, Grad: l.Grads, Dots: l.back.dots, Packed: l.back.packed}
}

// attendGhostGrads is GhostGrads with attention.
func (w *Work) attendGhostGrads(o kernels.Ops, l *Layer, first int, dst kernels.Mat, edges kernels.Edges) {
	n := w.shard.NumOwn()
	o.AttentionGradSrc(l.whole, dst, edges, n+first, n, l.Ghosts.Part(first, first+dst.Rows), l.known())
}

// attendBackward is GatherBackward with attention; it sets the layer's DR too.
func (w *Work) attendBackward(l *Layer, i Interval, p model.Pass, dst kernels.Mat, edges kernels.Edges) {
	at, own := i.attention(p), w.ownEdges(i)
	edges.SelfLoops, own.SelfLoops = true, true
	i.Ops.AttentionGradSrc(at.Attention, dst, edges, i.Lo, w.shard.NumOwn(), i.rows(l.Rows), l.known())
	mine := kernels.Attended{
		R: i.rows(l.back.r), LSE: i.rows(l.back.lse),
		Grad: i.rows(l.Grads), Dots: i.rows(l.back.dots),
	}
	i.Ops.AttentionGradDst(at.Attention, at.DR, own, l.own(), mine, false)
	i.Ops.AttentionGradDst(at.Attention, at.DR, w.ghostEdges(i), l.theirs(), mine, true)
}

package graphwork

import (
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// attention is what a layer with attention (AE) knows beside its rows; heads is
// 0 for a layer without.
type attention struct {
	heads int
	// Of each interval's own gather: parts that nobody else reads.
	lse   []float32 // [own x heads]
	stats []float32 // [own x 2·heads]
	// Of the emitted rows, published with them [own or ghosts x heads].
	scores, ghostScores []float32
	// Published with the gradients: what sources need to know of those who
	// attended to them [own x heads], and the same packed.
	back struct{ r, lse, dots, packed []float32 }
	// For gradients of ghosts, which are no interval's.
	whole kernels.Attention
	drop  *kernels.Dropout
}

// attend gives room for the attention of a layer.
func (w *Work) attend(l *Layer, layer model.Attended) {
	at, n := layer.Attention(model.Pass{Train: true}), w.shard.NumOwn()
	room := func(width int) []float32 { return mapped.Make[float32](w.arena, n*width) }
	l.scores, l.ghostScores = room(at.Heads), mapped.Make[float32](w.arena, w.Plan.Ghosts*at.Heads)
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
	kernels.AttentionGather(i.Team, at.Attention, i.rows(l.gathered, l.GradWidth), i.rows(l.stats, 2*l.heads), edges, l.own(), at.R, false)
}

// attendGhosts is GatherGhosts with attention.
func (w *Work) attendGhosts(l *Layer, i Interval, p model.Pass) []float32 {
	at, dst, stats := i.attention(p), i.rows(l.gathered, l.GradWidth), i.rows(l.stats, 2*l.heads)
	kernels.AttentionGather(i.Team, at.Attention, dst, stats, w.ghostEdges(i), l.theirs(), at.R, true)
	kernels.AttentionFinish(i.Team, at.Attention, dst, i.rows(l.lse, l.heads), i.Hi-i.Lo, stats)
	return dst
}

// publishBackward is PublishGrads with attention.
func (w *Work) publishBackward(l *Layer, i Interval, grads []float32, p model.Pass) {
	b := &l.back
	copy(i.rows(b.r, l.heads), i.attention(p).R)
	copy(i.rows(b.lse, l.heads), i.rows(l.lse, l.heads))
	kernels.RowDots(i.Team, i.rows(b.dots, l.heads), i.Hi-i.Lo, l.heads, l.GradWidth/l.heads,
		grads, i.rows(l.gathered, l.GradWidth))
	kernels.PackGrad(i.Team, l.whole, b.packed, w.shard.NumOwn(), i.Lo, i.rows(b.r, l.heads), i.rows(b.lse, l.heads), i.rows(b.dots, l.heads))
}

// own and theirs are the rows of own vertices and of ghosts, with their scores.
func (l *Layer) own() kernels.AttentionRows {
	return kernels.AttentionRows{X: l.Rows, Scores: l.scores}
}
func (l *Layer) theirs() kernels.AttentionRows {
	return kernels.AttentionRows{X: l.Ghosts, Scores: l.ghostScores}
}

// known is what the way back knows of own vertices.
func (l *Layer) known() kernels.AttentionGrad {
	return kernels.AttentionGrad{R: l.back.r, LSE: l.back.lse, Grad: l.Grads, Dots: l.back.dots, Packed: l.back.packed}
}

// attendGhostGrads is GhostGrads with attention.
func (w *Work) attendGhostGrads(t *kernels.Team, l *Layer, first int, dst []float32, edges kernels.Gather) {
	n := w.shard.NumOwn()
	kernels.AttentionGradSrc(t, l.whole, dst, edges, n+first, n, l.Ghosts[first*l.Width:], l.known())
}

// attendBackward is GatherBackward with attention; it sets the layer's DR too.
func (w *Work) attendBackward(l *Layer, i Interval, p model.Pass, dst []float32, edges kernels.Gather) {
	at, own := i.attention(p), w.ownEdges(i)
	edges.SelfLoops, own.SelfLoops = true, true
	kernels.AttentionGradSrc(i.Team, at.Attention, dst, edges, i.Lo, w.shard.NumOwn(), i.rows(l.Rows, l.Width), l.known())
	mine := kernels.AttentionGrad{
		R: i.rows(l.back.r, l.heads), LSE: i.rows(l.back.lse, l.heads),
		Grad: i.rows(l.Grads, l.GradWidth), Dots: i.rows(l.back.dots, l.heads),
	}
	kernels.AttentionGradDst(i.Team, at.Attention, at.DR, own, l.own(), mine, false)
	kernels.AttentionGradDst(i.Team, at.Attention, at.DR, w.ghostEdges(i), l.theirs(), mine, true)
}

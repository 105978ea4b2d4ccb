package ranks

import (
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// attending is what a layer with attention publishes beside its rows: what
// sources need to know of those who attend to them.
type attending struct {
	kernels.Attention           // of the newest pass
	r, lse, dots      []float32 // of own vertices [own x heads]
	gathered          []float32 // [own x columns]
	stats             []float32 // [own x 2·heads]
}

// attending gives room for what layer l publishes, nil for one without
// attention.
func (e *engine) attending(l int) *attending {
	layer, ok := e.intervals[0].net.Layers[l].(model.Attended)
	if !ok {
		return nil
	}
	at, n := layer.Attention(model.Pass{}), e.shard.NumOwn()
	room := func(width int) []float32 { return mapped.Make[float32](e.arena, n*width) }
	return &attending{
		Attention: at.Attention, r: room(at.Heads), lse: room(at.Heads), dots: room(at.Heads),
		gathered: room(at.Columns()), stats: room(2 * at.Heads),
	}
}

// attention is the interval's layer as the edges need it.
func (e *engine) attention(i *interval, l int) model.Attention {
	p := model.Pass{Epoch: i.epoch, Train: true}
	return i.net.Layers[l].(model.Attended).Attention(p)
}

// attend is gather for a layer with attention.
func (e *engine) attend(i *interval, l int) []float32 {
	p, t := e.layers[l], e.layers[l].attending
	at := e.attention(i, l)
	t.Attention = at.Attention
	copy(i.part(t.r, t.Heads), at.R)
	dst, stats := i.part(t.gathered, t.Columns()), i.part(t.stats, 2*t.Heads)
	kernels.AttentionGather(e.team, t.Attention, dst, stats, e.ownEdges(i), p.rows, at.R, false)
	kernels.AttentionGather(e.team, t.Attention, dst, stats, e.ghostEdges(i), p.ghosts, at.R, true)
	kernels.AttentionFinish(e.team, t.Attention, dst, i.part(t.lse, t.Heads), i.rows(), stats)
	return dst
}

// noteDots prepares the way back of an interval whose gradient is published.
func (e *engine) noteDots(i *interval, l int) {
	p, t := e.layers[l], e.layers[l].attending
	kernels.RowDots(e.team, i.part(t.dots, t.Heads), i.rows(), t.Heads, t.Width,
		i.part(p.grads, p.gradWidth), i.part(t.gathered, t.Columns()))
}

// attendGhostGrads sets dst to the gradients of ghosts' rows.
func (e *engine) attendGhostGrads(l int, dst []float32) {
	p, t, ghosts := e.layers[l], e.layers[l].attending, e.edges(l).Ghost
	n := e.shard.NumOwn()
	kernels.AttentionGradSrc(e.team, t.Attention, dst, kernels.Gather{
		Begin: ghosts.Offsets[:ghosts.Rows()], End: ghosts.Offsets[1:], Cols: ghosts.Cols,
	}, n, n, p.ghosts, kernels.AttentionGrad{R: t.r, LSE: t.lse, Grad: p.grads, Dots: t.dots})
}

// attendGrad sets dst to the gradients of an interval's own rows, but for what
// other ranks send, and the layer's DR.
func (e *engine) attendGrad(i *interval, l int, dst []float32) {
	p, t, edges := e.layers[l], e.layers[l].attending, e.edges(l)
	kernels.AttentionGradSrc(e.team, t.Attention, dst, kernels.Gather{
		Begin: edges.OwnBegin[i.lo:i.hi], End: edges.OwnEnd[i.lo:i.hi], Cols: edges.OwnCols, SelfLoops: true,
	}, i.lo, e.shard.NumOwn(), i.part(p.rows, p.width), kernels.AttentionGrad{R: t.r, LSE: t.lse, Grad: p.grads, Dots: t.dots})
	back := kernels.AttentionGrad{
		R: i.part(t.r, t.Heads), LSE: i.part(t.lse, t.Heads),
		Grad: i.part(p.grads, p.gradWidth), Dots: i.part(t.dots, t.Heads),
	}
	dr := e.attention(i, l).DR
	kernels.AttentionGradDst(e.team, t.Attention, dr, e.ownEdges(i), p.rows, back, false)
	kernels.AttentionGradDst(e.team, t.Attention, dr, e.ghostEdges(i), p.ghosts, back, true)
}

// ownEdges are the interval's in-edges from own vertices, with self loops.
func (e *engine) ownEdges(i *interval) kernels.Gather {
	in := e.shard.In
	return kernels.Gather{Begin: in.Offsets[i.lo:i.hi], End: e.shard.InOwnEnd[i.lo:i.hi], Cols: in.Cols,
		SelfLoops: true, First: uint32(i.lo)}
}

// ghostEdges are those from ghosts.
func (e *engine) ghostEdges(i *interval) kernels.Gather {
	in := e.shard.In
	return kernels.Gather{Begin: e.shard.InOwnEnd[i.lo:i.hi], End: in.Offsets[i.lo+1 : i.hi+1], Cols: in.Cols,
		Base: uint32(e.shard.NumOwn()), First: uint32(i.lo)}
}

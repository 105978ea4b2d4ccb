package ranks

import (
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
)

// attended is the gather of one layer whose edges carry attention. It keeps
// the rows of ghosts, which the way back needs again.
type attended struct {
	model.Attention
	emitted  []float32 // rows of own vertices, the layer's
	ghosts   []float32 // rows of ghosts
	gathered []float32 // [own x columns], the layer's output before its bias
	stats    []float32 // [own x 2·heads]
	lse      []float32 // [own x heads]
	dots     []float32 // [own x heads]
}

// attend is gather for a layer with attention: the rows that its neighbours
// emitted, weighted by a softmax over them.
func (g *graphWork) attend(l int, layer model.Attended, rows []float32, p model.Pass) ([]float32, error) {
	a := g.attention(l, layer.Attention(p))
	a.emitted = rows
	width := a.Emitted()
	g.clock.start()
	if err := g.exchange.BeginForward(rows, width, halo.Key{Seed: g.seed, Epoch: p.Epoch, Layer: l, Apart: !p.Train}); err != nil {
		return nil, err
	}
	g.clock.lap("SC")
	if g.overlap {
		g.attendOwn(a)
		g.clock.lap("GA")
	}
	ghosts, err := g.exchange.EndForward()
	g.clock.lap("SC")
	if err != nil {
		return nil, err
	}
	copy(a.ghosts, ghosts)
	if !g.overlap {
		g.attendOwn(a)
	}
	kernels.AttentionGather(g.team, a.Attention.Attention, a.gathered, a.stats, g.ghostEdges(), a.ghosts, a.R, true)
	kernels.AttentionFinish(g.team, a.Attention.Attention, a.gathered, a.lse, g.shard.NumOwn(), a.stats)
	g.clock.lap("GA")
	return a.gathered, nil
}

func (g *graphWork) attendOwn(a *attended) {
	kernels.AttentionGather(g.team, a.Attention.Attention, a.gathered, a.stats, g.ownEdges(), a.emitted, a.R, false)
}

// attention is layer l's, with room for it.
func (g *graphWork) attention(l int, at model.Attention) *attended {
	for len(g.attends) <= l {
		g.attends = append(g.attends, nil)
	}
	if g.attends[l] == nil {
		n := g.shard.NumOwn()
		g.attends[l] = &attended{
			ghosts:   mapped.Make[float32](g.arena, g.shard.NumGhosts()*at.Emitted()),
			gathered: mapped.Make[float32](g.arena, n*at.Columns()),
			stats:    mapped.Make[float32](g.arena, 2*n*at.Heads),
			lse:      mapped.Make[float32](g.arena, n*at.Heads),
			dots:     mapped.Make[float32](g.arena, n*at.Heads),
		}
	}
	g.attends[l].Attention = at
	return g.attends[l]
}

// attendGrad is gatherGrad for a layer with attention: from grad [own x
// columns] to the gradient of the emitted rows, and that of R in the layer's DR.
func (g *graphWork) attendGrad(l int, grad []float32, edges *shard.Transposed, p model.Pass) ([]float32, error) {
	a := g.attends[l]
	at, n, width := a.Attention.Attention, g.shard.NumOwn(), a.Emitted()
	dst := g.gradRoom(n * width)
	g.clock.start()
	kernels.RowDots(g.team, a.dots, n, a.Heads, a.Width, grad, a.gathered)
	back := kernels.AttentionGrad{R: a.R, LSE: a.lse, Grad: grad, Dots: a.dots}
	own := func() {
		kernels.AttentionGradSrc(g.team, at, dst, kernels.Gather{
			Begin: edges.OwnBegin, End: edges.OwnEnd, Cols: edges.OwnCols, SelfLoops: true,
		}, 0, n, a.emitted, back)
		kernels.AttentionGradDst(g.team, at, a.DR, g.ownEdges(), a.emitted, back, false)
		kernels.AttentionGradDst(g.team, at, a.DR, g.ghostEdges(), a.ghosts, back, true)
	}
	ghosts := edges.Ghost
	kernels.AttentionGradSrc(g.team, at, g.exchange.Ghosts(width), kernels.Gather{
		Begin: ghosts.Offsets[:ghosts.Rows()], End: ghosts.Offsets[1:], Cols: ghosts.Cols,
	}, n, n, a.ghosts, back)
	if !g.overlap {
		own()
	}
	g.clock.lap("∇GA")
	if err := g.exchange.BeginBackward(width, halo.Key{Seed: g.seed, Epoch: p.Epoch, Layer: l, Backward: true}); err != nil {
		return nil, err
	}
	g.clock.lap("∇SC")
	if g.overlap {
		own()
		g.clock.lap("∇GA")
	}
	err := g.exchange.EndBackward(dst)
	g.clock.lap("∇SC")
	return dst, err
}

// ownEdges are the in-edges from own vertices, with self loops, without
// coefficients.
func (g *graphWork) ownEdges() kernels.Gather {
	in := g.shard.In
	return kernels.Gather{Begin: in.Offsets[:g.shard.NumOwn()], End: g.shard.InOwnEnd, Cols: in.Cols, SelfLoops: true}
}

// ghostEdges are those from ghosts.
func (g *graphWork) ghostEdges() kernels.Gather {
	in, own := g.shard.In, g.shard.NumOwn()
	return kernels.Gather{Begin: g.shard.InOwnEnd, End: in.Offsets[1:], Cols: in.Cols, Base: uint32(own)}
}

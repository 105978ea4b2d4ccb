package model

import (
	"siafu/graph/size"
	"siafu/kernels"
)

// GAT (Veličković et al. 2018): with K heads of D columns, for each head
//
//	Z = H W,  l = Z·a_source,  r = Z·a_target
//	out[v] = Σ_u softmax_u(leaky(l[u] + r[v])) Z[u]
//
// over the in-neighbours u of v and v itself, with dropout of the attention.
// Hidden layers put their heads side by side, H' = dropout(elu(out + b)); the
// last one takes their mean, H' = mean(out) + b.
//
// A vertex emits Z and l; since l = H (W a_source), one product with the
// columns of W and of W a_source makes the whole row, and its gradient is taken
// apart into those of W and a_source afterwards. The attention itself is the
// caller's, who owns the edges.

// slope is that of LeakyReLU below zero (§3.3 of the paper).
const slope = 0.2

// attentionStream tells the masks of attention from those of rows.
const attentionStream = 1 << 8

// Attended is a layer whose edges carry attention instead of coefficients.
type Attended interface {
	Layer
	// Attention is what the edges need to know in a pass; Emit comes first.
	Attention(p Pass) Attention
}

// Attention is a layer's attention on the own vertices.
type Attention struct {
	kernels.Attention
	R  kernels.Mat // [own x heads], of the forward pass
	DR kernels.Mat // [own x heads], where the gradient of R is expected before EmitGrad
}

func gatWeights(s Spec, l int) []Shape {
	heads, width := s.attention(l)
	bias := size.Product(heads, width)
	if l == s.Layers()-1 {
		bias = width
	}
	return []Shape{{"weight", s.Dims[l], size.Product(heads, width), false},
		{"source", heads, width, false}, {"target", heads, width, false}, {"bias", 1, bias, true}}
}

// attention is the number of heads of layer l and their width.
func (s Spec) attention(l int) (heads, width int) {
	if l == s.Layers()-1 {
		return max(s.OutputHeads, 1), s.Dims[l+1]
	}
	heads = max(s.Heads, 1)
	return heads, s.Dims[l+1] / heads
}

func gatLayer(b *Builder, l int) Layer {
	s := b.Spec
	g := &gat{
		ops: b.Ops, rows: b.Rows, last: b.Last(l), h: b.Hidden(l),
		weight: b.Weight(l, 0), source: b.Weight(l, 1), target: b.Weight(l, 2), bias: b.Weight(l, 3),
	}
	g.heads, g.width = s.attention(l)
	g.in, g.columns = s.Dims[l], g.heads*g.width
	g.emittedWidth = g.columns + g.heads
	g.emitted, g.r, g.dr = b.Room(g.emittedWidth), b.Room(g.heads), b.Room(g.heads)
	g.wide, g.narrow = b.Scratch(g.in, g.emittedWidth), b.Scratch(g.in, g.heads)
	g.gwide, g.gnarrow = b.Scratch(g.in, g.emittedWidth), b.Scratch(g.in, g.heads)
	g.output = b.Room(g.bias.W.Cols)
	if g.last && g.heads > 1 {
		g.spread = b.Room(g.columns)
	}
	g.gradIn = b.GradRoom(l)
	g.drop, g.edgeDrop = b.Dropout(l), b.AttentionDropout(l)
	return g
}

// gat is one layer.
type gat struct {
	ops                    kernels.Ops
	rows, in               int
	heads, width, columns  int
	emittedWidth           int
	last                   bool
	h                      Hidden
	weight, source, target Weight
	bias                   Weight
	drop, edgeDrop         *kernels.Dropout // nil where nothing is dropped

	wide, gwide     kernels.Mat // [in x emittedWidth]: W beside W a_source
	narrow, gnarrow kernels.Mat // [in x heads]: W a_target
	emitted         kernels.Mat // [rows x emittedWidth]
	r, dr           kernels.Mat // [rows x heads]
	output          kernels.Mat
	spread          kernels.Mat // gradient of all heads of a mean
	gradIn          kernels.Mat // [rows x in], nil in the first layer
}

func (g *gat) GatherWidth() int { return g.emittedWidth }

func (g *gat) GathersBackward() bool { return true }

func (g *gat) Attention(p Pass) Attention {
	a := kernels.Attention{Heads: g.heads, Width: g.width, Slope: slope, Drop: p.Mask(g.edgeDrop)}
	return Attention{a, g.r, g.dr}
}

func (g *gat) Emit(h kernels.Mat, p Pass) kernels.Mat {
	g.h.Take(h)
	g.ops.FoldScores(g.wide, g.narrow, g.weight.W, g.source.W, g.target.W)
	g.h.Multiply(g.emitted, g.wide, p)
	g.h.Multiply(g.r, g.narrow, p)
	return g.emitted
}

func (g *gat) Apply(gathered kernels.Mat, p Pass) kernels.Mat {
	if g.last {
		g.ops.MeanHeads(g.output, g.heads, gathered, g.bias.W)
		return g.output
	}
	g.ops.BiasELUDropout(g.output, gathered, g.bias.W, p.Mask(g.drop))
	return g.output
}

func (g *gat) ApplyGrad(grad kernels.Mat, p Pass) kernels.Mat {
	if !g.last {
		g.ops.BiasELUDropoutGrad(grad, g.bias.Grad, grad, g.output, p.Mask(g.drop))
		return grad
	}
	g.ops.ColumnSums(g.bias.Grad, grad, false)
	if g.heads == 1 {
		return grad
	}
	g.ops.MeanHeadsGrad(g.spread, g.heads, grad)
	return g.spread
}

func (g *gat) EmitGrad(grad kernels.Mat, p Pass) kernels.Mat {
	g.h.MultiplyGrad(g.gwide, grad, p)
	g.h.MultiplyGrad(g.gnarrow, g.dr, p)
	g.ops.FoldScoresGrad(g.weight.Grad, g.source.Grad, g.target.Grad, g.gwide, g.gnarrow, g.weight.W, g.source.W, g.target.W)
	g.h.InputGrad(g.gradIn, grad, g.wide, false)
	g.h.InputGrad(g.gradIn, g.dr, g.narrow, true)
	return g.gradIn
}

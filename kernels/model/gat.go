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
	R  []float32 // [own x heads], of the forward pass
	DR []float32 // [own x heads], where the gradient of R is expected before EmitGrad
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
		team: b.Team, rows: b.Rows, last: b.Last(l), h: b.Hidden(l), ids: b.in.LocalIDs,
		weight: b.Weight(l, 0), source: b.Weight(l, 1), target: b.Weight(l, 2), bias: b.Weight(l, 3),
	}
	g.heads, g.width = s.attention(l)
	g.in, g.columns = s.Dims[l], g.heads*g.width
	g.emittedWidth = g.columns + g.heads
	g.emitted, g.r, g.dr = b.Room(g.emittedWidth), b.Room(g.heads), b.Room(g.heads)
	g.wide, g.narrow = b.Scratch(g.in*g.emittedWidth), b.Scratch(g.in*g.heads)
	g.gwide, g.gnarrow = b.Scratch(g.in*g.emittedWidth), b.Scratch(g.in*g.heads)
	g.output = b.Room(len(g.bias.W))
	if g.last && g.heads > 1 {
		g.spread = b.Room(g.columns)
	}
	g.gradIn = b.GradRoom(l)
	g.drop, g.edgeDrop = b.Dropout(l), b.AttentionDropout(l)
	return g
}

// gat is one layer.
type gat struct {
	team                   *kernels.Team
	rows, in               int
	heads, width, columns  int
	emittedWidth           int
	last                   bool
	h                      Hidden
	ids                    []uint32 // dataset ids of local vertices
	weight, source, target Weight
	bias                   Weight
	drop, edgeDrop         *kernels.Dropout // nil where nothing is dropped

	wide, gwide     []float32 // [in x emittedWidth]: W beside W a_source
	narrow, gnarrow []float32 // [in x heads]: W a_target
	emitted         []float32 // [rows x emittedWidth]
	r, dr           []float32 // [rows x heads]
	output          []float32
	spread          []float32 // gradient of all heads of a mean
	gradIn          []float32 // [rows x in], nil in the first layer
}

func (g *gat) GatherWidth() int { return g.emittedWidth }

func (g *gat) GathersBackward() bool { return true }

func (g *gat) Attention(p Pass) Attention {
	a := kernels.Attention{Heads: g.heads, Width: g.width, Slope: slope, Drop: p.Mask(g.edgeDrop)}
	return Attention{a, g.r, g.dr}
}

func (g *gat) Emit(h []float32, p Pass) []float32 {
	g.h.Take(h)
	g.combine()
	g.h.Multiply(g.emitted, g.emittedWidth, g.wide, p)
	g.h.Multiply(g.r, g.heads, g.narrow, p)
	return g.emitted
}

// combine sets wide and narrow from the weights.
func (g *gat) combine() {
	for i := range g.in {
		w, wide := g.weight.W[i*g.columns:][:g.columns], g.wide[i*g.emittedWidth:][:g.emittedWidth]
		copy(wide, w)
		for h := range g.heads {
			part := w[h*g.width:][:g.width]
			wide[g.columns+h] = dot(part, g.source.W[h*g.width:])
			g.narrow[i*g.heads+h] = dot(part, g.target.W[h*g.width:])
		}
	}
}

func dot(x, y []float32) float32 {
	var s float32
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

func (g *gat) Apply(gathered []float32, p Pass) []float32 {
	if g.last {
		kernels.MeanHeads(g.team, g.output, g.rows, g.heads, g.width, gathered, g.bias.W)
		return g.output
	}
	kernels.BiasELUDropout(g.team, g.output, g.rows, g.columns, gathered, g.bias.W, p.Mask(g.drop))
	return g.output
}

func (g *gat) ApplyGrad(grad []float32, p Pass) []float32 {
	if !g.last {
		kernels.BiasELUDropoutGrad(g.team, grad, g.bias.Grad, g.rows, g.columns, grad, g.output, p.Mask(g.drop))
		return grad
	}
	kernels.ColumnSums(g.team, g.bias.Grad, g.rows, g.width, grad, false)
	if g.heads == 1 {
		return grad
	}
	kernels.MeanHeadsGrad(g.team, g.spread, g.rows, g.heads, g.width, grad)
	return g.spread
}

func (g *gat) EmitGrad(grad []float32, p Pass) []float32 {
	g.h.MultiplyGrad(g.gwide, g.emittedWidth, grad, p)
	g.h.MultiplyGrad(g.gnarrow, g.heads, g.dr, p)
	g.takeApart()
	g.h.InputGrad(g.gradIn, g.emittedWidth, grad, g.wide, false)
	g.h.InputGrad(g.gradIn, g.heads, g.dr, g.narrow, true)
	return g.gradIn
}

// takeApart turns the gradients of wide and narrow into those of the weights.
func (g *gat) takeApart() {
	clear(g.source.Grad)
	clear(g.target.Grad)
	for i := range g.in {
		w, gw := g.weight.W[i*g.columns:][:g.columns], g.weight.Grad[i*g.columns:][:g.columns]
		gwide := g.gwide[i*g.emittedWidth:][:g.emittedWidth]
		copy(gw, gwide)
		for h := range g.heads {
			gs, gt := gwide[g.columns+h], g.gnarrow[i*g.heads+h]
			for j := h * g.width; j < (h+1)*g.width; j++ {
				gw[j] += gs*g.source.W[j] + gt*g.target.W[j]
				g.source.Grad[j] += gs * w[j]
				g.target.Grad[j] += gt * w[j]
			}
		}
	}
}

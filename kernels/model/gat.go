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
	g := &gat{
		last: b.Last(l), plain: b.Plain(), h: b.Hidden(),
		weight: b.Weight(l, 0), source: b.Weight(l, 1), target: b.Weight(l, 2), bias: b.Weight(l, 3),
		drop: b.Dropout(l), edgeDrop: b.AttentionDropout(l),
	}
	g.heads, g.width = b.Spec.attention(l)
	in, columns := b.Spec.Dims[l], g.heads*g.width
	emitted := columns + g.heads
	b.Room(Emitted, emitted)
	b.Room(Scores, g.heads)
	b.Room(ScoresGrad, g.heads)
	b.Room(Signed, emitted)
	b.Room(Output, g.bias.Cols)
	b.In(GatheredGrad, OutputGrad)
	if g.last && g.heads > 1 {
		b.Room(GatheredGrad, columns)
	}
	b.GradRoom(InputGrad)
	g.wide, g.narrow = b.Scratch(in, emitted), b.Scratch(in, g.heads)
	g.gwide, g.gnarrow = b.Scratch(in, emitted), b.Scratch(in, g.heads)
	return g
}

// gat is one layer.
type gat struct {
	heads, width           int
	last, plain            bool // plain: without activation
	h                      Hidden
	weight, source, target Param
	bias                   Param
	drop, edgeDrop         *Dropout // nil where nothing is dropped

	// Scratch, with the gradients: W beside W a_source [in x heads·(width+1)], and
	// W a_target [in x heads].
	wide, gwide, narrow, gnarrow int
}

// GatherWidth implements Layer.
func (g *gat) GatherWidth() int { return g.heads * (g.width + 1) }

// GathersBackward implements Layer.
func (g *gat) GathersBackward() bool { return true }

// Attention implements Attended.
func (g *gat) Attention() kernels.Attention {
	return kernels.Attention{Heads: g.heads, Width: g.width, Slope: slope}
}

// EdgeDropout implements Attended.
func (g *gat) EdgeDropout() *Dropout { return g.edgeDrop }

// Flow implements Layer.
func (g *gat) Flow(s Stage) Flow {
	switch s {
	case Emit:
		return Flow{Reads: []Value{Input}, Writes: []Value{Emitted, Scores}}
	case Apply:
		return Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}
	case ApplyBackward:
		return Flow{Reads: []Value{OutputGrad, Output}, Writes: []Value{OutputGrad, GatheredGrad}, Grads: []Param{g.bias}}
	}
	return Flow{Reads: []Value{EmittedGrad, ScoresGrad, Input}, Writes: []Value{InputGrad}, Grads: []Param{g.weight, g.source, g.target}}
}

// Run implements Layer.
func (g *gat) Run(s Stage, x *Step) {
	switch s {
	case Emit:
		g.fold(x)
		g.h.Multiply(x, x.At(Emitted), x.Scratch(g.wide))
		g.h.Multiply(x, x.At(Scores), x.Scratch(g.narrow))
	case Apply:
		if g.last {
			x.Ops.MeanHeads(x.At(Output), g.heads, x.At(Gathered), x.W(g.bias))
			return
		}
		if g.plain {
			x.Ops.BiasReLUDropout(x.At(Output), x.At(Gathered), x.W(g.bias), false, nil)
			return
		}
		x.Ops.BiasELUDropout(x.At(Output), x.At(Gathered), x.W(g.bias), x.Mask(g.drop))
	case ApplyBackward:
		g.applyBackward(x)
	case EmitBackward:
		g.emitBackward(x)
	}
}

// fold makes the factors of the rows and of the scores.
func (g *gat) fold(x *Step) {
	x.Ops.FoldScores(x.Scratch(g.wide), x.Scratch(g.narrow), x.W(g.weight), x.W(g.source), x.W(g.target))
}

func (g *gat) applyBackward(x *Step) {
	grad := x.At(OutputGrad)
	if !g.plain {
		x.Ops.BiasELUDropoutGrad(grad, x.Grad(g.bias), grad, x.At(Output), x.Mask(g.drop))
		return
	}
	x.Ops.ColumnSums(x.Grad(g.bias), grad, false)
	if g.last && g.heads > 1 {
		x.Ops.MeanHeadsGrad(x.At(GatheredGrad), g.heads, grad)
	}
}

func (g *gat) emitBackward(x *Step) {
	grad, scores := x.At(EmittedGrad), x.At(ScoresGrad)
	wide, narrow := x.Scratch(g.gwide), x.Scratch(g.gnarrow)
	g.h.MultiplyGrad(x, wide, grad)
	g.h.MultiplyGrad(x, narrow, scores)
	x.Ops.FoldScoresGrad(x.Grad(g.weight), x.Grad(g.source), x.Grad(g.target), wide, narrow, x.W(g.weight), x.W(g.source), x.W(g.target))
	if g.h.Constant() {
		return
	}
	g.fold(x)
	g.h.InputGrad(x, x.At(InputGrad), grad, x.Scratch(g.wide), false)
	g.h.InputGrad(x, x.At(InputGrad), scores, x.Scratch(g.narrow), true)
}

package model

import (
	"siafu/internal/size"
	"siafu/kernels"
)

// GAT (Veličković et al. 2018): with K heads of D columns, for each head
//
//	Z = H W,  l = Z·a_source,  r = Z·a_target
//	out[v] = Σ_u softmax_u(leaky(l[u] + r[v])) Z[u]
//
// over the in-neighbours u of v and v itself, with dropout of the attention. Hidden layers
// concatenate their heads, H' = dropout(elu(out + b)); the last one averages them, H' =
// mean(out) + b.
//
// A vertex emits Z and l; since l = H (W a_source), one product with the columns of W and of W
// a_source gives the whole row. Its gradient is then split into the gradients of W and a_source. The
// caller, who owns the edges, computes the attention itself.

var gatKind = Kind{
	Name: "gat", Help: "graph attention network", Paper: "Veličković et al. 2018",
	Weights: gatWeights, Layer: gatLayer, Coefficients: SumCoefficients,
	Attends: true, Order: "apply-first", Activation: "elu",
	StateDict: StateDict{
		"lin.weight": {Weight: "weight", Transpose: true}, "bias": {Weight: "bias"},
		"lin_src.weight": {Weight: "weight", Transpose: true}, "lin_dst.weight": {Weight: "weight", Transpose: true, Copy: true},
		"att_src": {Weight: "source", Flat: true}, "att_dst": {Weight: "target", Flat: true},
		"lin_l.weight": {Weight: "weight", Transpose: true}, "att_l": {Weight: "source", Flat: true},
		"att_r": {Weight: "target", Flat: true},
	},
}

// slope is LeakyReLU's below zero (§3.3 of the paper).
const slope = 0.2

// attentionStream separates the masks of attention from those of rows.
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

// attention returns the number of heads of layer l and their width.
func (s Spec) attention(l int) (heads, width int) {
	if l == s.Layers()-1 {
		return max(s.OutputHeads, 1), s.Dims[l+1]
	}
	heads = max(s.Heads, 1)
	return heads, s.Dims[l+1] / heads
}

func gatLayer(b *Builder, l int) Layer {
	g := &gat{attentionLayer: newAttentionLayer(b, l, b.Weight(l, len(b.params[l])-1)), weight: b.Weight(l, 0),
		source: b.Weight(l, 1), target: b.Weight(l, 2)}
	in, emitted := b.Spec.Dims[l], g.heads*(g.width+1)
	b.Alloc(Emitted, emitted)
	b.Alloc(Scores, g.heads)
	b.Alloc(ScoresGrad, g.heads)
	b.Alloc(Signed, emitted)
	g.wide, g.narrow = b.Scratch(in, emitted), b.Scratch(in, g.heads)
	g.gwide, g.gnarrow = b.Scratch(in, emitted), b.Scratch(in, g.heads)
	g.stages[Emit] = stageWork{Flow{Reads: []Value{Input}, Writes: []Value{Emitted, Scores}}, g.emit}
	g.stages[EmitBackward] = stageWork{
		Flow{Reads: []Value{EmittedGrad, ScoresGrad, Input}, Writes: []Value{InputGrad},
			Grads: []Param{g.weight, g.source, g.target}}, g.emitBackward,
	}
	return g
}

// attentionLayer is the common part of layers with attention, with the stages Apply and
// ApplyBackward.
type attentionLayer struct {
	stages
	heads, width   int
	last, plain    bool // plain: without activation
	h              Hidden
	bias           Param
	drop, edgeDrop *Dropout // nil without dropout
}

// newAttentionLayer allocates the common values of layer l.
func newAttentionLayer(b *Builder, l int, bias Param) *attentionLayer {
	a := &attentionLayer{last: b.Last(l), plain: b.Plain(), h: b.Hidden(), bias: bias, drop: b.Dropout(l), edgeDrop: b.AttentionDropout(l)}
	a.heads, a.width = b.Spec.attention(l)
	b.outputUnread = a.plain
	b.Alloc(Output, bias.Cols)
	b.ShareStorage(GatheredGrad, OutputGrad)
	if a.last && a.heads > 1 {
		b.Alloc(GatheredGrad, a.heads*a.width)
	}
	b.AllocGrad(InputGrad)
	a.stages[Apply] = stageWork{Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, a.apply}
	a.stages[ApplyBackward] = stageWork{
		Flow{Reads: []Value{OutputGrad, Output}, Writes: []Value{OutputGrad, GatheredGrad}, Grads: []Param{bias}}, a.applyBackward}
	return a
}

func (a *attentionLayer) GathersBackward() bool { return true }

func (a *attentionLayer) EdgeDropout() *Dropout { return a.edgeDrop }

func (a *attentionLayer) apply(x *Step) {
	switch {
	case a.last:
		x.Ops.MeanHeads(x.At(Output), a.heads, x.At(Gathered), x.W(a.bias))
	case a.plain:
		x.Ops.BiasReLUDropout(x.At(Output), x.At(Gathered), x.W(a.bias), false, nil)
	default:
		x.Ops.BiasELUDropout(x.At(Output), x.At(Gathered), x.W(a.bias), x.Mask(a.drop))
	}
}

func (a *attentionLayer) applyBackward(x *Step) {
	grad := x.At(OutputGrad)
	if !a.plain {
		x.Ops.BiasELUDropoutGrad(grad, x.Grad(a.bias), grad, x.At(Output), x.Mask(a.drop))
		return
	}
	x.Ops.ColumnSums(x.Grad(a.bias), grad, false)
	if a.last && a.heads > 1 {
		x.Ops.MeanHeadsGrad(x.At(GatheredGrad), a.heads, grad)
	}
}

// gat is one layer. It implements Attended.
type gat struct {
	*attentionLayer
	weight, source, target Param

	// Scratch, with gradients: W followed by W a_source [in x heads·(width+1)], and W a_target
	// [in x heads].
	wide, gwide, narrow, gnarrow int
}

func (g *gat) GatherWidth() int { return g.heads * (g.width + 1) }

func (g *gat) Attention(kernels.Mat) kernels.Attention {
	return kernels.Attention{Heads: g.heads, Width: g.width, Slope: slope}
}

func (g *gat) emit(x *Step) {
	g.fold(x)
	g.h.Multiply(x, x.At(Emitted), x.Scratch(g.wide))
	if scores := x.At(Scores); !scores.IsNil() { // ghosts that attend nowhere have none
		g.h.Multiply(x, scores, x.Scratch(g.narrow))
	}
}

// fold computes the factors of the rows and of the scores.
func (g *gat) fold(x *Step) {
	x.Ops.FoldScores(x.Scratch(g.wide), x.Scratch(g.narrow), x.W(g.weight), x.W(g.source), x.W(g.target))
}

func (g *gat) emitBackward(x *Step) {
	grad, scores := x.At(EmittedGrad), x.At(ScoresGrad)
	wide, narrow := x.Scratch(g.gwide), x.Scratch(g.gnarrow)
	g.h.MultiplyGrad(x, wide, grad)
	if scores.IsNil() {
		x.Ops.Clear(narrow)
	} else {
		g.h.MultiplyGrad(x, narrow, scores)
	}
	x.Ops.FoldScoresGrad(x.Grad(g.weight), x.Grad(g.source), x.Grad(g.target), wide, narrow, x.W(g.weight), x.W(g.source), x.W(g.target))
	if g.h.Constant() {
		return
	}
	g.fold(x)
	g.h.InputGrad(x, x.At(InputGrad), grad, x.Scratch(g.wide), false)
	g.h.InputGrad(x, x.At(InputGrad), scores, x.Scratch(g.narrow), true)
}

package model

import (
	"siafu/internal/size"
)

// Simple-HGN (Lv et al., "Are we really making much progress?", KDD 2021, §4) is gat with a learned
// term of each relation in the scores, residual connections of vertices, and logits of norm 1. For each
// head, along an edge u → v of relation r,
//
//	s = leaky(Z[u]·a_source + Z[v]·a_target + t[r]),  Z = H W
//	H' = elu(Σ softmax(s) Z[u] + H W_residual + b)
//
// The softmax is over all edges into v and v itself, whose self loop is a relation of its own. The
// first layer has no residual connection; where both widths are equal there is no W_residual. The last
// layer averages its heads, has no elu, and divides rows by their norms.
//
// With Design.EdgeResidual β, the attention of hidden layers after the first is a(l) = (1-β) softmax(s) +
// β a(l-1). As in the paper's code, a(l-1) is a constant in the gradient, and the last layer has no β.
//
// Design note: the paper's term is a product of three learned factors, which only their product t[r]
// represents here.

var hgnKind = Kind{
	Name: "hgn", Help: "graph attention with a learned term per relation (Simple-HGN)", Paper: "Lv et al. 2021",
	Weights: hgnWeights, Layer: hgnLayer, Coefficients: SumCoefficients,
	Attends: true, Relational: true, Order: "apply-first", Activation: "elu", Options: []Option{OptionEdgeResidual},
}

// Names of weights of relational attention.
const (
	termsName    = "relation" // [relations + 1 x heads], the last row is that of self loops
	residualName = "residual.weight"
)

// hgnResidual reports whether layer l has a residual connection, and whether it needs a matrix.
func (s Spec) hgnResidual(l, out int) (has, matrix bool) {
	has = l > s.Design.layersBefore()
	return has, has && s.Dims[l] != out
}

func hgnWeights(s Spec, l int) []Shape {
	gat := gatWeights(s, l)
	bias := gat[3]
	list := append(gat[:3:3], Shape{termsName, size.Sum(s.relations(), 1), gat[1].Rows, false})
	if _, matrix := s.hgnResidual(l, bias.Cols); matrix {
		list = append(list, Shape{residualName, s.Dims[l], bias.Cols, false})
	}
	return append(list, bias)
}

// RelationalAttention is an Attended layer whose scores have a term for each relation.
type RelationalAttention interface {
	Attended
	// RelationTerms returns the weight [relations + 1 x heads] of the terms. Graph work computes its
	// gradient. The last row belongs to self loops.
	RelationTerms() Param
	// EdgeResidual returns the fraction β of the attention that is that of the attention layer before.
	EdgeResidual() float64
}

func hgnLayer(b *Builder, l int) Layer {
	g := gatLayer(b, l).(*gat)
	h := &hgn{gat: g, terms: b.Weight(l, 3)}
	out := g.bias.Cols
	if h.residual, h.multiplies = b.Spec.hgnResidual(l, out); h.residual && !g.last {
		h.edgeResidual = b.Spec.Design.EdgeResidual
	}
	apply, back, emit := &g.stages[Apply], &g.stages[ApplyBackward], &g.stages[EmitBackward]
	if h.residual {
		apply.Reads = append(apply.Reads, Input)
		emit.Reads = append(emit.Reads, OutputGrad)
	}
	if h.multiplies {
		h.weight = b.Weight(l, 4)
		back.Reads, back.Grads = append(back.Reads, Input), append(back.Grads, h.weight)
	}
	if g.last {
		b.Alloc(inner, out)
		apply.Writes, back.Reads = append(apply.Writes, inner), append(back.Reads, inner)
	}
	apply.run, back.run, emit.run = h.apply, h.applyBackward, h.emitBackward
	return h
}

// hgn is one layer. It implements RelationalAttention.
type hgn struct {
	*gat
	terms, weight        Param // weight is W_residual, if multiplies is set
	residual, multiplies bool
	edgeResidual         float64
}

func (h *hgn) RelationTerms() Param { return h.terms }

func (h *hgn) EdgeResidual() float64 { return h.edgeResidual }

func (h *hgn) apply(x *Step) {
	sum, gathered := x.At(Output), x.At(Gathered)
	if h.last {
		sum = x.At(inner)
		x.Ops.MeanHeads(sum, h.heads, gathered, x.W(h.bias))
	} else {
		x.Ops.Copy(sum, gathered)
	}
	switch {
	case h.multiplies:
		x.Ops.MatMul(sum, x.At(Input), x.W(h.weight), true)
	case h.residual:
		x.Ops.Add(sum, x.At(Input))
	}
	switch {
	case h.last:
		x.Ops.UnitRows(x.At(Output), sum, false)
	case h.plain:
		x.Ops.BiasReLUDropout(sum, sum, x.W(h.bias), false, nil)
	default:
		x.Ops.BiasELUDropout(sum, sum, x.W(h.bias), x.Mask(h.drop))
	}
}

func (h *hgn) applyBackward(x *Step) {
	if grad := x.At(OutputGrad); h.last {
		x.Ops.UnitRowsGrad(grad, grad, x.At(inner), false)
	}
	h.gat.applyBackward(x)
	if h.multiplies {
		x.Ops.MatMulTransA(x.Grad(h.weight), x.At(Input), x.At(OutputGrad), false)
	}
}

func (h *hgn) emitBackward(x *Step) {
	h.gat.emitBackward(x)
	grad := x.At(OutputGrad)
	switch {
	case h.h.Constant() || grad.IsNil():
	case h.multiplies:
		x.Ops.MatMulTransB(x.At(InputGrad), grad, x.W(h.weight), true)
	case h.residual:
		x.Ops.Add(x.At(InputGrad), grad)
	}
}

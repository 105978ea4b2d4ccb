package model

import (
	"siafu/internal/size"
	"siafu/kernels"
)

// GATv2 (Brody, Alon & Yahav, "How attentive are graph attention networks?", ICLR 2022,
// equation 7): gat with scores that depend jointly on both ends of an edge. With
//
//	Z = H W,  R = H W_target + b_target
//	s[v,u] = a·leaky(Z[u] + R[v] + f[v,u]·E)
//
// for each head; all else is as in gat. f are the features of an edge or, without features,
// its weight; without either there is no E. A self loop has the mean of the features of the
// edges into the vertex, 0 without any, as in PyTorch Geometric.
//
// Design note: other implementations have biases in W and in W_target. One is enough, because
// scores depend only on their sum, and a bias of W only shifts gathered rows by itself.

var gatv2Kind = Kind{
	Name: "gatv2", Help: "graph attention with dynamic scores", Paper: "Brody et al. 2022",
	Weights: gatv2Weights, Layer: gatv2Layer, Coefficients: SumCoefficients,
	Attends: true, Dynamic: true, Order: "apply-first", Activation: "elu",
	// A bias of gathered rows moves the scores, and the sum by itself.
	StateDict: StateDict{
		"lin_l.weight": {Weight: "weight", Transpose: true}, "lin_l.bias": {Weight: "target.bias", Also: "bias"},
		"lin_r.weight": {Weight: "target.weight", Transpose: true}, "lin_r.bias": {Weight: "target.bias"},
		"lin_edge.weight": {Weight: "edge.weight", Transpose: true},
		"att":             {Weight: "attention", Flat: true}, "bias": {Weight: "bias"},
	},
}

func gatv2Weights(s Spec, l int) []Shape {
	gat := gatWeights(s, l)
	weight, attention, bias := gat[0], gat[1], gat[3]
	columns := size.Product(attention.Rows, attention.Cols)
	list := []Shape{weight, {"target.weight", weight.Rows, weight.Cols, false}, {"attention", attention.Rows, attention.Cols, false}}
	if dim := s.EdgeDim(); dim > 0 {
		list = append(list, Shape{"edge.weight", dim, columns, false})
	}
	return append(list, Shape{"target.bias", 1, columns, true}, bias)
}

func gatv2Layer(b *Builder, l int) Layer {
	last := len(b.params[l]) - 1
	g := &gatv2{
		attentionLayer: newAttentionLayer(b, l, b.Weight(l, last)), weight: b.Weight(l, 0), target: b.Weight(l, 1), vector: b.Weight(l, 2),
		targetBias: b.Weight(l, last-1), features: b.Spec.EdgeDim(),
	}
	g.along = Param{Layer: l, Rows: 1, Cols: g.heads * g.width, Offset: g.vector.Offset}
	trained := []Param{g.weight, g.target, g.targetBias, g.vector}
	if g.features > 0 {
		g.along.Cols *= 1 + g.features
		g.edge = b.Weight(l, 3)
		trained = append(trained, g.edge)
	}
	columns := g.heads * g.width
	b.Alloc(Emitted, columns)
	b.Alloc(Scores, columns)
	b.Alloc(ScoresGrad, columns)
	b.Alloc(AlongGrad, g.along.Cols)
	g.stages[Emit] = stageWork{Flow{Reads: []Value{Input}, Writes: []Value{Emitted, Scores}}, g.emit}
	g.stages[EmitBackward] = stageWork{
		Flow{Reads: []Value{EmittedGrad, ScoresGrad, AlongGrad, Input}, Writes: []Value{InputGrad}, Grads: trained}, g.emitBackward}
	return g
}

// gatv2 is one layer. It implements Attended.
type gatv2 struct {
	*attentionLayer
	weight, target, targetBias Param
	vector, edge               Param
	features                   int   // of an edge
	along                      Param // vector, and edge after it
}

func (g *gatv2) GatherWidth() int { return g.heads * g.width }

func (g *gatv2) Attention(weights kernels.Mat) kernels.Attention {
	a := kernels.Attention{Heads: g.heads, Width: g.width, Slope: slope, Dynamic: true}
	if weights.IsNil() {
		return a
	}
	a.Vector = g.vector.In(weights)
	if g.features > 0 {
		a.Edge = g.edge.In(weights)
	}
	return a
}

func (g *gatv2) emit(x *Step) {
	g.h.Multiply(x, x.At(Emitted), x.W(g.weight))
	if scores := x.At(Scores); !scores.IsNil() { // ghosts that attend nowhere have none
		g.h.Multiply(x, scores, x.W(g.target))
		x.Ops.BiasReLUDropout(scores, scores, x.W(g.targetBias), false, nil)
	}
}

func (g *gatv2) emitBackward(x *Step) {
	grad, scores := x.At(EmittedGrad), x.At(ScoresGrad)
	g.h.MultiplyGrad(x, x.Grad(g.weight), grad)
	if !scores.IsNil() { // else the gradients of these weights are zero since their allocation
		g.h.MultiplyGrad(x, x.Grad(g.target), scores)
		x.Ops.ColumnSums(x.Grad(g.targetBias), scores, false)
		x.Ops.ColumnSums(x.Grad(g.along), x.At(AlongGrad), false)
	}
	g.h.InputGrad(x, x.At(InputGrad), grad, x.W(g.weight), false)
	g.h.InputGrad(x, x.At(InputGrad), scores, x.W(g.target), true)
}

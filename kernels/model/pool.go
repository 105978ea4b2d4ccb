package model

import "cmp"

// GraphSAGE with max pooling (Hamilton et al. 2017, equation 3): a perceptron is applied to
// neighbours' rows before the maximum of each column is taken,
//
//	P = relu(H W_pool + b_pool),  H' = dropout(relu(M(P) W + H W_self + b))
//
// with M as in sage.go, without the last relu and dropout in the last layer. P is as wide as H
// (SAGEConv with aggr="max" and project=True of PyTorch Geometric, aggregator "pool" of DGL),
// or Design.PoolHidden columns.

var sagePoolKind = Kind{
	Name: "sage-pool", Help: "GraphSAGE with max pooling", Paper: "Hamilton et al. 2017",
	Weights: poolWeights, Layer: poolLayer, Coefficients: OtherCoefficients, Rectifies: true,
	Maximum: true, Order: "apply-first", Options: []Option{OptionPoolHidden},
	StateDict: StateDict{
		"lin.weight": {Weight: "pool.weight", Transpose: true}, "lin.bias": {Weight: "pool.bias"},
		"lin_l.weight": {Weight: "weight", Transpose: true}, "lin_l.bias": {Weight: "bias"},
		"lin_r.weight": {Weight: selfWeight, Transpose: true},
	},
}

// poolWidth returns the width of P in layer l.
func (s Spec) poolWidth(l int) int { return cmp.Or(s.Design.PoolHidden, s.Dims[l]) }

func poolWeights(s Spec, l int) []Shape {
	in, pooled, out := s.Dims[l], s.poolWidth(l), s.Dims[l+1]
	return []Shape{{"pool.weight", in, pooled, false}, {"pool.bias", 1, pooled, true},
		{selfWeight, in, out, false}, {"weight", pooled, out, false}, {"bias", 1, out, true}}
}

func poolLayer(b *Builder, l int) Layer {
	g := &pool{dense: newDense(b, l, true), width: b.Spec.poolWidth(l), self: b.Weight(l, 2), weight: b.Weight(l, 3), bias: b.Weight(l, 4)}
	b.Alloc(Emitted, g.width)
	b.Alloc(Output, g.out)
	b.Alloc(GatheredGrad, g.width)
	b.AllocInputGrad()
	// P is stored until the backward pass: gradients are 0 where P is 0.
	g.stages = stages{
		Emit:  {Flow{Reads: []Value{Input}, Writes: []Value{Emitted}}, g.emit},
		Apply: {Flow{Reads: []Value{Gathered, Input}, Writes: []Value{Output}}, g.apply},
		ApplyBackward: {Flow{
			Reads: []Value{OutputGrad, Output, Input, Gathered}, Writes: []Value{OutputGrad, GatheredGrad},
			Grads: []Param{g.self, g.weight, g.bias},
		}, g.applyBackward},
		EmitBackward: {Flow{
			Reads: []Value{EmittedGrad, OutputGrad, Input, Emitted}, Writes: []Value{EmittedGrad, InputGrad}, Grads: []Param{g.w, g.b},
		}, g.emitBackward},
	}
	return g
}

// pool is one layer.
type pool struct {
	*dense             // W_pool and b_pool
	width        int   // of P
	self, weight Param // W_self and W
	bias         Param // b
}

func (g *pool) GatherWidth() int { return g.width }

func (g *pool) emit(x *Step) {
	g.dense.emit(x)
	x.Ops.BiasReLUDropout(x.At(Emitted), x.At(Emitted), x.W(g.b), true, nil)
}

func (g *pool) apply(x *Step) {
	output := x.At(Output)
	g.h.Multiply(x, output, x.W(g.self))
	x.Ops.MatMul(output, x.At(Gathered), x.W(g.weight), true)
	x.Ops.BiasReLUDropout(output, output, x.W(g.bias), !g.last, x.Mask(g.drop))
}

func (g *pool) applyBackward(x *Step) {
	g.activateGrad(x, g.bias)
	grad := x.At(OutputGrad)
	g.h.MultiplyGrad(x, x.Grad(g.self), grad)
	x.Ops.MatMulTransA(x.Grad(g.weight), x.At(Gathered), grad, false)
	x.Ops.MatMulTransB(x.At(GatheredGrad), grad, x.W(g.weight), false)
}

func (g *pool) emitBackward(x *Step) {
	grad := x.At(EmittedGrad)
	x.Ops.BiasReLUDropoutGrad(grad, x.Grad(g.b), grad, x.At(Emitted), true, nil)
	g.h.MultiplyGrad(x, x.Grad(g.w), grad)
	g.h.InputGrads(x, x.At(InputGrad), x.At(OutputGrad), x.W(g.self), grad, x.W(g.w))
}

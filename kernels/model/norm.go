package model

import (
	"math"

	"siafu/kernels"
)

// Normalisation of a hidden layer's rows Z, before its activation:
//
//	layer  H = γ (Z - μ)/√(σ² + ε) + β of each row                (Ba et al. 2016)
//	batch  H = γ (Z - μ)/√(σ² + ε) + β of each column             (Ioffe & Szegedy 2015)
//	pair   H = (Z - μ)/√(Σ σ² + ε), μ of columns, Σ over columns  (Zhao & Akoglu 2020, PairNorm)
//	l2     H = Z/max(‖Z‖, 1e-12) of each row                      (Hamilton et al. 2017, algorithm 1, line 7)
//	ball   H = Z/max(‖Z‖, 1) of each row                          (the program of Shchur et al. 2018)
//
// l2 and ball also apply to the last layer's rows, the logits, like SAGEConv of PyTorch
// Geometric with normalize=True. The algorithm applies them after the activation.
//
// Means and variances of columns are exact, over all vertices of all ranks, except in
// evaluations and predictions of batch, which use running ones.
//
// The forward pass sums Z and Z² over vertices. The backward pass sums G and G Z, where G is the
// gradient of H. Let a = γ/√(σ² + ε), m the mean of G, and k the
// mean of G (Z - μ) divided by σ² + ε. Then the gradient of Z is a (G - m - (Z - μ) k). For
// pair γ is 1, and the variances and the means of G (Z - μ) are summed over columns. Both passes
// scale columns by factors from Settle (kernels.Ops.AffineColumns).
//
// Design note: variances are differences of two sums in float64. Computing them from Z - μ
// would need a second pass over the vertices and a second sum over ranks.

// Norms returns the names of normalisations.
func Norms() []string { return []string{"layer", "batch", "pair", l2, ball} }

// l2 divides rows by their norms, ball only rows longer than 1.
const l2, ball = "l2", "ball"

// DividesRows reports whether a normalisation divides rows by their norms, including the last
// layer's.
func DividesRows(norm string) bool { return norm == l2 || norm == ball }

// normEps is ε.
const normEps = 1e-5

// Momentum is the weight of an epoch in running means (Param.Running).
const Momentum = 0.1

// normStarts has the weights before the first epoch.
var normStarts = map[string]float32{"norm.weight": 1, "norm.bias": 0, "norm.running_mean": 0, "norm.running_var": 1}

func normWeights(s Spec, l int) []Shape {
	row := func(name string) Shape { return Shape{"norm." + name, 1, s.Dims[l+1], true} }
	switch s.Design.Norm {
	case "layer":
		return []Shape{row("weight"), row("bias")}
	case "batch":
		return []Shape{row("weight"), row("bias"), row("running_mean"), row("running_var")}
	}
	return nil
}

func normLayer(b *Builder, l int) Layer {
	b.shareEnds()
	b.Alloc(Output, b.Spec.Dims[l+1])
	switch b.Spec.Design.Norm {
	case l2, ball:
		ball := b.Spec.Design.Norm == ball
		return &pointwise{stages{
			Apply: {Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
				x.Ops.UnitRows(x.At(Output), x.At(Gathered), ball)
			}},
			ApplyBackward: {Flow{Reads: []Value{OutputGrad, Gathered}, Writes: []Value{GatheredGrad}}, func(x *Step) {
				x.Ops.UnitRowsGrad(x.At(OutputGrad), x.At(OutputGrad), x.At(Gathered), ball)
			}},
		}}
	case "layer":
		gain, bias := b.Weight(l, 0), b.Weight(l, 1)
		return &pointwise{stages{
			Apply: {Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
				x.Ops.LayerNorm(x.At(Output), x.At(Gathered), x.W(gain), x.W(bias), normEps)
			}},
			ApplyBackward: {Flow{Reads: []Value{OutputGrad, Gathered}, Writes: []Value{GatheredGrad},
				Grads: []Param{gain, bias}}, func(x *Step) {
				grad := x.At(OutputGrad)
				x.Ops.LayerNormGrad(grad, x.Grad(gain), x.Grad(bias), grad, x.At(Gathered), x.W(gain), normEps)
			}},
		}}
	}
	n := &columnNorm{width: b.Spec.Dims[l+1], w: b.params[l]}
	b.Sums(2*n.width, readRows*n.width, settledRows*n.width)
	row := func(x *Step, k int) kernels.Mat {
		return x.Settled().Part(k*n.width, (k+1)*n.width).Reshape(1, n.width)
	}
	n.stages = stages{
		Emit: {Flow{Reads: []Value{Input}}, func(x *Step) {
			if n.Summed(x.Pass) {
				x.Ops.ColumnMoments(x.Sums(), x.At(Input), x.At(Input))
			}
		}},
		Apply: {Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
			x.Ops.AffineColumns(x.At(Output), x.At(Gathered), row(x, scale), kernels.Mat{}, kernels.Mat{}, row(x, shift))
		}},
		ApplyBackward: {Flow{Reads: []Value{OutputGrad, Gathered}}, func(x *Step) {
			x.Ops.ColumnMoments(x.Sums(), x.At(OutputGrad), x.At(Gathered))
		}},
		EmitBackward: {Flow{Reads: []Value{EmittedGrad, Input}, Writes: []Value{InputGrad}, Grads: n.w}, func(x *Step) {
			x.Ops.AffineColumns(x.At(InputGrad), x.At(EmittedGrad), row(x, scale), x.At(Input), row(x, pull), row(x, offset))
		}},
	}
	return n
}

// columnNorm is the Layer of the norms batch, which has weights, and pair. It implements Summing.
type columnNorm struct {
	pointwise
	width int
	w     []Param // γ, β, running mean and variance; none for pair
}

// The settled values, each [width]. Stages compute H = Z scale + shift, and the gradient of Z is
// G scale + Z pull + offset. The values from mean on are input of Settle in the backward pass.
const (
	scale = iota
	shift
	pull
	offset
	mean
	inverse     // 1/√(σ² + ε)
	runningMean // new values for the running ones
	runningVar
	settledRows
	readRows = mean
)

// Summed implements Summing: an evaluation of batch takes running means.
func (n *columnNorm) Summed(p Pass) bool { return p.Train || len(n.w) == 0 }

func (n *columnNorm) Settle(back bool, own, all []float64, weights, grad []float32, state []float64) {
	at := func(k int) []float64 { return state[k*n.width : (k+1)*n.width] }
	switch {
	case back:
		n.settleBack(own, all, grad, at)
		return
	case all == nil:
		for c := range n.width {
			at(mean)[c], at(inverse)[c] = float64(n.w[2].Of(weights)[c]), float64(n.w[3].Of(weights)[c])
		}
	default:
		n.moments(all, at)
	}
	n.invert(at(inverse))
	for c := range n.width {
		gain, bias := 1.0, 0.0
		if len(n.w) > 0 {
			gain, bias = float64(n.w[0].Of(weights)[c]), float64(n.w[1].Of(weights)[c])
		}
		at(scale)[c] = gain * at(inverse)[c]
		at(shift)[c] = bias - float64(at(mean)[c]*at(scale)[c])
	}
}

// moments computes means and variances from the sums over all vertices. Variances are stored
// in the place of their inverse roots.
func (n *columnNorm) moments(all []float64, at func(int) []float64) {
	rows := all[2*n.width]
	for c := range n.width {
		m := all[c] / rows
		v := max(all[n.width+c]/rows-float64(m*m), 0)
		at(mean)[c], at(inverse)[c] = m, v
		at(runningMean)[c], at(runningVar)[c] = m, v*rows/max(rows-1, 1)
	}
}

// invert turns variances into 1 over their roots: of each column, or of their sum.
func (n *columnNorm) invert(v []float64) {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	for c, x := range v {
		if len(n.w) == 0 {
			x = sum
		}
		v[c] = 1 / math.Sqrt(x+normEps)
	}
}

// settleBack settles the backward pass, and sets this rank's gradients.
func (n *columnNorm) settleBack(own, all []float64, grad []float32, at func(int) []float64) {
	rows, total := all[2*n.width], 0.0
	along := func(sums []float64, c int) float64 { return sums[n.width+c] - float64(at(mean)[c]*sums[c]) } // Σ G (Z - μ)
	for c := range n.width {
		total += along(all, c)
	}
	for c := range n.width {
		a, inv := at(scale)[c], at(inverse)[c]
		k := total
		if len(n.w) > 0 {
			k = along(all, c)
		}
		k *= inv * inv / rows
		at(pull)[c] = -a * k
		at(offset)[c] = a * (float64(at(mean)[c]*k) - all[c]/rows)
	}
	if len(n.w) == 0 {
		return
	}
	share := own[2*n.width] / rows
	for c := range n.width {
		n.w[0].Of(grad)[c], n.w[1].Of(grad)[c] = float32(along(own, c)*at(inverse)[c]), float32(own[c])
		n.w[2].Of(grad)[c], n.w[3].Of(grad)[c] = float32(share*at(runningMean)[c]), float32(share*at(runningVar)[c])
	}
}

package model

import (
	"math"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// GCN (Kipf & Welling 2017):
//
//	H' = dropout(relu(Â H W + b)),  Â = D^-½ (A + I) D^-½
//
// The last layer has no relu and no dropout. On a directed graph the two degrees of an edge are
// the in-degree of its destination and the out-degree of its source. Both include the self loop.
// With edge weights, A has the weights and degrees are sums of weights. The self loop has weight
// 1. The same layers with Â = I are a multi-layer perceptron, the baseline of graph models.
//
// A layer comes in two variants: gatherFirst computes (ÂH)W, applyFirst Â(HW).

var gcnKind = Kind{
	Name: "gcn", Help: "graph convolutions with symmetric normalisation", Paper: "Kipf & Welling 2017",
	Weights: OneProduct, Layer: gcnLayer, Coefficients: GCNCoefficients, Rectifies: true, Variates: true, Momentum: true, Whole: true,
	StateDict: StateDict{"lin.weight": {Weight: "weight", Transpose: true}, "weight": {Weight: "weight"}, "bias": {Weight: "bias"}},
}

var mlpKind = Kind{
	Name: "mlp", Help: "multi-layer perceptron, which ignores the edges",
	Weights: OneProduct, Layer: gcnLayer, Rectifies: true,
	StateDict: LinearTensors(""),
}

// GCNCoefficients computes the coefficients of Â above.
func GCNCoefficients(d Degrees, own int, a *mapped.Arena) Coefficients {
	c := Coefficients{
		Row: mapped.Make[float32](a, own),
		Col: mapped.Make[float32](a, len(d.Out)),

		SelfLoops: true,
	}
	a.Fill(func() {
		for v := range c.Col {
			c.Col[v] = inverseRoot(strength(d.Out, d.OutStrength, v))
		}
		for v := range c.Row {
			c.Row[v] = inverseRoot(strength(d.In, d.InStrength, v))
		}
	})
	return c
}

func inverseRoot(degree float64) float32 { return float32(1 / math.Sqrt(degree+1)) }

// strength returns the sum of the weights of a vertex's edges, each 1 if unweighted.
func strength(degrees []uint32, strengths []float32, v int) float64 {
	if strengths == nil {
		return float64(degrees[v])
	}
	return float64(strengths[v])
}

// gcnLayer selects the variant: gatherFirst gathers the input's rows and then multiplies,
// applyFirst multiplies first and gathers the product's rows.
func gcnLayer(b *Builder, l int) Layer {
	g := newDense(b, l, b.Gathers())
	if g.first == ApplyFirst {
		b.ShareStorage(Output, Gathered)
		b.ShareStorage(GatheredGrad, OutputGrad)
		b.AllocInputGrad()
		g.stages = stages{
			Emit: {g.emits(), g.emit},
			Apply: {Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
				x.Ops.BiasReLUDropout(x.At(Output), x.At(Gathered), x.W(g.b), !g.last, x.Mask(g.drop))
			}},
			ApplyBackward: {Flow{Reads: []Value{OutputGrad, Output}, Writes: []Value{GatheredGrad}, Grads: []Param{g.b}}, func(x *Step) {
				g.activateGrad(x, g.b)
			}},
			EmitBackward: {Flow{Reads: []Value{EmittedGrad, Input}, Writes: []Value{InputGrad}, Grads: []Param{g.w}}, g.emitBackward},
		}
		return g
	}
	b.Alloc(Output, g.out)
	g.allocGatheredGrad(b)
	b.ShareStorage(InputGrad, EmittedGrad)
	g.stages = stages{
		Emit: {g.emits(), g.emit},
		Apply: {Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
			x.Ops.MatMulBiasReLUDropout(x.At(Output), x.At(Gathered), x.W(g.w), x.W(g.b), !g.last, x.Mask(g.drop))
		}},
		ApplyBackward: {Flow{Reads: []Value{OutputGrad, Output, Gathered}, Writes: []Value{OutputGrad, GatheredGrad},
			Grads: []Param{g.w, g.b}}, func(x *Step) {
			g.activateGrad(x, g.b)
			g.gatheredGrad(x, x.At(OutputGrad))
		}},
	}
	if g.inputDrop != nil {
		g.stages[EmitBackward] = stageWork{Flow{Reads: []Value{EmittedGrad}, Writes: []Value{InputGrad}}, g.dropGrad}
	}
	return g
}

// dense is the common part of layers with a product, a bias and an activation.
type dense struct {
	stages
	in, out        int
	h              Hidden
	w, b           Param    // [in x out], [1 x out]
	last           bool     // no activation: the last layer, or a layer whose activation a tail applies
	drop           *Dropout // of the output
	inputDrop      *Dropout // of the emitted rows, which are the input otherwise; nil: none (Spec.Whole)
	gathers        bool     // false in a perceptron
	activationDone bool     // the output's gradient already includes the activation's derivative
	first          Order
}

// newDense takes the layer's first matrix and its first bias, and sets the storage of the
// emitted rows: HW, or H itself.
func newDense(b *Builder, l int, gathers bool) *dense {
	d := &dense{
		in: b.Spec.Dims[l], out: b.Spec.Dims[l+1], h: b.Hidden(), last: b.Plain(), drop: b.Dropout(l),
		gathers: gathers, activationDone: b.activationDone, first: b.Spec.Orders[l],
	}
	b.outputUnread = d.last
	for i := len(b.params[l]) - 1; i >= 0; i-- {
		if p := b.params[l][i]; p.Bias {
			d.b = p
		} else {
			d.w = p
		}
	}
	if !gathers && l == 0 && b.Sparse {
		d.first = ApplyFirst // a perceptron multiplies sparse features directly
	}
	switch {
	case d.first == ApplyFirst:
		b.Alloc(Emitted, d.out)
	case b.Spec.Whole(l):
		d.inputDrop, d.h.from = b.Spec.dropout(l, b.Spec.Dropout), Emitted
		b.Alloc(Emitted, d.in)
	default:
		b.ShareStorage(Emitted, Input)
	}
	return d
}

// allocGatheredGrad sets the storage of the gradient of gathered rows, for a layer that gathers first.
// If the emitted rows have their own matrix, no matrix of a neighbour's gather is free for it: it
// replaces the gathered rows, which only the stage that writes it reads last.
func (d *dense) allocGatheredGrad(b *Builder) {
	if d.inputDrop != nil && b.Spec.InPlace {
		b.ShareStorage(GatheredGrad, Gathered)
		return
	}
	b.AllocGrad(GatheredGrad)
}

func (d *dense) GatherWidth() int {
	switch {
	case !d.gathers:
		return 0
	case d.first == ApplyFirst:
		return d.out
	}
	return d.in
}

func (d *dense) GathersBackward() bool {
	return d.gathers && (d.first == ApplyFirst || !d.h.Constant())
}

// emits returns the Flow of Emit: the product, the input with dropout, or nothing if H itself is
// emitted.
func (d *dense) emits() Flow {
	if d.first == ApplyFirst || d.inputDrop != nil {
		return Flow{Reads: []Value{Input}, Writes: []Value{Emitted}}
	}
	return Flow{Reads: []Value{Input}}
}

// emit runs Emit.
func (d *dense) emit(x *Step) {
	switch {
	case d.first == ApplyFirst:
		d.h.Multiply(x, x.At(Emitted), x.W(d.w))
	case d.inputDrop != nil:
		x.Ops.DropoutRows(x.At(Emitted), x.At(Input), x.Mask(d.inputDrop))
	}
}

// dropGrad applies the dropout of the emitted rows, if any, to their gradient, which becomes that of
// the input.
func (d *dense) dropGrad(x *Step) {
	if d.inputDrop != nil {
		x.Ops.DropoutRows(x.At(InputGrad), x.At(EmittedGrad), x.Mask(d.inputDrop))
	}
}

// activateGrad replaces the gradient of h = dropout(relu(z + b)) by the gradient of z, unless
// that is done, and writes the gradient of b.
func (d *dense) activateGrad(x *Step, b Param) {
	grad := x.At(OutputGrad)
	if d.activationDone {
		x.Ops.ColumnSums(x.Grad(b), grad, false)
		return
	}
	x.Ops.BiasReLUDropoutGrad(grad, x.Grad(b), grad, x.At(Output), !d.last, x.Mask(d.drop))
}

// gatheredGrad writes, of the product of gathered rows and W, the gradients of W and of the rows.
func (d *dense) gatheredGrad(x *Step, grad kernels.Mat) {
	x.Ops.MatMulTransA(x.Grad(d.w), x.At(Gathered), grad, false)
	d.h.InputGrad(x, x.At(GatheredGrad), grad, x.W(d.w), false)
}

// emitBackward writes the gradients of W and of the input, of a product that precedes the gather.
func (d *dense) emitBackward(x *Step) {
	grad := x.At(EmittedGrad)
	d.h.MultiplyGrad(x, x.Grad(d.w), grad)
	d.h.InputGrad(x, x.At(InputGrad), grad, x.W(d.w), false)
}

package model

import (
	"math"

	"siafu/graph/mapped"
	"siafu/kernels"
)

// GCN (Kipf & Welling 2017):
//
//	H' = dropout(relu(Â H W + b)),  Â = D^-½ (A + I) D^-½
//
// without relu and dropout in the last layer. On a directed graph the two
// degrees of an edge are the in-degree of its destination and the out-degree
// of its source, both with the self loop counted. The same layers with Â = I
// are the multi-layer perceptron that a graph model has to beat.
//
// A layer comes in two variants: gatherFirst computes (ÂH)W, applyFirst Â(HW).

// GCNCoefficients are those of Â above.
func GCNCoefficients(inDegree, outDegree []uint32, own int, a *mapped.Arena) Coefficients {
	c := Coefficients{
		Row: mapped.Make[float32](a, own),
		Col: mapped.Make[float32](a, len(outDegree)),

		SelfLoops: true,
	}
	a.Fill(func() {
		for v := range c.Col {
			c.Col[v] = inverseRoot(outDegree[v])
		}
		for v := range c.Row {
			c.Row[v] = inverseRoot(inDegree[v])
		}
	})
	return c
}

func inverseRoot(degree uint32) float32 {
	return float32(1 / math.Sqrt(float64(degree)+1))
}

// gcnLayer chooses the variant.
func gcnLayer(b *Builder, l int) Layer {
	s := b.Spec
	d := b.dense(l)
	gathers := s.Propagates()
	var in *input
	if l == 0 {
		in = b.in
	}
	// A perceptron over sparse features multiplies them as they are.
	sparse := l == 0 && b.in.Features.Sparse != nil && !gathers
	if s.Orders[l] == ApplyFirst || sparse {
		in.multiplied()
		return &applyFirst{dense: d, input: in, gathers: gathers, emitted: b.Room(d.out), gradIn: b.GradRoom(l)}
	}
	return &gatherFirst{dense: d, input: in, cached: b.cached(l), gathers: gathers, h: b.Room(d.out), gradIn: b.GradRoom(l)}
}

// dense is what both variants share: one weight matrix with its bias, and the
// activation behind it.
type dense struct {
	ops     kernels.Ops
	rows    int // own vertices
	in, out int
	w, b    kernels.Mat // [in x out], [1 x out]
	gw, gb  kernels.Mat // their gradients
	last    bool
	drop    *kernels.Dropout // of the output, nil in the last layer
}

// activateGrad turns the gradient of h = dropout(relu(z + b)) into that of z, in place,
// and writes the bias gradient.
func (d *dense) activateGrad(grad, h kernels.Mat, p Pass) {
	d.ops.BiasReLUDropoutGrad(grad, d.gb, grad, h, !d.last, p.Mask(d.drop))
}

// gatherFirst is (ÂH)W: the input's rows are gathered, the product follows.
type gatherFirst struct {
	dense
	input    *input       // of the first layer, else nil
	cached   *cachedInput // ÂX of the first layer where it is kept, else nil
	gathers  bool         // false in a perceptron
	gathered kernels.Mat
	h        kernels.Mat // output [rows x out]
	gradIn   kernels.Mat // [rows x in], nil in the first layer
}

func (g *gatherFirst) GatherWidth() int {
	if !g.gathers {
		return 0
	}
	return g.in
}

func (g *gatherFirst) GathersBackward() bool { return g.gathers && g.input == nil }

func (g *gatherFirst) Emit(h kernels.Mat, p Pass) kernels.Mat {
	if g.input != nil {
		return g.input.rows(p)
	}
	return h
}

func (g *gatherFirst) Apply(gathered kernels.Mat, p Pass) kernels.Mat {
	if g.cached != nil {
		g.ops.MatMulBiasReLUDropout(g.h, g.cached.rows, g.w, g.b, !g.last, p.Mask(g.drop))
		return g.h
	}
	g.gathered = gathered
	g.ops.MatMulBiasReLUDropout(g.h, gathered, g.w, g.b, !g.last, p.Mask(g.drop))
	return g.h
}

func (g *gatherFirst) ApplyGrad(grad kernels.Mat, p Pass) kernels.Mat {
	g.activateGrad(grad, g.h, p)
	if g.cached != nil {
		g.ops.MatMulTransA(g.gw, g.cached.rows, grad, false)
		return kernels.Mat{}
	}
	g.ops.MatMulTransA(g.gw, g.gathered, grad, false)
	if g.input != nil {
		return kernels.Mat{}
	}
	g.ops.MatMulTransB(g.gradIn, grad, g.w, false)
	return g.gradIn
}

func (g *gatherFirst) EmitGrad(grad kernels.Mat, _ Pass) kernels.Mat { return grad }

// applyFirst is Â(HW): the product comes first, its rows are gathered.
type applyFirst struct {
	dense
	input   *input // of the first layer, else nil
	gathers bool   // false in a perceptron
	h       kernels.Mat
	emitted kernels.Mat // HW [rows x out]
	output  kernels.Mat
	gradIn  kernels.Mat // [rows x in], nil in the first layer
}

func (a *applyFirst) GatherWidth() int {
	if !a.gathers {
		return 0
	}
	return a.out
}

func (a *applyFirst) GathersBackward() bool { return a.gathers }

func (a *applyFirst) Emit(h kernels.Mat, p Pass) kernels.Mat {
	a.h = h
	if a.input != nil {
		a.input.multiply(a.emitted, a.w, p)
	} else {
		a.ops.MatMul(a.emitted, h, a.w, false)
	}
	return a.emitted
}

func (a *applyFirst) Apply(gathered kernels.Mat, p Pass) kernels.Mat {
	a.output = gathered
	a.ops.BiasReLUDropout(gathered, gathered, a.b, !a.last, p.Mask(a.drop))
	return gathered
}

func (a *applyFirst) ApplyGrad(grad kernels.Mat, p Pass) kernels.Mat {
	a.activateGrad(grad, a.output, p)
	return grad
}

func (a *applyFirst) EmitGrad(grad kernels.Mat, p Pass) kernels.Mat {
	if a.input != nil {
		a.input.multiplyGrad(a.gw, grad, p)
		return kernels.Mat{}
	}
	a.ops.MatMulTransA(a.gw, a.h, grad, false)
	a.ops.MatMulTransB(a.gradIn, grad, a.w, false)
	return a.gradIn
}

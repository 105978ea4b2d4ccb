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
	for v := range c.Col {
		c.Col[v] = inverseRoot(outDegree[v])
	}
	for v := range c.Row {
		c.Row[v] = inverseRoot(inDegree[v])
	}
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
	team    *kernels.Team
	rows    int // own vertices
	in, out int
	w, b    []float32 // [in x out], [out]
	gw, gb  []float32 // their gradients
	last    bool
	drop    *kernels.Dropout // of the output, nil in the last layer
}

// activateGrad turns the gradient of h = dropout(relu(z + b)) into that of z, in place,
// and writes the bias gradient.
func (d *dense) activateGrad(grad, h []float32, p Pass) {
	kernels.BiasReLUDropoutGrad(d.team, grad, d.gb, d.rows, d.out, grad, h, !d.last, p.Mask(d.drop))
}

// gatherFirst is (ÂH)W: the input's rows are gathered, the product follows.
type gatherFirst struct {
	dense
	input    *input       // of the first layer, else nil
	cached   *cachedInput // ÂX of the first layer where it is kept, else nil
	gathers  bool         // false in a perceptron
	gathered []float32
	h        []float32 // output [rows x out]
	gradIn   []float32 // [rows x in], nil in the first layer
}

func (g *gatherFirst) GatherWidth() int {
	if !g.gathers {
		return 0
	}
	return g.in
}

func (g *gatherFirst) GathersBackward() bool { return g.gathers && g.input == nil }

func (g *gatherFirst) Emit(h []float32, p Pass) []float32 {
	if g.input != nil {
		return g.input.rows(p)
	}
	return h
}

func (g *gatherFirst) Apply(gathered []float32, p Pass) []float32 {
	if g.cached != nil {
		g.cached.apply(g.h, g.out, g.w, g.b, !g.last, p.Mask(g.drop))
		return g.h
	}
	g.gathered = gathered
	kernels.MatMulBiasReLUDropout(g.team, g.h, g.rows, g.out, g.in, gathered, g.w, g.b, !g.last, p.Mask(g.drop))
	return g.h
}

func (g *gatherFirst) ApplyGrad(grad []float32, p Pass) []float32 {
	g.activateGrad(grad, g.h, p)
	if g.cached != nil {
		g.cached.multiplyGrad(g.gw, g.out, grad)
		return nil
	}
	kernels.MatMulTransA(g.team, g.gw, g.in, g.out, g.rows, g.gathered, grad, false)
	if g.input != nil {
		return nil
	}
	kernels.MatMulTransB(g.team, g.gradIn, g.rows, g.in, g.out, grad, g.w, false)
	return g.gradIn
}

func (g *gatherFirst) EmitGrad(grad []float32, _ Pass) []float32 { return grad }

// applyFirst is Â(HW): the product comes first, its rows are gathered.
type applyFirst struct {
	dense
	input   *input // of the first layer, else nil
	gathers bool   // false in a perceptron
	h       []float32
	emitted []float32 // HW [rows x out]
	output  []float32
	gradIn  []float32 // [rows x in], nil in the first layer
}

func (a *applyFirst) GatherWidth() int {
	if !a.gathers {
		return 0
	}
	return a.out
}

func (a *applyFirst) GathersBackward() bool { return a.gathers }

func (a *applyFirst) Emit(h []float32, p Pass) []float32 {
	a.h = h
	if a.input != nil {
		a.input.multiply(a.emitted, a.out, a.w, p)
	} else {
		kernels.MatMul(a.team, a.emitted, a.rows, a.out, a.in, h, a.w, false)
	}
	return a.emitted
}

func (a *applyFirst) Apply(gathered []float32, p Pass) []float32 {
	a.output = gathered
	kernels.BiasReLUDropout(a.team, gathered, a.rows, a.out, gathered, a.b, !a.last, p.Mask(a.drop))
	return gathered
}

func (a *applyFirst) ApplyGrad(grad []float32, p Pass) []float32 {
	a.activateGrad(grad, a.output, p)
	return grad
}

func (a *applyFirst) EmitGrad(grad []float32, p Pass) []float32 {
	if a.input != nil {
		a.input.multiplyGrad(a.gw, a.out, grad, p)
		return nil
	}
	kernels.MatMulTransA(a.team, a.gw, a.in, a.out, a.rows, a.h, grad, false)
	kernels.MatMulTransB(a.team, a.gradIn, a.rows, a.in, a.out, grad, a.w, false)
	return a.gradIn
}

package model

import "siafu/internal/mapped"

// GraphSAGE with the mean of neighbours (Hamilton et al. 2017, algorithm 1 and §3.3), on the
// whole graph instead of samples:
//
//	H' = dropout(relu(Ā H W + H W_self + b)),  Ā = D^-1 A
//
// The last layer has no relu and no dropout. Ā has no self loops. The mean of a vertex without
// in-edges is zero. With edge weights the mean is weighted. As in GCN, a layer computes (ĀH)W or
// Ā(HW).
//
// With the maximum of neighbours (§3.3 without the layer before it, as PyTorch Geometric's
// aggr="max"), M(H)[v][j] = max over in-neighbours u of H[u][j], 0 without any:
//
//	H' = dropout(relu(M(H) W + H W_self + b))

var sageKind = Kind{
	Name: "sage", Help: "GraphSAGE with the mean of the neighbours", Paper: "Hamilton et al. 2017",
	Weights: sageWeights, Layer: sageLayer, Coefficients: MeanCoefficients, Rectifies: true, Whole: true,
	StateDict: sageStateDict,
}

var sageMaxKind = Kind{
	Name: "sage-max", Help: "GraphSAGE with the maximum of each column", Paper: "PyTorch Geometric",
	Weights: sageWeights, Layer: sageLayer, Coefficients: OtherCoefficients, Rectifies: true, Whole: true,
	Maximum: true, Order: "gather-first", Recommended: Design{Norm: "batch"},
	StateDict: sageStateDict,
}

var sageStateDict = StateDict{
	"lin_l.weight": {Weight: "weight", Transpose: true}, "lin_l.bias": {Weight: "bias"},
	"lin_r.weight": {Weight: selfWeight, Transpose: true},
}

// OtherCoefficients returns ones, without self loops.
func OtherCoefficients(_ Degrees, _ int, _ *mapped.Arena) Coefficients { return Coefficients{} }

// MeanCoefficients computes the coefficients of Ā.
func MeanCoefficients(d Degrees, own int, a *mapped.Arena) Coefficients {
	c := Coefficients{Row: mapped.Make[float32](a, own)}
	a.Fill(func() {
		for v := range c.Row {
			if c.Row[v] = 1 / float32(max(d.In[v], 1)); d.InStrength != nil && d.In[v] > 0 {
				c.Row[v] = 1 / d.InStrength[v]
			}
		}
	})
	return c
}

// selfWeight is the name of W_self; in pool.go it multiplies the same rows as W_pool.
const selfWeight = "self.weight"

func sageWeights(s Spec, l int) []Shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []Shape{{"weight", in, out, false}, {selfWeight, in, out, false}, {"bias", 1, out, true}}
}

func sageLayer(b *Builder, l int) Layer {
	g := &sage{dense: newDense(b, l, true), self: b.Weight(l, 1)}
	b.Alloc(Output, g.out)
	if g.first == ApplyFirst {
		b.ShareStorage(GatheredGrad, OutputGrad)
		b.AllocInputGrad()
		g.stages = stages{
			ApplyBackward: {Flow{Reads: []Value{OutputGrad, Output, Input}, Writes: []Value{GatheredGrad},
				Grads: []Param{g.self, g.b}}, g.applyBackward},
			EmitBackward: {Flow{Reads: []Value{EmittedGrad, OutputGrad, Input}, Writes: []Value{InputGrad},
				Grads: []Param{g.w}}, g.emitBackward},
		}
	} else {
		b.AllocGrad(GatheredGrad)
		b.ShareStorage(InputGrad, EmittedGrad)
		g.stages = stages{
			ApplyBackward: {Flow{Reads: []Value{OutputGrad, Output, g.h.from, Gathered}, Writes: []Value{OutputGrad, GatheredGrad},
				Grads: []Param{g.self, g.w, g.b}}, g.applyBackward},
			EmitBackward: {Flow{Reads: []Value{EmittedGrad, OutputGrad}, Writes: []Value{InputGrad}}, g.emitBackward},
		}
	}
	g.stages[Emit] = stageWork{g.emits(), g.emit}
	g.stages[Apply] = stageWork{Flow{Reads: []Value{Gathered, g.h.from}, Writes: []Value{Output}}, g.apply}
	return g
}

// sage is one layer.
type sage struct {
	*dense       // W and b
	self   Param // W_self
}

func (g *sage) apply(x *Step) {
	output := x.At(Output)
	g.h.Multiply(x, output, x.W(g.self))
	if g.first == ApplyFirst {
		x.Ops.Add(output, x.At(Gathered))
	} else {
		x.Ops.MatMul(output, x.At(Gathered), x.W(g.w), true)
	}
	x.Ops.BiasReLUDropout(output, output, x.W(g.b), !g.last, x.Mask(g.drop))
}

func (g *sage) applyBackward(x *Step) {
	g.activateGrad(x, g.b)
	grad := x.At(OutputGrad)
	g.h.MultiplyGrad(x, x.Grad(g.self), grad)
	if g.first == GatherFirst {
		g.gatheredGrad(x, grad)
	}
}

// emitBackward writes, for a layer that gathers first, into the given gradient, because other
// intervals may still gather the result of ApplyBackward.
func (g *sage) emitBackward(x *Step) {
	if g.first == GatherFirst {
		g.h.InputGrad(x, x.At(InputGrad), x.At(OutputGrad), x.W(g.self), true)
		g.dropGrad(x)
		return
	}
	g.h.MultiplyGrad(x, x.Grad(g.w), x.At(EmittedGrad))
	g.h.InputGrads(x, x.At(InputGrad), x.At(OutputGrad), x.W(g.self), x.At(EmittedGrad), x.W(g.w))
}

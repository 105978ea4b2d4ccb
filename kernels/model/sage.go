package model

import (
	"siafu/graph/mapped"
	"siafu/kernels"
)

// GraphSAGE with the mean of neighbours (Hamilton et al. 2017, algorithm 1 and
// §3.3), on the whole graph instead of samples of it:
//
//	H' = dropout(relu(Ā H W + H W_self + b)),  Ā = D^-1 A
//
// without relu and dropout in the last layer. Ā has no self loops; the mean of
// a vertex without in-edges is zero. As in GCN, (ĀH)W or Ā(HW).

// MeanCoefficients are those of Ā.
func MeanCoefficients(inDegree, _ []uint32, own int, a *mapped.Arena) Coefficients {
	c := Coefficients{Row: mapped.Make[float32](a, own)}
	a.Fill(func() {
		for v := range c.Row {
			c.Row[v] = 1 / float32(max(inDegree[v], 1))
		}
	})
	return c
}

func sageWeights(s Spec, l int) []Shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []Shape{{"weight", in, out, false}, {"self.weight", in, out, false}, {"bias", 1, out, true}}
}

func sageLayer(b *Builder, l int) Layer {
	g := &sage{dense: b.dense(l), self: b.Weight(l, 1), first: b.Spec.Orders[l], h: b.Hidden(l)}
	g.output, g.gradIn = b.Room(g.out), b.GradRoom(l)
	if g.first == ApplyFirst {
		g.emitted = b.Room(g.out)
	}
	return g
}

// sage is one layer.
type sage struct {
	dense           // W and b
	self     Weight // W_self
	first    Order
	h        Hidden
	emitted  kernels.Mat // HW [rows x out], nil where H itself is emitted
	gathered kernels.Mat
	output   kernels.Mat // [rows x out]
	grad     kernels.Mat // of what the activation is applied to, until EmitGrad
	gradIn   kernels.Mat // [rows x in], nil in the first layer: of what was gathered, or of H
}

func (g *sage) GatherWidth() int {
	if g.first == ApplyFirst {
		return g.out
	}
	return g.in
}

func (g *sage) GathersBackward() bool { return g.first == ApplyFirst || !g.h.Constant() }

func (g *sage) Emit(h kernels.Mat, p Pass) kernels.Mat {
	g.h.Take(h)
	if g.first == ApplyFirst {
		g.h.Multiply(g.emitted, g.w, p)
		return g.emitted
	}
	return g.h.Rows(p)
}

func (g *sage) Apply(gathered kernels.Mat, p Pass) kernels.Mat {
	g.gathered = gathered
	g.h.Multiply(g.output, g.self.W, p)
	if g.first == ApplyFirst {
		g.ops.Add(g.output, gathered)
	} else {
		g.h.MultiplyGathered(g.output, g.w, gathered, true)
	}
	g.ops.BiasReLUDropout(g.output, g.output, g.b, !g.last, p.Mask(g.drop))
	return g.output
}

func (g *sage) ApplyGrad(grad kernels.Mat, p Pass) kernels.Mat {
	g.activateGrad(grad, g.output, p)
	g.grad = grad
	g.h.MultiplyGrad(g.self.Grad, grad, p)
	if g.first == ApplyFirst {
		return grad
	}
	g.h.MultiplyGatheredGrad(g.gw, g.gathered, grad)
	g.h.InputGrad(g.gradIn, grad, g.w, false)
	return g.gradIn
}

// EmitGrad of a layer that gathers first works in grad: gradIn is what ApplyGrad
// has returned, which other intervals may still be gathering.
func (g *sage) EmitGrad(grad kernels.Mat, p Pass) kernels.Mat {
	if g.first == GatherFirst {
		g.h.InputGrad(grad, g.grad, g.self.W, true)
		return grad
	}
	g.h.MultiplyGrad(g.gw, grad, p)
	g.h.InputGrad(g.gradIn, g.grad, g.self.W, false)
	g.h.InputGrad(g.gradIn, grad, g.w, true)
	return g.gradIn
}

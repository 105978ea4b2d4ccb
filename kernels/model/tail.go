package model

import (
	"cmp"
	"slices"

	"siafu/kernels"
)

// The last part of a hidden layer, if other layers process its rows Z first, computes
//
//	residual add       H' = dropout(f(Z) + H)               (He et al. 2016, Li et al. 2019)
//	residual initial   H' = dropout(f((1-α) Z + α H⁰))      (as in GCNII)
//	none               H' = dropout(f(Z))
//
// H is the output of the previous hidden layer, and H⁰ the output of the first one; the first hidden
// layer has neither. f is the requested activation, by default Kind.Activation.

// Activations returns the names of activations.
func Activations() []string { return []string{"relu", "elu", "gelu", "leaky", prelu} }

// prelu is a ReLU with a learned slope below zero, one per layer (He et al. 2015); slopeName
// is the weight's name.
const (
	prelu     = "prelu"
	slopeName = "activation.weight"
)

func tailWeights(s Spec, _ int) []Shape {
	if s.Design.Activation == prelu {
		return []Shape{{slopeName, 1, 1, true}}
	}
	return nil
}

// activation returns the activation of hidden layers.
func (s Spec) activation() kernels.Activation {
	list := []kernels.Activation{kernels.ReLU, kernels.ELU, kernels.GELU, kernels.LeakyReLU, kernels.Identity}
	return list[slices.Index(Activations(), cmp.Or(s.Design.Activation, s.kind().Activation, "relu"))]
}

func tailLayer(b *Builder, l int) Layer {
	b.shareEnds()
	b.Alloc(Output, b.Spec.Dims[l+1])
	t := &tail{drop: b.Dropout(l), f: b.Spec.activation(), slope: b.params[l]}
	if len(b.Skips()) > 0 {
		t.skip = &b.Skips()[0]
		if b.Spec.Design.Residual == "initial" {
			t.alpha = float32(b.Spec.Design.Alpha)
		}
	}
	apply, back := Flow{Reads: []Value{Gathered}, Writes: []Value{Output}},
		Flow{Reads: []Value{OutputGrad, Gathered}, Writes: []Value{GatheredGrad}, Grads: t.slope}
	if t.skip != nil {
		apply.Reads = append(apply.Reads, t.skip.Rows())
		back.Reads, back.Writes = append(back.Reads, t.skip.GradValues()...), append(back.Writes, t.skip.Grad())
	}
	if t.alpha > 0 {
		apply.Writes = append(apply.Writes, Gathered)
	}
	t.stages = stages{Apply: {apply, t.apply}, ApplyBackward: {back, t.applyBackward}}
	return t
}

// tail is the last part of a hidden layer as a Layer. Its blend replaces Z, which Builder.Plain
// layers do not read again.
type tail struct {
	pointwise
	drop  *Dropout
	f     kernels.Activation
	slope []Param // at most one, of a prelu as f
	skip  *Skip   // nil: none
	alpha float32 // 0: H is added
}

func (t *tail) apply(x *Step) {
	z, h := x.At(Gathered), x.At(Output)
	if t.alpha > 0 {
		x.Ops.Blend(z, 1-t.alpha, x.At(t.skip.Rows()), t.alpha)
	}
	if len(t.slope) > 0 {
		x.Ops.PReLU(h, z, x.W(t.slope[0]))
	} else {
		x.Ops.Activate(h, z, t.f)
	}
	if t.skip != nil && t.alpha == 0 {
		x.Ops.Add(h, x.At(t.skip.Rows()))
	}
	if mask := x.Mask(t.drop); mask != nil {
		x.Ops.DropoutRows(h, h, mask)
	}
}

func (t *tail) applyBackward(x *Step) {
	grad := x.At(OutputGrad)
	if mask := x.Mask(t.drop); mask != nil {
		x.Ops.DropoutRows(grad, grad, mask)
	}
	if t.skip != nil && t.alpha == 0 {
		t.skip.AddGrad(x, grad, 1)
	}
	if len(t.slope) > 0 {
		x.Ops.PReLUGrad(grad, x.Grad(t.slope[0]), grad, x.At(Gathered), x.W(t.slope[0]))
	} else {
		x.Ops.ActivateGrad(grad, grad, x.At(Gathered), t.f)
	}
	if t.alpha > 0 {
		t.skip.AddGrad(x, grad, t.alpha)
		x.Ops.Blend(grad, 0, grad, 1-t.alpha)
	}
}

// dropLayer makes a layer that applies only dropout, to rows that other layers read without it.
func dropLayer(b *Builder, l int) Layer {
	of := b.Dropout(l)
	b.shareEnds()
	if of == nil {
		b.ShareStorage(Output, Gathered)
		return &pointwise{}
	}
	b.Alloc(Output, b.Spec.Dims[l+1])
	return &pointwise{stages{
		Apply: {Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
			x.Ops.DropoutRows(x.At(Output), x.At(Gathered), x.Mask(of))
		}},
		ApplyBackward: {Flow{Reads: []Value{OutputGrad}, Writes: []Value{GatheredGrad}}, func(x *Step) {
			x.Ops.DropoutRows(x.At(GatheredGrad), x.At(OutputGrad), x.Mask(of))
		}},
	}}
}

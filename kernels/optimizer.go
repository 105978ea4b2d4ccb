package kernels

import (
	"cmp"
	"math"

	"siafu/internal/fault"
	"siafu/kernels/internal/avx"
)

// Optimisers as PyTorch defines them (torch.optim.SGD, Adam, AdamW). g is the gradient, w the
// parameter, t the step from 1.
//
//	sgd    g += λw;  b = μb + g;  w -= ηb                       (without μ: w -= ηg)
//	adam   g += λw;  m = β₁m + (1-β₁)g;  v = β₂v + (1-β₂)g²
//	       w -= η/(1-β₁ᵗ) · m / (sqrt(v)/sqrt(1-β₂ᵗ) + ε)
//	adamw  w -= ηλw; then as adam with λ = 0
//
// Variant: one pass over parameter, gradient and state; serial, because weights are small
// compared with activations. Every operation is rounded.

// Optimizer updates one parameter at a time.
type Optimizer interface {
	// Step updates param in place from grad (same length, unchanged). step counts from 1.
	// state is StateSlots slices of the same length, zero before the first step, which the
	// caller keeps for this param. decay enables weight decay.
	Step(step int, param, grad []float32, state [][]float32, decay bool)
	// StateSlots is the number of state slices a parameter needs.
	StateSlots() int
	// Constants returns the constants of a step, for an Ops that computes it on a device.
	Constants(step int, decay bool) StepConstants
}

// StepConstants are the constants of a step of Adam or AdamW or, unless Adaptive, of SGD. The
// formulae are documented at the types.
type StepConstants struct {
	Adaptive bool
	SGD      avx.SGD
	Adam     avx.Adam
}

// OptimizerConfig selects an optimiser. Beta1, Beta2 and Eps default to 0.9, 0.999 and 1e-8 if
// 0.
type OptimizerConfig struct {
	Name         string // "sgd", "adam", "adamw"
	LR           float64
	Momentum     float64 // sgd
	Beta1, Beta2 float64 // adam, adamw
	Eps          float64 // adam, adamw
	WeightDecay  float64
	InnerDecay   float64 // instead of WeightDecay, for weights of inner layers (model.Param)
	InputScale   float64 // of the features, for weights that multiply them (ForInput); 0 means 1
}

// ForInput returns the optimiser of weights W that multiply features X, such that X W evolves
// like (kX) W' with c itself, where k is c.InputScale and W = kW'. Gradients are 1/k times as
// large, steps must be k times as large, and the penalty λ‖W'‖² is λ/k² ‖W‖².
func (c OptimizerConfig) ForInput() OptimizerConfig {
	k := c.InputScale
	switch c.Name {
	case "sgd":
		c.LR, c.WeightDecay = c.LR*k*k, c.WeightDecay/(k*k)
	case "adam":
		c.LR, c.WeightDecay = c.LR*k, c.WeightDecay/(k*k)
	case "adamw": // whose decay uses the rate, not the gradient
		c.LR, c.WeightDecay = c.LR*k, c.WeightDecay/k
	}
	return c
}

// NewOptimizer returns the optimiser that c describes, or a Config fault that names the first
// invalid value.
func NewOptimizer(c OptimizerConfig) (Optimizer, error) {
	c.Beta1, c.Beta2, c.Eps = cmp.Or(c.Beta1, 0.9), cmp.Or(c.Beta2, 0.999), cmp.Or(c.Eps, 1e-8)
	if err := c.validate(); err != nil {
		return nil, err
	}
	switch c.Name {
	case "sgd":
		k := avx.SGD{LR: float32(c.LR), Momentum: float32(c.Momentum), Decay: float32(c.WeightDecay)}
		return &sgd{k, avx.Best()}, nil
	case "adam":
		return &adam{c: c, set: avx.Best()}, nil
	case "adamw":
		return &adam{c: c, decoupled: true, set: avx.Best()}, nil
	}
	return nil, fault.New(fault.Config, "optimizer", "", "unknown optimizer %q", c.Name).Then("use sgd, adam or adamw")
}

// validate accepts the ranges that PyTorch accepts. Comparisons are written so that a NaN
// fails them.
func (c *OptimizerConfig) validate() error {
	for _, p := range []struct {
		name     string
		value    float64
		below    float64
		interval string
	}{
		{"learning rate", c.LR, math.Inf(1), "[0, ∞)"},
		{"momentum", c.Momentum, math.Inf(1), "[0, ∞)"},
		{"beta1", c.Beta1, 1, "[0, 1)"},
		{"beta2", c.Beta2, 1, "[0, 1)"},
		{"epsilon", c.Eps, math.Inf(1), "[0, ∞)"},
		{"weight decay", c.WeightDecay, math.Inf(1), "[0, ∞)"},
	} {
		if !(p.value >= 0 && p.value < p.below) {
			return fault.New(fault.Config, "optimizer", "", "%s %v", p.name, p.value).
				Then("choose it in %s", p.interval)
		}
	}
	return nil
}

func checkStep(step int, param, grad []float32, state [][]float32, slots int) {
	if step < 1 {
		panic("kernels: steps count from 1")
	}
	if len(grad) != len(param) || len(state) < slots {
		panic("kernels: gradient or state of another shape")
	}
	for _, s := range state[:slots] {
		if len(s) != len(param) {
			panic("kernels: gradient or state of another shape")
		}
	}
}

type sgd struct {
	avx.SGD
	set avx.Set
}

func (o *sgd) StateSlots() int {
	if o.Momentum == 0 {
		return 0
	}
	return 1
}

func (o *sgd) Constants(_ int, decay bool) StepConstants {
	k := o.SGD
	if !decay {
		k.Decay = 0
	}
	return StepConstants{SGD: k}
}

func (o *sgd) Step(step int, param, grad []float32, state [][]float32, decay bool) {
	checkStep(step, param, grad, state, o.StateSlots())
	k := o.Constants(step, decay).SGD
	var buf []float32
	if k.Momentum != 0 {
		buf = state[0]
	}
	if o.set != avx.None {
		o.set.SGD(&k, param, grad, buf)
		return
	}
	stepSGD(&k, param, grad, buf)
}

func stepSGD(k *avx.SGD, param, grad, buf []float32) {
	if buf == nil {
		for j, g := range grad {
			param[j] -= float32(k.LR * (g + float32(k.Decay*param[j])))
		}
		return
	}
	for j, g := range grad {
		buf[j] = float32(k.Momentum*buf[j]) + (g + float32(k.Decay*param[j]))
		param[j] -= float32(k.LR * buf[j])
	}
}

// adam is Adam, or AdamW when decoupled.
type adam struct {
	c         OptimizerConfig
	decoupled bool
	set       avx.Set
}

func (o *adam) StateSlots() int { return 2 }

func (o *adam) Constants(step int, decay bool) StepConstants {
	return StepConstants{Adaptive: true, Adam: o.constants(step, decay)}
}

func (o *adam) Step(step int, param, grad []float32, state [][]float32, decay bool) {
	checkStep(step, param, grad, state, 2)
	k := o.constants(step, decay)
	if o.set != avx.None {
		o.set.Adam(&k, param, grad, state[0], state[1])
		return
	}
	stepAdam(&k, param, grad, state[0], state[1])
}

// constants returns the constants of one step. The corrections are float64, because β₂ᵗ is
// near 1 for many steps.
func (o *adam) constants(step int, decay bool) avx.Adam {
	k := avx.Adam{
		Shrink: 1,
		B1:     float32(o.c.Beta1), C1: float32(1 - o.c.Beta1),
		B2: float32(o.c.Beta2), C2: float32(1 - o.c.Beta2),
		Size: float32(o.c.LR / (1 - math.Pow(o.c.Beta1, float64(step)))),
		Root: float32(1 / math.Sqrt(1-math.Pow(o.c.Beta2, float64(step)))),
		Eps:  float32(o.c.Eps),
	}
	switch {
	case decay && o.decoupled:
		k.Shrink = float32(1 - float64(o.c.LR*o.c.WeightDecay))
	case decay:
		k.L2 = float32(o.c.WeightDecay)
	}
	return k
}

func stepAdam(k *avx.Adam, param, grad, m, v []float32) {
	for j, g := range grad {
		w := float32(param[j] * k.Shrink)
		g += float32(k.L2 * w)
		m[j] = float32(k.B1*m[j]) + float32(k.C1*g)
		v[j] = float32(k.B2*v[j]) + float32(k.C2*g*g)
		param[j] = w - k.Size*m[j]/(float32(float32(math.Sqrt(float64(v[j])))*k.Root)+k.Eps)
	}
}

package kernels

import (
	"math"

	"siafu/internal/elementary"
)

// Activations that are not part of a product's epilogue.
//
//	dst[i] = f(z[i])
//	dst[i] = g[i] · f'(z[i])

// Activation is a function of an element.
type Activation uint8

// The activations. A GELU (Hendrycks & Gimpel 2016) is x·Φ(x), with the normal distribution
// function, not its tanh approximation.
const (
	Identity  Activation = iota
	ReLU                 // max(x, 0)
	ELU                  // x > 0 ? x : e^x - 1 (Clevert et al. 2016)
	GELU                 // x·Φ(x)
	LeakyReLU            // x > 0 ? x : leak·x (Maas et al. 2013)
)

// leak is the slope of a LeakyReLU below zero.
const leak = 0.01

// of returns f(x) and its derivative, slope. The derivative of ReLU at 0 is 0.
func (f Activation) of(x float32) float32 {
	switch {
	case f == Identity || x > 0 && f != GELU:
		return x
	case f == ELU:
		return float32(elementary.Expm1(float64(x)))
	case f == GELU:
		return float32(float64(x) * normal(float64(x)))
	case f == LeakyReLU:
		return leak * x
	}
	return 0
}

func (f Activation) slope(x float32) float32 {
	switch {
	case f == Identity || x > 0 && f != GELU:
		return 1
	case f == ELU:
		return float32(elementary.Exp(float64(x)))
	case f == GELU:
		v := float64(x)
		return float32(normal(v) + float64(v*elementary.Exp(-v*v/2))/math.Sqrt(2*math.Pi))
	case f == LeakyReLU:
		return leak
	}
	return 0
}

// normal returns Φ(x), the standard normal distribution.
func normal(x float64) float64 { return elementary.Erfc(-x/math.Sqrt2) / 2 }

// Activate implements Ops.
func (t *Team) Activate(dst, z Mat, f Activation) {
	mustFit(isSameShape(dst, z))
	do(t, activateTask{dst.Host(), z.Host(), nil, f}, dst.Rows*dst.Cols, chunkElements)
}

// ActivateGrad implements Ops.
func (t *Team) ActivateGrad(dst, g, z Mat, f Activation) {
	mustFit(isSameShape(dst, z) && isSameShape(dst, g))
	do(t, activateTask{dst.Host(), z.Host(), g.Host(), f}, dst.Rows*dst.Cols, chunkElements)
}

type activateTask struct {
	dst, z, g []float32 // g nil: forward
	f         Activation
}

func (k *activateTask) chunk(lo, hi int) {
	dst, z := k.dst[lo:hi], k.z[lo:hi]
	if k.g == nil {
		for i, x := range z {
			dst[i] = k.f.of(x)
		}
		return
	}
	for i, g := range k.g[lo:hi] {
		dst[i] = g * k.f.slope(z[i])
	}
}

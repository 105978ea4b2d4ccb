package params

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// Penalty returns the penalty on the weights of a network, whose gradient an Updater with the
// same arguments adds: λ/2 times the sum of squares of each decaying parameter, with its λ.
// With adamw it is 0, because its decay is not a gradient.
func Penalty(c kernels.OptimizerConfig, s model.Spec, decayAll bool) func(weights []float32) float64 {
	list := s.Params()
	if c.Name == "adamw" {
		list = nil
	}
	input := c
	if c.InputScale != 0 {
		input = c.ForInput()
	}
	return func(weights []float32) float64 {
		sum := 0.0
		for _, p := range list {
			decay := c.WeightDecay
			switch {
			case !decays(p, decayAll):
				continue
			case p.Inner:
				decay = c.InnerDecay
			case p.Features:
				decay = input.WeightDecay
			}
			squares := 0.0
			for _, w := range p.Of(weights) {
				squares += float64(w) * float64(w)
			}
			sum += float64(decay / 2 * squares)
		}
		return sum
	}
}

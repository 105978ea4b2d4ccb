package params

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// Penalty is that on the weights of a network whose gradient an Updater of the same arguments
// adds to theirs: λ/2 times the squares' sum of each parameter that decays, with the λ that it
// decays by. With adamw, whose decay is no gradient, there is none.
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
			sum += decay / 2 * squares
		}
		return sum
	}
}

package params_test

import (
	"math"
	"testing"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/params"
)

// The penalty's derivative equals the decrease of each weight in a step with gradient 0,
// divided by the weight's learning rate.
func TestPenaltyIsWhatStepsTake(t *testing.T) {
	const scale = 4
	for _, c := range []struct {
		spec  model.Spec
		all   bool
		scale float64
	}{
		{model.Spec{Kind: "mlp", Dims: []int{3, 2, 2}}, false, 0},
		{model.Spec{Kind: "mlp", Dims: []int{3, 2, 2}}, true, 1},
		{model.Spec{Kind: "gcn", Dims: []int{3, 2, 2}}, true, scale},
		{model.Spec{Kind: "gcn", Dims: []int{3, 2, 2}, Design: model.Design{Norm: "batch"}}, true, scale},
		{model.Spec{Kind: "gcnii", Dims: []int{3, 2, 2, 2}}, false, scale},
	} {
		config := kernels.OptimizerConfig{Name: "sgd", LR: 0.5, WeightDecay: 0.25, InnerDecay: 0.125, InputScale: c.scale}
		penalty := params.Penalty(config, c.spec, c.all)
		u, err := params.NewUpdater(config, c.spec, c.all, nil, kernels.NewTeam(1), mapped.NewArena())
		if err != nil {
			t.Fatal(err)
		}
		weights := make([]float32, c.spec.NumWeights())
		for i := range weights {
			weights[i] = float32(1 + i%7)
		}
		taken := 0
		for _, p := range c.spec.Params() {
			if p.Running || p.Fixed {
				continue // their steps are no optimiser's
			}
			rate := config.LR
			if p.Features && c.scale != 0 {
				rate *= c.scale * c.scale
			}
			lo, hi := layerOf(c.spec, p.Layer)
			after := append([]float32(nil), weights[lo:hi]...)
			u.Update(1, p.Layer, after, make([]float32, hi-lo))
			for i := p.Offset; i < p.Offset+p.Len(); i++ {
				up, down := append([]float32(nil), weights...), append([]float32(nil), weights...)
				up[i]++ // a parabola's difference is exact, whatever the step
				down[i]--
				want, got := float64(weights[i]-after[i-lo])/rate, (penalty(up)-penalty(down))/2
				// Powers of 2 throughout, but for the sums: 1e-9 is a million times float64's rounding of them.
				if math.Abs(got-want) > 1e-9 {
					t.Errorf("%s, all %t, %s[%d]: the penalty's derivative is %v, a step takes %v", c.spec.Kind, c.all,
						p.Name, i-p.Offset, got, want)
				}
				if want != 0 {
					taken++
				}
			}
		}
		if taken == 0 {
			t.Errorf("%s: no weight decays", c.spec.Kind)
		}
	}
	if got := params.Penalty(kernels.OptimizerConfig{Name: "adamw", WeightDecay: 1}, spec, true)(make([]float32,
		spec.NumWeights())); got != 0 {
		t.Errorf("adamw's is %v", got)
	}
}

// layerOf returns the range of a layer's weights.
func layerOf(s model.Spec, layer int) (lo, hi int) {
	lo = -1
	for _, p := range s.Params() {
		if p.Layer == layer {
			if lo < 0 {
				lo = p.Offset
			}
			hi = p.Offset + p.Len()
		}
	}
	return lo, hi
}

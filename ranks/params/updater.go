package params

import (
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Updater steps the optimiser of a flat vector of weights, layer by layer. It
// implements protocol.Updater.
type Updater struct {
	optimizer kernels.Optimizer
	params    []model.Param
	state     [][]float32 // flat, one a slot
	part      [][]float32 // that of the parameter in hand
	decayAll  bool
}

// NewUpdater makes the updater of a network, in the given state of a run that
// goes on, or nil. decayAll has weight decay cover all layers, not the first
// alone. Memory comes from a.
func NewUpdater(c kernels.OptimizerConfig, s model.Spec, decayAll bool, state [][]float32, a *mapped.Arena) (*Updater, error) {
	o, err := kernels.NewOptimizer(c)
	if err != nil {
		return nil, err
	}
	u := &Updater{optimizer: o, params: s.Params(), decayAll: decayAll}
	for k := range o.StateSlots() {
		slot := mapped.Make[float32](a, s.NumWeights())
		if state != nil {
			copy(slot, state[k])
		}
		u.state = append(u.state, slot)
	}
	return u, nil
}

// State is what the optimiser remembers from step to step, slot after slot.
func (u *Updater) State() [][]float32 { return u.state }

// Update steps the weights of one layer with its gradient.
func (u *Updater) Update(step, layer int, weights, grad []float32) {
	first := -1
	for _, p := range u.params {
		if p.Layer != layer {
			continue
		}
		if first < 0 {
			first = p.Offset
		}
		lo, hi := p.Offset-first, p.Offset-first+p.Len()
		u.part = u.part[:0]
		for _, s := range u.state {
			u.part = append(u.part, p.Of(s))
		}
		decay := !p.Bias && (u.decayAll || layer == 0)
		u.optimizer.Step(step, weights[lo:hi], grad[lo:hi], u.part, decay)
	}
}

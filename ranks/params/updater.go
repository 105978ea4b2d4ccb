package params

import (
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Updater steps the optimiser of a flat vector of weights, layer by layer. It
// implements protocol.Updater.
type Updater struct {
	ops       kernels.Ops
	optimizer kernels.Optimizer
	inner     kernels.Optimizer // with the decay of inner layers
	input     kernels.Optimizer // for weights that multiply features
	params    []model.Param
	state     []kernels.Mat // flat [weights x 1], one per slot
	part      []kernels.Mat // state of the current parameter
	decayAll  bool
}

// NewUpdater makes the updater of a network. state is the state of a resumed run, or nil.
// With decayAll, weight decay applies to all layers, otherwise to the first. The updater computes
// with ops and allocates in a.
func NewUpdater(c kernels.OptimizerConfig, s model.Spec, decayAll bool, state [][]float32, ops kernels.Ops,
	a *mapped.Arena) (*Updater, error) {
	o, err := kernels.NewOptimizer(c)
	if err != nil {
		return nil, err
	}
	input := o
	if c.InputScale != 0 && c.InputScale != 1 {
		if input, err = kernels.NewOptimizer(c.ForInput()); err != nil {
			return nil, err
		}
	}
	c.WeightDecay = c.InnerDecay
	inner, err := kernels.NewOptimizer(c)
	if err != nil {
		return nil, err
	}
	u := &Updater{ops: ops, optimizer: o, inner: inner, input: input, params: s.Params(), decayAll: decayAll}
	for range o.StateSlots() {
		u.state = append(u.state, kernels.NewMat(ops, a, s.NumWeights(), 1))
	}
	if state != nil {
		u.Restore(state)
	}
	return u, nil
}

// Slots returns the number of state values of each weight.
func (u *Updater) Slots() int { return len(u.state) }

// State returns the optimiser's state, slot after slot.
func (u *Updater) State() [][]float32 {
	var slots [][]float32
	for _, s := range u.state {
		slots = append(slots, kernels.Fetch(u.ops, s, new([]float32)))
	}
	return slots
}

// Restore sets the optimiser's state. state may be the result of State.
func (u *Updater) Restore(state [][]float32) {
	for k, s := range u.state {
		kernels.Write(u.ops, s, state[k])
	}
}

// Update implements protocol.Updater. weights and grad are in host memory, and so must be the
// updater's.
func (u *Updater) Update(step, layer int, weights, grad []float32) {
	u.step(step, layer, kernels.HostMat(len(weights), 1, weights), kernels.HostMat(len(grad), 1, grad))
}

// step steps the weights of one layer [· x 1] with its gradient.
func (u *Updater) step(step, layer int, weights, grad kernels.Mat) {
	first := -1
	for _, p := range u.params {
		if p.Layer != layer {
			continue
		}
		if first < 0 {
			first = p.Offset
		}
		lo, hi := p.Offset-first, p.Offset-first+p.Len()
		if p.Fixed {
			continue
		}
		if p.Running {
			u.ops.Blend(weights.Part(lo, hi), 1-model.Momentum, grad.Part(lo, hi), model.Momentum)
			continue
		}
		u.part = u.part[:0]
		for _, s := range u.state {
			u.part = append(u.part, s.Part(p.Offset, p.Offset+p.Len()))
		}
		o := u.optimizer
		switch {
		case p.Inner:
			o = u.inner
		case p.Features:
			o = u.input
		}
		u.ops.Step(o, step, weights.Part(lo, hi), grad.Part(lo, hi), u.part, decays(p, u.decayAll))
	}
}

// decays reports whether weight decay applies to a parameter: of all layers, or of the first.
func decays(p model.Param, all bool) bool {
	return p.Inner || !p.Bias && !p.Fixed && !p.Running && (all || p.Layer == 0)
}

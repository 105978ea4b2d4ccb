package model

import (
	"siafu/graph/mapped"
	"siafu/kernels"
)

// Rehearsal is a network on rows without a graph: everything that layers do
// runs as in training, what they gather is ones. It shows what the tensor work
// of an epoch takes.
type Rehearsal struct {
	*Network
	Gathers  []Gathering // one a layer
	gathered [][]float32 // what each layer gathers, and backward
	back     [][]float32
	logits   []float32 // their gradient
	epochs   int
}

// NewRehearsal makes the network with memory of work, and what stands for the
// graph and for ÂX, where that is kept, with memory of rest.
func NewRehearsal(s Spec, in Input, team *kernels.Team, work, rest *mapped.Arena) *Rehearsal {
	r := &Rehearsal{Network: New(s, in, team, work)}
	if r.InputCached() {
		r.CacheInput(false, rest)
	}
	ones := func(cols int) []float32 {
		x := mapped.Make[float32](rest, len(in.IDs)*cols)
		for i := range x {
			x[i] = 1
		}
		return x
	}
	r.Gathers = r.gatherings()
	for _, g := range r.Gathers {
		r.gathered = append(r.gathered, ones(g.gathered()))
		r.back = append(r.back, ones(g.Width))
	}
	r.logits = ones(s.Dims[s.Layers()])
	return r
}

// Epoch is an epoch's tensor work but for the loss. It returns the logits.
func (r *Rehearsal) Epoch() []float32 {
	r.epochs++
	p := Pass{Epoch: r.epochs, Train: true}
	var h []float32
	for l, layer := range r.Layers {
		if l > 0 || !r.InputCached() {
			h = layer.Emit(h, p)
		}
		if r.Gathers[l].gathered() > 0 {
			h = r.gathered[l]
		}
		h = layer.Apply(h, p)
	}
	logits, grad := h, r.logits
	for l := len(r.Layers) - 1; l >= 0; l-- {
		grad = r.Layers[l].ApplyGrad(grad, p)
		if r.Gathers[l].Backward {
			grad = r.back[l]
		}
		grad = r.Layers[l].EmitGrad(grad, p)
	}
	return logits
}

package params

import (
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// Source is where a graph rank's weights come from and its gradients go, in a
// synchronous run. Epochs count from 1.
type Source interface {
	// Pull fills dst with the weights that epoch starts from.
	Pull(epoch int, dst []float32) error
	// Begin says that the epoch whose weights were pulled is going to be trained:
	// a Push of each layer follows.
	Begin() error
	// Push passes a layer's gradient, which must stay valid until Flush.
	Push(epoch, layer int, grad []float32) error
	// Flush ends an epoch, all layers of which have been pushed; grad is the flat
	// vector of all gradients.
	Flush(epoch int, grad []float32) error
	// State is the optimiser's state that the epoch which was pulled starts from,
	// slot after slot.
	State() ([][]float32, error)
	// Asked is what a process that is no graph rank has been asked for, and Saved
	// says that it has been done.
	Asked() signals.Request
	Saved()
	// Leave says that nothing more will come.
	Leave() error
}

// Layers are the parts of the flat weights that the layers of a network have.
func Layers(s model.Spec) []protocol.Range {
	var layers []protocol.Range
	for _, r := range s.LayerRanges() {
		layers = append(layers, protocol.Range(r))
	}
	return layers
}

// Replicated keeps the weights on every graph rank: gradients are summed over
// all of them in ascending order, and everybody takes the same step.
type Replicated struct {
	comm    world.Comm  // of the graph ranks
	weights kernels.Mat // [weights x 1], where updater computes
	grad    kernels.Mat // the same of their gradient, none where that is the host's memory
	layers  []protocol.Range
	updater *Updater
}

// NewReplicated takes over the weights that all ranks begin with, and an updater
// in the same state on all of them. What it needs beside them lives as long as a.
func NewReplicated(c world.Comm, s model.Spec, weights []float32, u *Updater, a *mapped.Arena) *Replicated {
	r := &Replicated{comm: c, weights: kernels.PlaceMat(u.ops, a, len(weights), 1, weights), layers: Layers(s), updater: u}
	if u.ops.Remote() {
		r.grad = kernels.NewMat(u.ops, a, len(weights), 1)
	}
	return r
}

// Updater returns the updater of the weights.
func (r *Replicated) Updater() *Updater { return r.updater }

// Pull implements Source.
func (r *Replicated) Pull(_ int, dst []float32) error {
	kernels.Read(r.updater.ops, dst, r.weights)
	return nil
}

// Begin implements Source.
func (r *Replicated) Begin() error { return nil }

// Push implements Source.
func (r *Replicated) Push(int, int, []float32) error { return nil }

// Flush implements Source: it sums up the gradients and steps. Collective over
// the graph ranks.
func (r *Replicated) Flush(epoch int, grad []float32) error {
	if err := world.SumFloat32s(r.comm, grad); err != nil {
		return err
	}
	r.step(epoch, grad)
	return nil
}

// step is one of all layers.
func (r *Replicated) step(number int, grad []float32) {
	sums := kernels.HostMat(len(grad), 1, grad)
	if !r.grad.IsNil() {
		sums = r.grad
		kernels.Write(r.updater.ops, sums, grad)
	}
	for l, at := range r.layers {
		r.updater.step(number, l, r.weights.Part(at.Lo, at.Hi), sums.Part(at.Lo, at.Hi))
	}
}

// State implements Source.
func (r *Replicated) State() ([][]float32, error) { return r.updater.State(), nil }

// Asked implements Source.
func (r *Replicated) Asked() signals.Request { return signals.None }

// Saved implements Source.
func (r *Replicated) Saved() {}

// Leave implements Source.
func (r *Replicated) Leave() error { return nil }

package params

import (
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// Source provides the weights of a graph rank and receives its gradients. A step is one update
// of the weights; steps count from 1 over the run.
type Source interface {
	// Pull fills dst with the weights that a step starts from.
	Pull(step int, dst []float32) error
	// Step ends the step of the last Pull. grad is the flat vector of this rank's gradients,
	// which Step may change.
	Step(step int, grad []float32) error
	// State returns the optimiser's state that the last pulled step starts from, slot after
	// slot.
	State() ([][]float32, error)
}

// Control connects a graph rank with the processes of its servers.
type Control interface {
	// Asked returns a request that a server's process has received. Saved confirms that the
	// request has been served.
	Asked() signals.Request
	Saved()
	// Leave ends the use of the servers.
	Leave() error
}

// NoServers is the Control of a run without servers.
type NoServers struct{}

// Asked implements Control.
func (NoServers) Asked() signals.Request { return signals.None }

// Saved implements Control.
func (NoServers) Saved() {}

// Leave implements Control.
func (NoServers) Leave() error { return nil }

// Layers returns the range of each layer in the flat weights of a network.
func Layers(s model.Spec) []protocol.Range {
	var layers []protocol.Range
	for _, r := range s.LayerRanges() {
		layers = append(layers, protocol.Range(r))
	}
	return layers
}

// Replicated stores the weights on every graph rank. Gradients are summed over the ranks in
// ascending order, and every rank makes the same optimiser step.
type Replicated struct {
	comm    world.Comm  // of the graph ranks
	weights kernels.Mat // [weights x 1], in the updater's memory
	grad    kernels.Mat // [weights x 1], their gradient there; empty if that is host memory
	layers  []protocol.Range
	updater *Updater
}

// NewReplicated takes ownership of the initial weights and of an updater. The weights and the state
// of the updater must be equal on all ranks. NewReplicated allocates in a.
func NewReplicated(c world.Comm, s model.Spec, weights []float32, u *Updater, a *mapped.Arena) *Replicated {
	r := &Replicated{comm: c, weights: kernels.PlaceMat(u.ops, a, len(weights), 1, weights), layers: Layers(s), updater: u}
	if u.ops.Remote() {
		r.grad = kernels.NewMat(u.ops, a, len(weights), 1)
	}
	return r
}

// Restore sets the weights and the optimiser's state that the next step starts from.
func (r *Replicated) Restore(weights []float32, slots [][]float32) {
	kernels.Write(r.updater.ops, r.weights, weights)
	r.updater.Restore(slots)
}

// Updater returns the updater of the weights.
func (r *Replicated) Updater() *Updater { return r.updater }

// Pull implements Source.
func (r *Replicated) Pull(_ int, dst []float32) error {
	kernels.Read(r.updater.ops, dst, r.weights)
	return nil
}

// Step implements Source: it sums the gradients and makes an optimiser step. Collective over the
// graph ranks.
func (r *Replicated) Step(step int, grad []float32) error {
	if err := world.SumFloat32s(r.comm, grad); err != nil {
		return err
	}
	r.step(step, grad)
	return nil
}

// step makes an optimiser step of all layers.
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

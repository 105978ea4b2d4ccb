package params

import (
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// Averaged has separate weights on every graph rank, updated with the rank's own gradients. At the
// end of a round, the means over the ranks replace the weights and the optimiser's state. A
// checkpoint at that time is like any other one (DIGEST's AGG, algorithm 1; LLCG, ICLR'22, algorithm
// 2). Gradients are scaled by the number of ranks. So with plain SGD, the mean of all steps is the
// step on the sum of gradients.
type Averaged struct {
	Replicated
	rounds Rounds
	adder  Adder
	share  float32
	all    []float32 // the weights, followed by the optimiser's state, slot after slot
}

// Rounds reports which epochs end a round, and numbers the optimiser's steps: the step of an epoch,
// and the steps of the corrections after the epoch.
type Rounds interface {
	Shared(epoch int) bool // all ranks start it from the same weights
	Step(epoch, k int) int
}

// Adder adds up vectors of all graph ranks.
type Adder interface {
	// Sum adds the vectors of all ranks to x, in ascending order. Collective over the
	// graph ranks.
	Sum(x []float32) error
}

// NewAveraged takes ownership of a replica at the start of a round. adder is a Client of
// servers with Means, or PeerAdder.
func NewAveraged(r *Replicated, c Rounds, adder Adder, a *mapped.Arena) *Averaged {
	n, slots := r.weights.Rows, len(r.updater.state)
	return &Averaged{Replicated: *r, rounds: c, adder: adder, share: 1 / float32(r.comm.Size()), all: mapped.Make[float32](a, n*(1+slots))}
}

// PeerAdder adds up among the graph ranks, without a server.
type PeerAdder struct{ world.Comm }

// Sum implements Adder.
func (p PeerAdder) Sum(x []float32) error { return world.SumFloat32s(p.Comm, x) }

// Step implements Source: it updates this rank's weights, and ends a round if due. Collective
// over the graph ranks at the end of a round.
func (s *Averaged) Step(epoch int, grad []float32) error {
	s.step(s.rounds.Step(epoch, 0), grad)
	if !s.rounds.Shared(epoch + 1) {
		return nil
	}
	return s.average()
}

// Correct takes the k-th joint step of all ranks after a round that ended with an epoch.
// grad is this rank's part of the gradient. Collective over the graph ranks.
func (s *Averaged) Correct(epoch, k int, grad []float32) error {
	return s.Replicated.Step(s.rounds.Step(epoch, k), grad)
}

// average replaces weights and state by their means.
func (s *Averaged) average() error {
	u, n := s.updater, s.weights.Rows
	parts := append([]kernels.Mat{s.weights}, u.state...)
	for k, p := range parts {
		kernels.Read(u.ops, s.all[k*n:(k+1)*n], p)
	}
	for i := range s.all {
		s.all[i] *= s.share
	}
	if err := s.adder.Sum(s.all); err != nil {
		return err
	}
	for k, p := range parts {
		kernels.Write(u.ops, p, s.all[k*n:(k+1)*n])
	}
	return nil
}

// Sum implements Adder, on servers with Means: a server's epoch is a sum, and its weights are
// the last sum.
func (c *Client) Sum(x []float32) error {
	if c.epoch == 0 { // the servers begin with zeros
		if err := c.Pull(1, nil); err != nil {
			return err
		}
	}
	if err := c.Step(c.epoch, x); err != nil {
		return err
	}
	return c.Pull(c.epoch+1, x)
}

// Means is the protocol.Updater of servers that only add up vectors. A server's sum replaces its
// weights.
type Means struct{}

// Update implements protocol.Updater.
func (Means) Update(_, _ int, weights, grad []float32) { copy(weights, grad) }

// State implements protocol.Updater.
func (Means) State() [][]float32 { return nil }

// MeansLayers returns the layers of servers with Means: a single one, for n weights and an
// optimiser with the given slots.
func MeansLayers(n, slots int) []protocol.Range {
	return []protocol.Range{{Lo: 0, Hi: n * (1 + slots)}}
}

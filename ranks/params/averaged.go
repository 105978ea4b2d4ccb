package params

import (
	"siafu/internal/mapped"
	"siafu/internal/signals"
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
	// Asked, Saved and Leave are as in Source.
	Asked() signals.Request
	Saved()
	Leave() error
}

// NewAveraged takes ownership of a replica at the start of a round. adder is a Client of
// servers with Means, or nil if the ranks add up among themselves.
func NewAveraged(r *Replicated, c Rounds, adder Adder, a *mapped.Arena) *Averaged {
	n, slots := r.weights.Rows, len(r.updater.state)
	s := &Averaged{Replicated: *r, rounds: c, adder: adder, share: 1 / float32(r.comm.Size()), all: mapped.Make[float32](a, n*(1+slots))}
	if adder == nil {
		s.adder = &peerAdder{s.Replicated}
	}
	return s
}

// peerAdder adds up among the ranks, without a server.
type peerAdder struct{ Replicated }

// Sum implements Adder.
func (p *peerAdder) Sum(x []float32) error { return world.SumFloat32s(p.comm, x) }

// Flush implements Source: it updates this rank's weights, and ends a round if due. Collective
// over the graph ranks at the end of a round.
func (s *Averaged) Flush(epoch int, grad []float32) error {
	s.step(s.rounds.Step(epoch, 0), grad)
	if !s.rounds.Shared(epoch + 1) {
		return nil
	}
	return s.average()
}

// Correct takes the k-th joint step of all ranks after a round that ended with an epoch.
// grad is this rank's part of the gradient. Collective over the graph ranks.
func (s *Averaged) Correct(epoch, k int, grad []float32) error {
	return s.Replicated.Flush(s.rounds.Step(epoch, k), grad)
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

// Asked implements Source.
func (s *Averaged) Asked() signals.Request { return s.adder.Asked() }

// Saved implements Source.
func (s *Averaged) Saved() { s.adder.Saved() }

// Leave implements Source.
func (s *Averaged) Leave() error { return s.adder.Leave() }

// Sum implements Adder, on servers with Means: a server's epoch is a sum, and its weights are
// the last sum.
func (c *Client) Sum(x []float32) error {
	if c.epoch == 0 { // the servers begin with zeros
		if err := c.Pull(1, nil); err != nil {
			return err
		}
	}
	if err := c.Begin(); err != nil {
		return err
	}
	at := c.epoch
	if err := c.Push(at, 0, x); err != nil {
		return err
	}
	return c.Pull(at+1, x)
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

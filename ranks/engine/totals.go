package engine

import (
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/inject"
	"siafu/ranks/world"
)

// allSums are the sums over the vertices of all ranks that some layers need
// (model.Summing). They are added up in the order of intervals and then of ranks: the bits
// are the same on every rank.
type allSums struct {
	comm          world.Comm // of the graph ranks
	ops           kernels.Ops
	weights, grad []float32 // flat, of the current pass
	own, all      []float64
	state         [][]float64 // by layer
	read          []float32   // the part that stages read
}

// newAllSums allocates the sums of a network, nil if no layer needs any. No other code may
// use the result of ops, because updates of other layers run at the same time; weights and grad are the
// rank's flat vectors.
func newAllSums(net *model.Network, c world.Comm, ops func() kernels.Ops, weights, grad []float32) *allSums {
	t, most := &allSums{comm: c, weights: weights, grad: grad, state: make([][]float64, len(net.Layers))}, 0
	for l := range net.Layers {
		sums, state := net.Sums(l)
		t.state[l], most = make([]float64, state), max(most, sums)
	}
	if most == 0 {
		return nil
	}
	t.ops, t.own, t.all = ops(), make([]float64, most+1), make([]float64, most+1)
	return t
}

// sumOverRanks adds up the intervals' sums for layer l and gives them the result. Collective
// over the graph ranks, while no exchange of rows is in progress.
func (s *lockstep) sumOverRanks(l int, back bool) error {
	t, layer := s.totals, s.store.Network.Layers[l].(model.Summing)
	count, _ := s.store.Network.Sums(l)
	own, all := t.own[:count+1], t.all[:count+1]
	if back || layer.Summed(s.pass.Pass) {
		s.sumIntervals(l, own)
		copy(all, own)
		s.workers.fault.At(inject.Total, s.pass.Epoch)
		if err := world.SumFloat64s(t.comm, all); err != nil {
			return err
		}
	} else {
		all = nil
	}
	layer.Settle(back, own, all, t.weights, t.grad, t.state[l])
	s.writeSettled(l, t)
	if back && len(s.intervals) > 0 {
		r := s.store.Network.Spec.LayerRanges()[l]
		kernels.Write(t.ops, s.intervals[0].frame.LayerGrad(l), t.grad[r.Lo:r.Hi])
	}
	return nil
}

// sumIntervals adds up the intervals' sums, and appends the number of vertices.
func (s *lockstep) sumIntervals(l int, own []float64) {
	clear(own)
	last := len(own) - 1
	for _, i := range s.intervals {
		for k, v := range kernels.FetchVector(s.totals.ops, i.frame.Sums(l)) {
			own[k] += v
		}
		own[last] += float64(i.frame.Rows())
	}
}

// writeSettled gives all intervals the totals that their stages read.
func (s *lockstep) writeSettled(l int, t *allSums) {
	for _, i := range s.intervals {
		dst := i.frame.Settled(l)
		t.read = t.read[:0]
		for _, v := range t.state[l][:dst.Rows] {
			t.read = append(t.read, float32(v))
		}
		kernels.Write(t.ops, dst, t.read)
	}
}

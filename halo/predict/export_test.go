package predict

import (
	"math/rand/v2"

	"siafu/halo"
	"siafu/kernels"
)

// Gradient prepares a training of a layer with changed weights. It returns them, the gradient of the
// loss with the best readout for them, the bounds of each matrix, and the loss with this readout.
func (s *Source) Gradient(at halo.Slot) (weights, gradient []float32, blocks map[string][2]int, loss func() float64, err error) {
	r, n := s.recurrent, s.recurrent.layers[at.Layer]
	view, err := s.Collective.View(at)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if r.findEpochs(view) == 0 || !r.hasOwnRows(n) || !r.weigh(at.Epoch) {
		panic("predict: own rows are missing")
	}
	total := r.observeScaled(n, at.Epoch).learned
	rng, from := rand.New(rand.NewPCG(1, 2)), 0
	for i := range n.weights { // away from the minimum
		n.weights[i] += 0.1 * float32(rng.NormFloat64())
	}
	r.forward(n)
	if ok, err := r.fitAll(n, true); !ok || err != nil {
		panic("predict: no readout")
	}
	for i := range r.training.readout { // an error of about that of stale rows
		r.training.readout[i] += 0.1 * float32(rng.NormFloat64())
	}
	loss = func() float64 {
		r.forward(n)
		return r.errors(n, r.training.readout, 1, 0).learned / total
	}
	loss()
	clear(n.grad)
	r.backward(n, total)
	m := matricesOf(n.weights)
	blocks = map[string][2]int{}
	for _, b := range []struct {
		name string
		m    kernels.Mat
	}{{"near", m.near}, {"far", m.far}, {"bias", m.bias}, {"source", m.source}, {"target", m.target}} {
		if !b.m.IsNil() {
			blocks[b.name] = [2]int{from, from + b.m.Rows*b.m.Cols}
			from += b.m.Rows * b.m.Cols
		}
	}
	return n.weights, n.grad, blocks, loss, nil
}

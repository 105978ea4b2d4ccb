package predict

import (
	"math/rand/v2"

	"siafu/halo"
	"siafu/kernels"
)

// Gradient prepares a training of a layer with changed weights. It returns them, the gradient of the
// loss, the bounds of each matrix, and the loss.
func (s *Source) Gradient(at halo.Slot) (weights, gradient []float32, blocks map[string][2]int, loss func() float64, err error) {
	r, n := s.recurrent, s.recurrent.layers[at.Layer]
	view, err := s.Collective.View(at)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	r.findEpochs(view)
	if !r.assemble(n, at.Epoch, view.Rows.Host()) {
		panic("predict: own rows are missing")
	}
	scale := r.hide(n, at.Epoch)
	total := r.errors(n, nothing).learned
	loss = func() float64 { return r.forward(n, scale).learned / total }
	rng, from := rand.New(rand.NewPCG(1, 2)), 0
	for i := range n.weights { // away from the minimum
		n.weights[i] += 0.1 * float32(rng.NormFloat64())
	}
	loss()
	clear(n.grad)
	r.backward(n, scale, total)
	m := matricesOf(n.weights, n.Width)
	blocks = map[string][2]int{}
	for _, b := range []struct {
		name string
		m    kernels.Mat
	}{{"rows", m.rows}, {"changes", m.changes}, {"readout", m.readout}, {"shift", m.shift}, {"near", m.near}, {"far", m.far}, {"bias", m.bias}, {"source", m.source}, {"target", m.target}} {
		if !b.m.IsNil() {
			blocks[b.name] = [2]int{from, from + b.m.Rows*b.m.Cols}
			from += b.m.Rows * b.m.Cols
		}
	}
	return n.weights, n.grad, blocks, loss, nil
}

package predict

import (
	"math"
	"time"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Training of recurrent predictors (SAT, algorithm 1, lines 17 to 22, and equations 13 and 14).
//
// The loss is the mean square of the error of B_m sampled own rows of each part, in units of the
// error of stale rows. Sampled rows are treated as ghosts: their rows are those of the ghosts'
// epochs, and their changes are unknown. Training unrolls the stored steps from a state of zeros.
// One of eight sampled rows is held out. Training stops early if their error does not fall. A
// layer uses stale rows until the next training unless, in all parts, held-out rows are predicted
// better than the stale ones: by the weights before the training, which have not seen the epoch, and
// by those after it (the constraint of equation 9).
const (
	adamPerEpoch = 8  // most steps of Adam in a training for each epoch since the training before
	adamMost     = 60 // most steps of Adam in a training
	patience     = 5  // steps without a lower error on held-out rows
	maskedPart   = 4  // one of so many own rows is sampled, at most
)

// training has the memory of trainings.
type training struct {
	optimizer kernels.Optimizer
	sampled   []uint32 // own rows to learn from, then those held out
	learned   int
	target    []float32 // their changes [sampled x widest]
	predicted []float32 // [sampled x widest]
	h         []float32 // [sampled x hidden]
	share     []float32 // number of sources over the number of those with a known change [rows]
	start     []float32 // zeros: the state before the first step [rows x States·hidden]
}

func (r *recurrent) newTraining() training {
	o, a, n := r.o, r.o.Arena, min(SampledRows(r.o.Rows, r.widest, r.graph.own), r.graph.own/maskedPart)
	t := training{
		sampled: mapped.Make[uint32](a, n), learned: n - n/heldOut,
		target: mapped.Make[float32](a, n*r.widest), predicted: mapped.Make[float32](a, n*r.widest), h: mapped.Make[float32](a, n*hidden),
		share: mapped.Make[float32](a, r.graph.rows), start: mapped.Make[float32](a, r.graph.rows*r.stateWidth()),
	}
	var err error
	if t.optimizer, err = kernels.NewOptimizer(kernels.OptimizerConfig{Name: "adam", LR: o.LR}); err != nil {
		panic("predict: " + err.Error())
	}
	return t
}

// Train trains the predictors of all layers on the rows of an epoch that has ended, if a training is
// due. Collective over the ranks of Options.Sums.
func (s *Source) Train(epoch int) error {
	r := s.recurrent
	if r == nil || epoch%s.o.Every != 0 {
		return nil
	}
	began := time.Now()
	defer func() { s.taken.Seconds += time.Since(began).Seconds() }()
	for _, n := range r.layers {
		if n == nil {
			continue
		}
		view, err := s.Collective.View(halo.Slot{Epoch: epoch, Layer: n.Layer})
		if err != nil {
			return err
		}
		if err := r.train(n, epoch, view); err != nil {
			return err
		}
		if s.o.Hold {
			r.hold(n, epoch+1, view)
		}
	}
	return nil
}

// hold stores predictions for an epoch, and for those until the next training.
func (r *recurrent) hold(n *network, epoch int, view halo.View) {
	n.counts[holds] = 0
	if n.counts[trained] == 0 || !r.assemble(n, epoch, view.Rows.Host()) {
		return
	}
	if made, _ := r.predictGhosts(n, kernels.HostMat(r.o.Plan.Ghosts, n.Width, n.held)); made {
		n.counts[holds] = 1
	}
}

// errors are sums of squared errors of sampled rows.
type errors struct{ learned, heldOut float64 }

// train trains the predictor of a layer. Ranks that have no rows yet take part without any.
func (r *recurrent) train(n *network, epoch int, view halo.View) error {
	newest := r.findEpochs(view)
	ready := newest > 0 && n.canRead(r.o) && r.assemble(n, epoch, view.Rows.Host())
	scale, stale, bad := float32(0), errors{}, 0.0
	if ready {
		scale = r.hide(n, epoch)
		stale = r.errors(n, nothing)
		if ready = scale > 0; !isFinite(scale) {
			ready, bad = false, 1
		}
	}
	rows := 0.0
	if ready {
		rows = float64(r.training.learned)
	}
	sums := []float64{bad, rows, stale.learned, stale.heldOut}
	if err := r.o.Sums.Float64s(sums); err != nil {
		return err
	}
	switch {
	case sums[0] > 0:
		n.counts[fallsBack] = int32(NotFinite)
		return nil
	case sums[1] == 0 || sums[2] == 0: // no rows yet, or none that has changed
		return nil
	case sums[1] < float64(2*n.Width):
		n.counts[fallsBack] = int32(FewRows)
		return nil
	}
	worse, err := r.descend(n, scale, ready, stale, sums[2])
	if err != nil {
		return err
	}
	sums = []float64{0}
	if worse {
		sums[0] = 1
	}
	if err := r.o.Sums.Float64s(sums); err != nil {
		return err
	}
	n.counts[trained], n.counts[fallsBack] = 1, int32(none)
	if sums[0] > 0 {
		n.counts[fallsBack] = int32(NotBetter)
	}
	if n.counts[stepCount] > 0 { // the state that the new weights give
		copy(n.state, r.unroll(n).Host())
	}
	return nil
}

// canRead reports whether enough steps are stored to predict.
func (n *network) canRead(o *Options) bool {
	if o.Fresh {
		return n.counts[stepCount] > 0
	}
	return n.slots(o.Window) > 1
}

// descend takes steps of Adam until held-out rows are no longer predicted better. It reports whether
// the prediction of this rank's held-out rows, before or after, is not better than the stale rows.
func (r *recurrent) descend(n *network, scale float32, ready bool, stale errors, total float64) (worse bool, err error) {
	best, since := math.Inf(1), 0
	var before, after, fails bool
	size := len(n.weights)
	moments := [][]float32{n.moments[:size], n.moments[size:]}
	for k := 0; ; k++ {
		var own errors
		if ready {
			own = r.forward(n, scale)
		}
		sums := []float64{own.learned, own.heldOut}
		if err := r.o.Sums.Float64s(sums); err != nil {
			return false, err
		}
		if ready && stale.heldOut > 0 {
			fails = !(own.heldOut < stale.heldOut)
		}
		if since++; sums[1] < best || k == 0 {
			best, since = sums[1], 0
			copy(n.best, n.weights)
			after = fails
		}
		if k == 0 {
			before = fails
		}
		if since == patience || k == min(adamMost, adamPerEpoch*r.o.Every) {
			break
		}
		clear(n.grad)
		if ready {
			r.backward(n, scale, total)
		}
		if err := r.o.Sums.Float32s(n.grad); err != nil {
			return false, err
		}
		if !isFinite(float32(square(n.grad))) { // no step: moments would never be finite again
			break
		}
		n.counts[adamSteps]++
		r.training.optimizer.Step(int(n.counts[adamSteps]), n.weights, n.grad, moments, false)
	}
	copy(n.weights, n.best)
	return before || after, nil
}

func nothing(int) float32 { return 0 }

// hide samples own rows and makes their changes unknown. Known changes are divided by the root of
// their mean square; hide returns the factor.
func (r *recurrent) hide(n *network, epoch int) (scale float32) {
	t, d := &r.training, n.Width
	scale = r.inverseRoot(1, d)
	drawn := kernels.Sample{Seed: r.o.Seed ^ predictSeed, Step: epoch, Layer: n.Layer}.Draw(t.sampled[:0], uint32(r.o.Shard.Rank), len(t.sampled), r.graph.own)
	heldRows := make([]uint32, 0, len(drawn)-t.learned)
	kept := drawn[:0]
	for i, v := range drawn {
		if i%heldOut == heldOut-1 {
			heldRows = append(heldRows, v)
		} else {
			kept = append(kept, v)
		}
	}
	copy(t.sampled[len(kept):], heldRows)
	for i, v := range t.sampled {
		change := r.change[int(v)*d : (int(v)+1)*d]
		copy(t.target[i*d:], change)
		clear(change)
		r.known[v] = 0
	}
	r.o.Team.Run(r.graph.rows, 64, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			known, sources := float32(0), r.graph.sources(v)
			for _, u := range sources {
				known += r.known[u]
			}
			t.share[v] = float32(len(sources)) / max(known, 1)
		}
	})
	kernels.ScaleRow(r.change[:r.graph.rows*d], scale)
	return scale
}

// errors returns the errors of sampled rows whose changes are predicted times by(row).
func (r *recurrent) errors(n *network, by func(v int) float32) (e errors) {
	t, d := &r.training, n.Width
	for i, v := range t.sampled {
		sum, factor := 0.0, by(int(v))
		for j, y := range t.target[i*d : (i+1)*d] {
			x := float64(factor*t.predicted[i*d+j]) - float64(y)
			sum += x * x
		}
		if i < t.learned {
			e.learned += sum
		} else {
			e.heldOut += sum
		}
	}
	return e
}

// unroll takes the stored steps, and returns the last state.
func (r *recurrent) unroll(n *network) (state kernels.Mat) {
	state = r.state(r.training.start)
	for i := range n.slots(r.o.Window) {
		r.step(n, &r.steps[i], state, i)
		state = r.state(r.steps[i].state)
	}
	return state
}

// forward predicts the changes of sampled rows, and returns their errors.
func (r *recurrent) forward(n *network, scale float32) errors {
	t, state, w := &r.training, r.unroll(n), matricesOf(n.weights, n.Width)
	if r.o.Fresh {
		a := &r.steps[n.slots(r.o.Window)]
		r.freshInput(n, a, state)
		r.finish(n, a, state, 0)
		state = r.state(a.state)
	}
	s := r.stateWidth()
	for i, v := range t.sampled {
		copy(t.h[i*hidden:(i+1)*hidden], state.Host()[int(v)*s:])
	}
	rows := len(t.sampled)
	r.o.Team.MatMulBiasReLUDropout(kernels.HostMat(rows, n.Width, t.predicted), kernels.HostMat(rows, hidden, t.h), w.readout, w.shift, false, nil)
	return r.errors(n, r.unit(n, scale))
}

// unit returns the factors of read-out changes.
func (r *recurrent) unit(n *network, scale float32) func(v int) float32 {
	if !r.o.Fresh {
		_, scales := r.slot(n, n.slots(r.o.Window)-1)
		scale = scales[1]
	}
	if scale == 0 {
		return nothing
	}
	return func(v int) float32 { return r.amplitude(v) / scale }
}

// backward sets n.grad to the gradient of the loss: the error of the rows to learn from over total.
func (r *recurrent) backward(n *network, scale float32, total float64) {
	t, d, w, g := &r.training, n.Width, matricesOf(n.weights, n.Width), matricesOf(n.grad, n.Width)
	unit := r.unit(n, scale)
	for i, v := range t.sampled[:t.learned] {
		by := unit(int(v))
		factor := float32(2 / total)
		for j := i * d; j < (i+1)*d; j++ {
			t.predicted[j] = factor * by * (by*t.predicted[j] - t.target[j])
		}
	}
	dy, h := kernels.HostMat(t.learned, d, t.predicted), kernels.HostMat(t.learned, hidden, t.h)
	r.o.Team.MatMulTransA(g.readout, h, dy, false)
	r.o.Team.ColumnSums(g.shift, dy, false)
	r.o.Team.MatMulTransB(h, dy, w.readout, false)
	clear(r.grads.state)
	for i, v := range t.sampled[:t.learned] {
		copy(r.grads.state[int(v)*r.stateWidth():], t.h[i*hidden:(i+1)*hidden])
	}
	last := n.slots(r.o.Window) - 1
	if size := r.graph.rows * d; r.o.Fresh {
		_, scales := r.slot(n, last)
		base, change := kernels.HostMat(r.graph.rows, d, r.base[:size]), kernels.HostMat(r.graph.rows, d, r.change[:size])
		r.stepGrad(n, &r.steps[last+1], r.state(r.steps[last].state), base, scales[0], change, true)
	}
	for i := last; i >= 0; i-- {
		before, change := r.state(t.start), kernels.Mat{}
		rows, scales := r.slot(n, i)
		if i > 0 {
			before = r.state(r.steps[i-1].state)
			r.difference(n, i, scales[1])
			change = kernels.HostMat(r.graph.rows, d, r.differences[:r.graph.rows*d])
		}
		r.stepGrad(n, &r.steps[i], before, rows, scales[0], change, false)
	}
}

// stepGrad adds the gradient of a step to n.grad, and replaces the gradient of its state by that of
// the state before.
func (r *recurrent) stepGrad(n *network, a *activation, before, rows kernels.Mat, scale float32, change kernels.Mat, now bool) {
	w, g, count, t := matricesOf(n.weights, n.Width), matricesOf(n.grad, n.Width), r.graph.rows, r.o.Team
	mat := func(x []float32, cols int) kernels.Mat { return kernels.HostMat(count, cols, x) }
	du, dm, dz, dstate := mat(r.grads.u, columns), mat(r.grads.m, columns), mat(r.grads.z, kernels.Gates*hidden), r.state(r.grads.state)
	r.cell.StepGrad(t, dz, dstate, dstate, mat(a.z, kernels.Gates*hidden), before)
	t.MatMulTransA(g.near, mat(a.u, columns), dz, true)
	t.MatMulTransA(g.far, mat(a.m, columns), dz, true)
	t.ColumnSums(g.bias, dz, true)
	t.MatMulTransB(dm, dz, w.far, false)
	if r.attends {
		r.graph.attendGrad(t, du, dm, mat(a.u, columns), mat(a.m, columns), a.lse, w, g)
	} else {
		if now {
			r.weigh(r.grads.m)
		}
		r.graph.meanGrad(t, du, dm)
	}
	t.MatMulTransB(du, dz, w.near, true)
	x := mat(r.projected, hidden)
	r.column(0, scale)
	t.MatMulTransA(g.rows, rows, x, true)
	if !change.IsNil() {
		r.column(hidden, 1)
		t.MatMulTransA(g.changes, change, x, true)
	}
	s := r.stateWidth()
	for v := range count {
		for j, d := range r.grads.u[v*columns+2*hidden : v*columns+3*hidden] {
			r.grads.state[v*s+j] += d
		}
	}
}

// column sets projected to columns of the gradient of U, times a scale.
func (r *recurrent) column(first int, scale float32) {
	for v := range r.graph.rows {
		for j := range hidden {
			r.projected[v*hidden+j] = scale * r.grads.u[v*columns+first+j]
		}
	}
}

// weigh makes the means of changes those over sources with a known change.
func (r *recurrent) weigh(m []float32) {
	for v, by := range r.training.share {
		kernels.ScaleRow(m[v*columns+hidden:v*columns+2*hidden], by)
	}
}

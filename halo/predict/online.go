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
// The loss is the square of the error of B_m sampled own rows of each part, in units of the error of
// stale rows. Training unrolls the stored steps of the sampled rows from the state before the first.
// Each step of Adam follows a regression of the readout over all parts, whose derivative by the state
// is that of the loss with this readout: the readout is a minimum. One of eight sampled rows is held
// out. Training stops early if their error does not fall, and keeps the best weights.
//
// The means over neighbours are those of the steps when they were taken: gradients stop at them,
// except that of attention's weights in the last step. Cells and ghosts continue from the states that
// the weights before the training gave.
//
// With past rows, the regression has the sums of earlier steps, too, each with half the weight of the
// step after it. The readout is multiplied by a gain in [0, 1]: the one with which the readout of the
// training before, which has not seen the epoch, predicts sampled rows best, or that of the training
// before if it is less. So nothing is predicted before the third training. A layer uses stale rows until the
// next training unless, in all parts,
// that prediction of held-out rows is better than the stale ones (the constraint of equation 9).
const (
	mostSteps = 2   // most steps of Adam in a training, and at most one for each epoch since the last
	forget    = 0.5 // factor of the sums of a regression of past rows for each step
	patience  = 2   // steps without a lower error on held-out rows
)

// training has the memory of trainings.
type training struct {
	optimizer kernels.Optimizer
	z, states []float32 // of the window [Window x sampled x Gates·hidden], [Window+1 x sampled x States·hidden]
	lse       []float64 // of attention in the last step [sampled]
	readout   []float32 // [terms x widest]
	factor    []float64 // [terms x terms]
	dstate    []float32 // [sampled x States·hidden]
	dz        []float32 // [sampled x Gates·hidden]
	dh        []float32 // [sampled x hidden]
	dm        []float32 // with attention [sampled x columns]
}

func (r *recurrent) newTraining(widest int) training {
	a, n, s, gates := r.o.Arena, len(r.sampled), r.stateWidth(), kernels.Gates*hidden
	floats := func(n int) []float32 { return mapped.Make[float32](a, n) }
	t := training{
		z: floats(r.o.Window * n * gates), states: floats((r.o.Window + 1) * n * s),
		readout: floats(terms * widest), factor: mapped.Make[float64](a, terms*terms),
		dstate: floats(n * s), dz: floats(n * gates), dh: floats(n * hidden),
	}
	if r.attends {
		t.lse, t.dm = mapped.Make[float64](a, n), floats(n*columns)
	}
	var err error
	if t.optimizer, err = kernels.NewOptimizer(kernels.OptimizerConfig{Name: "adam", LR: r.o.LR}); err != nil {
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
		if s.o.Fitting != nil {
			s.o.Fitting(epoch)
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

// train trains the predictor of a layer. Ranks that have no rows yet take part without any.
func (r *recurrent) train(n *network, epoch int, view halo.View) error {
	ready := r.findEpochs(view) > 0 && n.counts[stepCount] > 0 && r.hasOwnRows(n) && r.weigh(epoch)
	if ready && !r.o.Fresh {
		ready = n.scales[changeScale] > 0
	}
	stale, bad, rows := errors{}, 0.0, 0.0
	if ready {
		stale = r.observeScaled(n, epoch)
		if rows = float64(r.learned); !isFinite(float32(stale.learned + stale.heldOut)) {
			ready, bad, rows, stale = false, 1, 0, errors{}
		}
	}
	sums := []float64{bad, rows, stale.learned, float64(n.counts[stepCount] - n.counts[lastTrained])}
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
	if !r.o.Fresh {
		if err := r.validate(n, ready, stale); err != nil {
			return err
		}
	}
	if err := r.descend(n, ready, sums[2]); err != nil {
		return err
	}
	if !r.o.Fresh {
		return r.fitPast(n, ready, sums[3] > 0)
	}
	n.counts[fallsBack] = int32(none)
	return nil
}

// observeScaled is observe with changes relative to those of past rows, the units of a readout of past
// rows.
func (r *recurrent) observeScaled(n *network, epoch int) errors {
	stale := r.observe(n, epoch)
	if r.o.Fresh {
		return stale
	}
	by := 1 / n.scales[changeScale]
	kernels.ScaleRow(r.readout.target[:len(r.sampled)*n.Width], by)
	return errors{stale.learned * float64(by) * float64(by), stale.heldOut * float64(by) * float64(by)}
}

// validate sets the gain of predictions from past rows, and whether layers use stale rows until the next
// training. The readout is that of the training before.
func (r *recurrent) validate(n *network, ready bool, stale errors) error {
	sums := []float64{0, 0}
	if ready {
		r.errors(n, n.readout, 1, 0)
		for i, p := range r.readout.predicted[:r.learned*n.Width] {
			sums[0] += float64(p) * float64(r.readout.target[i])
			sums[1] += float64(p) * float64(p)
		}
	}
	if err := r.o.Sums.Float64s(sums); err != nil {
		return err
	}
	best := sums[0] / sums[1] // NaN in the first training
	if !(best > 0) {
		best = 0
	}
	n.scales[gain], n.scales[lastGain] = min(n.scales[lastGain], float32(best)), min(float32(best), 1)
	worse := []float64{0}
	if n.scales[gain] == 0 || ready && stale.heldOut > 0 && !(r.errors(n, n.readout, n.scales[gain], r.learned).heldOut < stale.heldOut) {
		worse[0] = 1
	}
	if err := r.o.Sums.Float64s(worse); err != nil {
		return err
	}
	n.counts[fallsBack] = int32(none)
	if worse[0] > 0 {
		n.counts[fallsBack] = int32(NotBetter)
	}
	return nil
}

// descend takes steps of Adam until held-out rows are no longer predicted better.
func (r *recurrent) descend(n *network, ready bool, total float64) error {
	best, since, size := math.Inf(1), 0, len(n.weights)
	moments := [][]float32{n.moments[:size], n.moments[size:]}
	copy(n.best, n.weights)
	for k := 0; ; k++ {
		if ready {
			r.forward(n)
		}
		ok, err := r.fitAll(n, ready)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		sums := []float64{0}
		if ready {
			sums[0] = r.errors(n, r.training.readout, 1, 0).heldOut
		}
		if err := r.o.Sums.Float64s(sums); err != nil {
			return err
		}
		if since++; sums[0] < best {
			best, since = sums[0], 0
			copy(n.best, n.weights)
		}
		if since == patience || k == min(r.o.Every, mostSteps) {
			break
		}
		clear(n.grad)
		if ready {
			r.backward(n, total)
		}
		if err := r.o.Sums.Float32s(n.grad); err != nil {
			return err
		}
		if !isFinite(float32(square(n.grad))) { // no step: moments would never be finite again
			break
		}
		n.counts[adamSteps]++
		r.training.optimizer.Step(int(n.counts[adamSteps]), n.weights, n.grad, moments, false)
	}
	copy(n.weights, n.best)
	return nil
}

// fitAll fits training.readout to the sampled rows of all parts. It reports whether it can.
func (r *recurrent) fitAll(n *network, ready bool) (bool, error) {
	err := r.sum(n, ready)
	return err == nil && r.solve(n), err
}

// sum sets the sums of a regression over the sampled rows of all parts.
func (r *recurrent) sum(n *network, ready bool) error {
	x := &r.readout
	sums := x.sums[:terms*(terms+n.Width)]
	clear(sums)
	if ready {
		x.gram(r.learned)
		x.cross(r.o.Team, r.learned, n.Width)
	}
	return r.o.Sums.Float64s(sums)
}

// solve sets training.readout from sums. It reports whether it can.
func (r *recurrent) solve(n *network) bool {
	x, t := &r.readout, &r.training
	return x.factorise(t.factor) == none && x.solve(t.readout, t.factor, n.Width) == none
}

// fitPast fits the readout of past rows to the states that cells have, and to those of earlier steps.
// stepped reports whether a part has taken a step since the training before.
func (r *recurrent) fitPast(n *network, ready, stepped bool) error {
	if ready {
		for i, v := range r.sampled {
			r.readout.describe(i, r.age[v], n.features[int(v)*columns:(int(v)+1)*columns])
		}
	}
	if err := r.sum(n, ready); err != nil {
		return err
	}
	sums := r.readout.sums[:terms*(terms+n.Width)]
	for i, v := range sums {
		if stepped {
			n.earlier[i] = forget * (n.earlier[i] + n.latest[i])
		}
		n.latest[i] = float32(v)
		sums[i] += float64(n.earlier[i])
	}
	n.counts[lastTrained] = n.counts[stepCount]
	if r.solve(n) {
		copy(n.readout, r.training.readout)
	}
	return nil
}

// states returns the state of sampled rows before the i-th stored step.
func (r *recurrent) states(i int) kernels.Mat {
	n, s := len(r.sampled), r.stateWidth()
	return kernels.HostMat(n, s, r.training.states[i*n*s:(i+1)*n*s])
}

// gatesAt returns the gates of sampled rows in the i-th stored step.
func (r *recurrent) gatesAt(i int) kernels.Mat {
	n, gates := len(r.sampled), kernels.Gates*hidden
	return kernels.HostMat(n, gates, r.training.z[i*n*gates:(i+1)*n*gates])
}

// forward takes the stored steps of sampled rows, and sets Ψ from the last state.
func (r *recurrent) forward(n *network) {
	w, count := matricesOf(n.weights), r.slots(n)
	copy(r.states(0).Host(), r.slot(n, 0).before.Host())
	for i := range count {
		at, before := r.slot(n, i), r.states(i)
		if i > 0 {
			setColumns(at.u, 2*hidden, before)
		}
		if r.attends && i == count-1 {
			r.attending.n, r.attending.m = n, at.m
			r.o.Team.Run(len(r.sampled), 16, r.bodies.attend)
		}
		r.gates(r.gatesAt(i), at.u, at.m, w)
		r.cell.Step(r.o.Team, r.states(i+1), r.gatesAt(i), before)
	}
	last, state := r.slot(n, count-1).u.Host(), r.states(count)
	for i, v := range r.sampled {
		var row [columns]float32
		copy(row[:2*hidden], last[i*columns:])
		copy(row[2*hidden:], state.Host()[i*state.Cols:i*state.Cols+hidden])
		r.readout.describe(i, r.age[v], row[:])
	}
}

// attendRows sets the means of sampled rows in the last step.
func (r *recurrent) attendRows(lo, hi int) {
	n, m := r.attending.n, r.attending.m.Host()
	for k := lo; k < hi; k++ {
		r.training.lse[k] = r.graph.attendRow(m[k*columns:(k+1)*columns], int(r.sampled[k]), n.inputs, matricesOf(n.weights))
	}
}

// setColumns copies the outputs h of states to columns of rows.
func setColumns(rows kernels.Mat, first int, states kernels.Mat) {
	for i := range rows.Rows {
		copy(rows.Host()[i*rows.Cols+first:i*rows.Cols+first+hidden], states.Host()[i*states.Cols:])
	}
}

// backward adds the gradient of the loss to n.grad: the error of the rows to learn from over total. It
// follows forward and errors.
func (r *recurrent) backward(n *network, total float64) {
	t, x, d, team, rows := &r.training, &r.readout, n.Width, r.o.Team, r.learned
	w, g := matricesOf(n.weights), matricesOf(n.grad)
	for i, y := range x.target[:rows*d] {
		x.predicted[i] = float32(2/total) * (x.predicted[i] - y)
	}
	dh, dz := kernels.HostMat(rows, hidden, t.dh), kernels.HostMat(rows, kernels.Gates*hidden, t.dz)
	dstate := kernels.HostMat(rows, r.stateWidth(), t.dstate)
	team.MatMulTransB(dh, kernels.HostMat(rows, d, x.predicted), kernels.HostMat(hidden, d, t.readout[2*hidden*d:]), false)
	clear(t.dstate)
	for i, v := range r.sampled[:rows] {
		kernels.ScaleRow(t.dh[i*hidden:(i+1)*hidden], r.age[v])
	}
	last := r.slots(n) - 1
	for i := last; i >= 0; i-- {
		for v := range rows { // of h through U of the step after, or through Φ
			kernels.AddRow(t.dstate[v*dstate.Cols:v*dstate.Cols+hidden], t.dh[v*hidden:(v+1)*hidden])
		}
		at := r.slot(n, i)
		r.cell.StepGrad(team, dz, dstate, dstate, r.gatesAt(i).Part(0, rows), r.states(i).Part(0, rows))
		team.MatMulTransA(g.near, at.u.Part(0, rows), dz, true)
		team.MatMulTransA(g.far, at.m.Part(0, rows), dz, true)
		team.ColumnSums(g.bias, dz, true)
		team.MatMulTransB(dh, dz, w.near.Part(2*hidden, columns), false)
		if r.attends && i == last {
			dm := kernels.HostMat(rows, columns, t.dm)
			team.MatMulTransB(dm, dz, w.far, false)
			for k, v := range r.sampled[:rows] {
				r.graph.attendRowGrad(g, int(v), n.inputs, t.dm[k*columns:(k+1)*columns], at.m.Host()[k*columns:(k+1)*columns], t.lse[k], w)
			}
		}
	}
}

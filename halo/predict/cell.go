package predict

import (
	"math"

	"siafu/kernels"
)

// hidden is the width k of projected rows and of a cell's output.
const hidden = 8

// columns is the width of a cell's input U, and of Φ: the projected row, the projected change, and
// the output of the step before or of this one.
const columns = 3 * hidden

// matrices are the trained weights of a layer, or their gradients.
type matrices struct {
	near, far, bias kernels.Mat // V, W, b
	source, target  kernels.Mat // of attention: a, b
}

func matricesOf(x []float32) (m matrices) {
	const gates = kernels.Gates * hidden
	for _, at := range []struct {
		m          *kernels.Mat
		rows, cols int
	}{
		{&m.near, columns, gates}, {&m.far, columns, gates}, {&m.bias, 1, gates}, {&m.source, 1, columns}, {&m.target, 1, columns},
	} {
		if len(x) == 0 { // no attention
			break
		}
		*at.m = kernels.HostMat(at.rows, at.cols, x)
		x = x[at.rows*at.cols:]
	}
	return m
}

// initialise sets the projection and the weights: the same on all ranks.
func (n *network) initialise(cell kernels.Cell, seed uint64) {
	w, stream := matricesOf(n.weights), 4*n.Layer
	for i, m := range []kernels.Mat{kernels.HostMat(n.Width, hidden, n.projection), w.near, w.far} {
		kernels.Xavier(m.Host(), m.Rows, m.Cols, seed^predictSeed, stream+i)
	}
	if cell == kernels.LSTM { // Jozefowicz et al., ICML'15: forget gates are open at first
		for j := range hidden {
			w.bias.Host()[hidden+j] = 1
		}
	}
}

// predictSeed separates the random numbers of predictors from those of networks.
const predictSeed = 0x5a7

func (r *recurrent) stateWidth() int { return r.cell.States() * hidden }

// slot is a step of the sampled rows.
type slot struct {
	u, m, before kernels.Mat // U, A U and the state before the step
}

// slotSize returns the numbers of a slot.
func (r *recurrent) slotSize() int { return len(r.sampled) * (2*columns + r.stateWidth()) }

// slots returns the number of stored steps.
func (r *recurrent) slots(n *network) int { return min(int(n.counts[stepCount]), r.o.Window) }

// slot returns the i-th of the stored steps, oldest first.
func (r *recurrent) slot(n *network, i int) slot {
	at := (int(n.counts[stepCount]) - r.slots(n) + i) % r.o.Window
	x, rows := n.window[at*r.slotSize():], len(r.sampled)
	return slot{
		kernels.HostMat(rows, columns, x), kernels.HostMat(rows, columns, x[rows*columns:]),
		kernels.HostMat(rows, r.stateWidth(), x[2*rows*columns:r.slotSize()]),
	}
}

// step takes a step from ghost rows and own rows of the same epochs. It fails if a row is not
// finite.
func (r *recurrent) step(n *network, epoch, newest int, ghosts kernels.Mat) bool {
	own, rows, t := r.graph.own, r.graph.rows, r.o.Team
	r.assembling.n, r.assembling.epoch = n, epoch
	t.Run(own, 64, r.bodies.base)
	p, arrived := kernels.HostMat(n.Width, hidden, n.projection), kernels.HostMat(rows, hidden, r.arrived)
	t.MatMul(arrived.Part(0, own), kernels.HostMat(own, n.Width, r.base), p, false)
	t.MatMul(arrived.Part(own, rows), ghosts, p, false)
	r.filling.n = n
	t.Run(rows, 64, r.bodies.squares)
	scale, change := r.inverseRoot(0), r.inverseRoot(1)
	if !isFinite(scale) || !isFinite(change) {
		n.forget()
		return false
	}
	n.scales[changeScale] = 0
	if n.counts[stepCount] == 0 {
		change = 0
	} else if change > 0 {
		n.scales[changeScale] = 1 / change
	}
	r.filling.scale, r.filling.change = scale, change
	t.Run(rows, 64, r.bodies.fill)
	n.counts[stepCount]++
	n.counts[newestEpoch] = int32(newest)
	r.finish(n)
	return true
}

// squareRows computes the squares of X P and D P.
func (r *recurrent) squareRows(lo, hi int) {
	for v := lo; v < hi; v++ {
		var x, d float64
		before := r.filling.n.projected[v*hidden : (v+1)*hidden]
		for j, p := range r.arrived[v*hidden : (v+1)*hidden] {
			by := float64(p - before[j])
			x += float64(p) * float64(p)
			d += float64(by * by)
		}
		r.squares[2*v], r.squares[2*v+1] = x, d
	}
}

// inverseRoot returns 1 over the root of the mean square of own rows in r.squares, k of each pair. It
// is 0 if these are zeros, and not finite if a number of any row is not.
func (r *recurrent) inverseRoot(k int) float32 {
	sum, all := 0.0, 0.0
	for v := range r.graph.rows {
		if all += r.squares[2*v+k]; v < r.graph.own {
			sum += r.squares[2*v+k]
		}
	}
	if sum == 0 || math.IsNaN(all) || math.IsInf(all, 0) {
		return float32(all - all)
	}
	return float32(math.Sqrt(float64(r.graph.own*hidden) / sum))
}

func isFinite(x float32) bool { return x-x == 0 }

// fillRows sets U, in place of Φ.
func (r *recurrent) fillRows(lo, hi int) {
	f, s := &r.filling, r.stateWidth()
	for v := lo; v < hi; v++ {
		u, before := f.n.features[v*columns:(v+1)*columns], f.n.projected[v*hidden:(v+1)*hidden]
		for j, x := range r.arrived[v*hidden : (v+1)*hidden] {
			u[j], u[hidden+j] = f.scale*x, f.change*(x-before[j])
			before[j] = x
		}
		copy(u[2*hidden:], f.n.state[v*s:v*s+hidden])
	}
}

// finish computes a step from its input U. It replaces U by Φ, and stores the sampled rows.
func (r *recurrent) finish(n *network) {
	w, rows, t := matricesOf(n.weights), r.graph.rows, r.o.Team
	u, m := kernels.HostMat(rows, columns, n.features), kernels.HostMat(rows, columns, r.m)
	if r.attends {
		copy(n.inputs, n.features)
		r.graph.attend(t, m, u, w)
	} else {
		r.graph.mean(t, m, u)
	}
	z, state := kernels.HostMat(rows, kernels.Gates*hidden, r.z), kernels.HostMat(rows, r.stateWidth(), n.state)
	next := kernels.HostMat(rows, r.stateWidth(), r.next)
	r.gates(z, u, m, w)
	r.cell.Step(t, next, z, state)
	last, s := r.slot(n, r.slots(n)-1), r.stateWidth()
	for i, v := range r.sampled {
		copyRow(last.u, i, u, int(v))
		copyRow(last.m, i, m, int(v))
		copyRow(last.before, i, state, int(v))
	}
	copy(n.state, r.next)
	for v := range rows {
		copy(n.features[v*columns+2*hidden:(v+1)*columns], n.state[v*s:])
	}
}

func copyRow(dst kernels.Mat, i int, src kernels.Mat, v int) {
	copy(dst.Host()[i*dst.Cols:(i+1)*dst.Cols], src.Host()[v*src.Cols:(v+1)*src.Cols])
}

// gates sets z to U V + M W + b.
func (r *recurrent) gates(z, u, m kernels.Mat, w matrices) {
	r.o.Team.MatMulBiasReLUDropout(z, u, w.near, w.bias, false, nil)
	r.o.Team.MatMul(z, m, w.far, true)
}

// CellNumbers returns the numbers of the portable state of a recurrent predictor of a layer, other than
// rows of its width: of a window of steps with sampled rows, and of the vertices of a part and its
// ghosts. It is an upper bound of all kinds.
func CellNumbers(window, sampled int, vertices int64, width int) int64 {
	const states, gates = 2 * hidden, (2*columns+1)*kernels.Gates*hidden + 2*columns
	sums := int64(terms) * int64(2*terms+3*width) // with past rows, and the readout
	return vertices*(hidden+2*columns+states) + int64(window)*int64(sampled)*(2*columns+states) + 3*gates + sums + numScales
}

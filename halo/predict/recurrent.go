package predict

import (
	"math"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

var (
	lstmGCNKind = kind{entry: entry{Name: "lstm-gcn", Help: "a learned LSTM whose gates are graph convolutions (GCRN, Seo et al. 2018), of the rows that have arrived so far"}, cell: kernels.LSTM}
	gruGCNKind  = kind{entry: entry{Name: "gru-gcn", Help: "the same with a GRU"}, cell: kernels.GRU}
	lstmGATKind = kind{entry: entry{Name: "lstm-gat", Help: "an LSTM whose gates have attention over neighbours in place of their mean"}, cell: kernels.LSTM, attends: true}
)

// hidden is the width k of projected rows and of a cell's output.
const hidden = 16

// columns is the width of a cell's input: the projected row, the projected change, the output of
// the step before, the age of the row, and whether its change is known.
const columns = 3*hidden + 2

// recurrent predicts the change of rows of a layer with a recurrent cell for each vertex of a part
// and its ghosts. With rows X of width d, changes D (0 where unknown), all divided by the root of
// their mean square, with ages a, and with the mean A over neighbours in the part:
//
//	U = (X P, D Q, h, a, known)
//	Z = U V + (A U) W + b;  (h, c) = cell(Z, (h, c))
//	Ĥ = H̃ + σ (h R + r)
//
// A step is taken when rows have arrived. D is then the change since the step before. "past" reads
// out this state, and σ is the root of the mean square of D times the age over the interval. "fresh"
// takes another step, which is not kept, with the change of own rows until the current epoch: σ
// is the root of its mean square. R and r are zeros at first.
type recurrent struct {
	o       *Options
	cell    kernels.Cell
	attends bool // attention in place of the mean
	graph   *partGraph
	widest  int
	layers  []*network

	base, change []float32 // rows that are predicted from, and their known changes [rows x widest]
	epochs       []int32   // of base [rows]
	age, known   []float32 // [rows]
	squares      []float64 // of base, and of change [rows x 2]
	differences  []float32 // of two steps [rows x widest]
	projected    []float32 // [rows x hidden]
	steps        []activation
	grads        activation // of the step that is differentiated; state: of the state before it
	training     training

	// Arguments of the bodies of parallel loops, which are made once.
	filling    fill
	differs    difference
	assembling struct {
		l      *layer
		epoch  int
		ghosts []float32
	}
	bodies struct{ fill, difference, assemble func(lo, hi int) }
}

// activation has the values of a step.
type activation struct {
	u, m  []float32 // input, and its mean over neighbours [rows x columns]
	z     []float32 // [rows x Gates·hidden]
	state []float32 // [rows x States·hidden]
	lse   []float32 // of attention [rows]
}

// network has the weights ω and the state of a layer.
type network struct {
	*layer
	weights, grad, best []float32
	moments             []float32 // of Adam [2 x len(weights)]
	window              []float32 // rows of the last steps [Window x rows x Width], a ring
	scales              []float32 // 1/root of the mean square of rows and of changes, by slot [Window x 2]
	state               []float32 // [rows x States·hidden]
	held                []float32 // predicted ghosts, with Hold [Ghosts x Width]
	counts              []int32   // see the constants
}

// Positions in network.counts.
const (
	stepCount   = iota // steps taken
	newestEpoch        // of the rows of the last step
	adamSteps
	trained   // 1 after the first training
	fallsBack // reason to use stale rows until the next training, a Fallback
	holds     // 1 if held has the predictions of the last training
	numCounts
)

func newRecurrent(o *Options, k *kind, widest int) *recurrent {
	g, a := newPartGraph(o.Shard, k.attends, o.Arena), o.Arena
	r := &recurrent{o: o, cell: k.cell, attends: k.attends, graph: g, widest: widest}
	r.base, r.change = mapped.Make[float32](a, g.rows*widest), mapped.Make[float32](a, g.rows*widest)
	r.epochs, r.squares = mapped.Make[int32](a, g.rows), mapped.Make[float64](a, 2*g.rows)
	r.age, r.known = mapped.Make[float32](a, g.rows), mapped.Make[float32](a, g.rows)
	r.projected = mapped.Make[float32](a, g.rows*hidden)
	for range o.Window + 1 {
		r.steps = append(r.steps, r.newActivation())
	}
	r.grads = r.newActivation()
	r.differences = mapped.Make[float32](a, g.rows*widest)
	r.training = r.newTraining()
	r.bodies.fill, r.bodies.difference, r.bodies.assemble = r.fillRows, r.differRows, r.assembleRows
	return r
}

func (r *recurrent) newActivation() activation {
	floats := func(cols int) []float32 { return mapped.Make[float32](r.o.Arena, r.graph.rows*cols) }
	a := activation{u: floats(columns), m: floats(columns), z: floats(kernels.Gates * hidden), state: floats(r.stateWidth())}
	if r.attends {
		a.lse = floats(1)
	}
	return a
}

func (r *recurrent) stateWidth() int { return r.cell.States() * hidden }

func (r *recurrent) add(l *layer) {
	n, a, rows := &network{layer: l}, r.o.Arena, r.graph.rows
	size := 3*l.Width*hidden + l.Width + (2*columns+1)*kernels.Gates*hidden
	if r.attends {
		size += 2 * columns
	}
	n.weights, n.grad, n.best = mapped.Make[float32](a, size), mapped.Make[float32](a, size), mapped.Make[float32](a, size)
	n.moments = mapped.Make[float32](a, 2*size)
	n.window, n.scales = mapped.Make[float32](a, r.o.Window*rows*l.Width), mapped.Make[float32](a, 2*r.o.Window)
	n.state, n.counts = mapped.Make[float32](a, rows*r.stateWidth()), mapped.Make[int32](a, numCounts)
	if r.o.Hold {
		n.held = mapped.Make[float32](a, r.o.Plan.Ghosts*l.Width)
	}
	a.Fill(func() { n.initialise(r.cell, r.o.Seed) })
	for len(r.layers) <= l.Layer {
		r.layers = append(r.layers, nil)
	}
	r.layers[l.Layer] = n
}

// matrices are the weights of a layer, or their gradients.
type matrices struct {
	rows, changes, readout kernels.Mat // P, Q, R
	shift                  kernels.Mat // r
	near, far, bias        kernels.Mat // V, W, b
	source, target         kernels.Mat // of attention: a, b
}

func matricesOf(x []float32, d int) (m matrices) {
	const gates = kernels.Gates * hidden
	for _, at := range []struct {
		m          *kernels.Mat
		rows, cols int
	}{
		{&m.rows, d, hidden}, {&m.changes, d, hidden}, {&m.readout, hidden, d}, {&m.shift, 1, d},
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

// initialise sets the weights: the same on all ranks.
func (n *network) initialise(cell kernels.Cell, seed uint64) {
	w, stream := matricesOf(n.weights, n.Width), 4*n.Layer
	for i, m := range []kernels.Mat{w.rows, w.changes, w.near, w.far} {
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

// slots returns the number of stored steps.
func (n *network) slots(window int) int { return min(int(n.counts[stepCount]), window) }

// slot returns the rows of the i-th of the stored steps, oldest first, and its scales.
func (r *recurrent) slot(n *network, i int) (rows kernels.Mat, scales []float32) {
	at := (int(n.counts[stepCount]) - n.slots(r.o.Window) + i) % r.o.Window
	size := r.graph.rows * n.Width
	return kernels.HostMat(r.graph.rows, n.Width, n.window[at*size:(at+1)*size]), n.scales[2*at : 2*at+2]
}

// take takes a step if rows have arrived, and sets dst to the predicted ghost rows. It reports
// whether it has.
func (r *recurrent) take(l *layer, epoch int, view halo.View, dst kernels.Mat) (bool, Fallback) {
	n := r.layers[l.Layer]
	newest := r.findEpochs(view)
	if newest == 0 {
		return false, none
	}
	if !r.assemble(n, epoch, view.Rows.Host()) {
		return false, none
	}
	if due := int(n.counts[newestEpoch]); due == 0 || newest >= due+r.o.Timing.Interval {
		if !r.keepStep(n, newest) {
			return false, NotFinite
		}
	}
	if reason := Fallback(n.counts[fallsBack]); reason != none || n.counts[trained] == 0 {
		return false, reason
	}
	if r.o.Hold {
		copy(dst.Host(), n.held)
		return n.counts[holds] == 1, none
	}
	if r.current(epoch) {
		return false, none
	}
	return r.predictGhosts(n, dst)
}

// findEpochs sets the epochs of base: those of the ghosts, and of own rows such that they are of the
// same epochs. It returns the newest one, 0 without any.
func (r *recurrent) findEpochs(view halo.View) (newest int) {
	own, ghosts := r.graph.own, r.graph.rows-r.graph.own
	clear(r.epochs)
	view.ForEachBlock(func(b halo.Block) {
		newest = max(newest, b.Epoch)
		for i := b.First; i < b.First+b.Rows; i++ {
			r.epochs[own+i] = int32(b.Epoch)
		}
	})
	for v := range own {
		if ghosts > 0 {
			r.epochs[v] = r.epochs[own+v*ghosts/own]
		}
		if r.epochs[v] == 0 {
			r.epochs[v] = int32(newest)
		}
	}
	return newest
}

// current reports whether all received ghost rows are of an epoch.
func (r *recurrent) current(epoch int) bool {
	for _, e := range r.epochs[r.graph.own:] {
		if e > 0 && int(e) != epoch {
			return false
		}
	}
	return true
}

// assemble sets base to the rows that readers have: received ghosts, and own rows of the same
// epochs, and change to the change of own rows until the epoch. It fails if own rows are not stored.
func (r *recurrent) assemble(n *network, epoch int, ghosts []float32) bool {
	for _, e := range r.epochs[:r.graph.own] {
		if n.stored(e) == nil {
			return false
		}
	}
	r.assembling.l, r.assembling.epoch, r.assembling.ghosts = n.layer, epoch, ghosts
	r.o.Team.Run(r.graph.rows, 64, r.bodies.assemble)
	return true
}

func (r *recurrent) assembleRows(lo, hi int) {
	l, own := r.assembling.l, r.graph.own
	w := l.Width
	for v := lo; v < hi; v++ {
		base, change, age := r.base[v*w:(v+1)*w], r.change[v*w:(v+1)*w], r.assembling.epoch-int(r.epochs[v])
		r.age[v], r.known[v] = float32(age)/float32(r.o.Timing.Interval), 0
		if v >= own {
			copy(base, r.assembling.ghosts[(v-own)*w:])
			clear(change)
		} else {
			r.known[v] = 1
			copy(base, l.stored(r.epochs[v])[v*w:])
			if by := r.o.Timing.Decay; by != 1 {
				kernels.ScaleRow(base[:w-l.Scores], float32(math.Pow(float64(by), float64(age))))
			}
			for j, x := range l.now[v*w : (v+1)*w] {
				change[j] = x - base[j]
			}
		}
		r.squares[2*v], r.squares[2*v+1] = square(base), square(change)
	}
}

func square(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// inverseRoot returns 1 over the root of the mean square of own rows in r.squares, k of each
// pair. It is 0 if these are zeros, and not finite if a number of any row is not.
func (r *recurrent) inverseRoot(k, width int) float32 {
	sum, all := 0.0, 0.0
	for v := range r.graph.rows {
		if all += r.squares[2*v+k]; v < r.graph.own {
			sum += r.squares[2*v+k]
		}
	}
	if sum == 0 || math.IsNaN(all) || math.IsInf(all, 0) {
		return float32(all - all)
	}
	return float32(math.Sqrt(float64(r.graph.own*width) / sum))
}

func isFinite(x float32) bool { return x-x == 0 }

// keepStep stores base as the rows of a step and takes the step. It fails if a row is not finite.
func (r *recurrent) keepStep(n *network, newest int) bool {
	scale := r.inverseRoot(0, n.Width)
	if !isFinite(scale) {
		return false
	}
	n.counts[stepCount]++
	n.counts[newestEpoch] = int32(newest)
	last := n.slots(r.o.Window) - 1
	rows, scales := r.slot(n, last)
	copy(rows.Host(), r.base)
	scales[0], scales[1] = scale, 0
	if last > 0 {
		if scales[1] = r.difference(n, last, 1); !isFinite(scales[1]) {
			n.forget()
			return false
		}
	}
	a := &r.steps[0]
	r.step(n, a, r.state(n.state), last)
	copy(n.state, a.state)
	return true
}

// difference sets differences to the change of the rows of the i-th stored step since the step
// before, times a scale. It returns 1 over the root of their mean square.
func (r *recurrent) difference(n *network, i int, scale float32) float32 {
	rows, _ := r.slot(n, i)
	before, _ := r.slot(n, i-1)
	r.differs = difference{rows.Host(), before.Host(), n.Width, scale}
	r.o.Team.Run(r.graph.rows, 64, r.bodies.difference)
	return r.inverseRoot(0, n.Width)
}

type difference struct {
	rows, before []float32
	width        int
	scale        float32
}

func (r *recurrent) differRows(lo, hi int) {
	d := &r.differs
	w := d.width
	for v := lo; v < hi; v++ {
		dst := r.differences[v*w : (v+1)*w]
		for j, x := range d.rows[v*w : (v+1)*w] {
			dst[j] = d.scale * (x - d.before[v*w+j])
		}
		r.squares[2*v] = square(dst)
	}
}

func (r *recurrent) state(x []float32) kernels.Mat {
	return kernels.HostMat(r.graph.rows, r.stateWidth(), x)
}

// step takes the step of the i-th stored slot from a state, which is zeros if it is none.
func (r *recurrent) step(n *network, a *activation, before kernels.Mat, i int) {
	rows, scales := r.slot(n, i)
	known := kernels.Mat{}
	if i > 0 {
		r.difference(n, i, scales[1])
		known = kernels.HostMat(r.graph.rows, n.Width, r.differences[:r.graph.rows*n.Width])
	}
	r.input(n, a, before, rows, scales[0], known, false)
	r.finish(n, a, before, 0)
}

// fill are the arguments of fillRows.
type fill struct {
	u, before, x []float32
	first        int // column of x
	states       int
	scale        float32
	now          bool
	known        float32
}

// input sets U from rows times a scale, and from changes. now: base and its change; otherwise a
// stored step.
func (r *recurrent) input(n *network, a *activation, before, rows kernels.Mat, scale float32, change kernels.Mat, now bool) {
	w := matricesOf(n.weights, n.Width)
	x := kernels.HostMat(r.graph.rows, hidden, r.projected)
	r.o.Team.MatMul(x, rows, w.rows, false)
	r.filling = fill{u: a.u, before: before.Host(), x: r.projected, states: r.stateWidth(), scale: scale, now: now}
	r.o.Team.Run(r.graph.rows, 64, r.bodies.fill)
	if change.IsNil() {
		clear(r.projected)
	} else {
		r.o.Team.MatMul(x, change, w.changes, false)
		r.filling.known = 1
	}
	r.filling.first, r.filling.scale = hidden, 1
	r.o.Team.Run(r.graph.rows, 64, r.bodies.fill)
}

func (r *recurrent) fillRows(lo, hi int) {
	f := &r.filling
	for v := lo; v < hi; v++ {
		u := f.u[v*columns : (v+1)*columns]
		for j, x := range f.x[v*hidden : (v+1)*hidden] {
			u[f.first+j] = f.scale * x
		}
		if f.first == 0 {
			continue
		}
		if len(f.before) == 0 {
			clear(u[2*hidden : 3*hidden])
		} else {
			copy(u[2*hidden:3*hidden], f.before[v*f.states:])
		}
		u[3*hidden], u[3*hidden+1] = 0, f.known
		if f.now {
			u[3*hidden], u[3*hidden+1] = r.age[v], r.known[v]
		}
	}
}

// finish computes a step from its input U, for the rows from first on: 0 or own.
func (r *recurrent) finish(n *network, a *activation, before kernels.Mat, first int) {
	w, rows := matricesOf(n.weights, n.Width), r.graph.rows
	u, m := kernels.HostMat(rows, columns, a.u), kernels.HostMat(rows, columns, a.m)
	if r.attends {
		r.graph.attend(r.o.Team, m, u, a.lse, w, first)
	} else if r.graph.mean(r.o.Team, m, u, first); first == 0 && r.filling.now {
		r.weigh(a.m)
	}
	z := kernels.HostMat(rows, kernels.Gates*hidden, a.z).Part(first, rows)
	r.o.Team.MatMulBiasReLUDropout(z, u.Part(first, rows), w.near, w.bias, false, nil)
	r.o.Team.MatMul(z, m.Part(first, rows), w.far, true)
	r.cell.Step(r.o.Team, r.state(a.state).Part(first, rows), z, before.Part(first, rows))
}

// predictGhosts sets dst to predicted ghost rows. base and change are assembled.
func (r *recurrent) predictGhosts(n *network, dst kernels.Mat) (bool, Fallback) {
	own, rows := r.graph.own, r.graph.rows
	a, state := &r.steps[0], n.state
	scale := float32(0)
	if r.o.Fresh {
		scale = r.inverseRoot(1, n.Width)
		if !isFinite(scale) {
			return false, NotFinite
		}
		if scale == 0 {
			return false, none
		}
		kernels.ScaleRow(r.change[:rows*n.Width], scale)
		r.freshInput(n, a, r.state(n.state))
		r.finish(n, a, r.state(n.state), own)
		state = a.state
	} else {
		if !n.canRead(r.o) {
			return false, none
		}
		_, scales := r.slot(n, n.slots(r.o.Window)-1)
		if scale = scales[1]; scale == 0 {
			return false, none
		}
	}
	w := matricesOf(n.weights, n.Width)
	h := kernels.HostMat(rows-own, hidden, r.projected)
	s := r.stateWidth()
	for v := own; v < rows; v++ {
		copy(r.projected[(v-own)*hidden:(v-own+1)*hidden], state[v*s:])
	}
	r.o.Team.MatMulBiasReLUDropout(dst, h, w.readout, w.shift, false, nil)
	d := n.Width
	for g := range rows - own {
		out, base := dst.Host()[g*d:(g+1)*d], r.base[(own+g)*d:(own+g+1)*d]
		by := r.amplitude(own+g) / scale
		for j, x := range base {
			out[j] = x + by*out[j]
		}
	}
	return true, none
}

// amplitude returns the factor of the predicted change of row v, in units of the root of the
// mean square of known changes.
func (r *recurrent) amplitude(v int) float32 {
	switch {
	case r.age[v] == 0 || r.epochs[v] == 0:
		return 0
	case r.o.Fresh:
		return 1
	}
	return r.age[v]
}

// freshInput sets U to that of base and its change, which has been scaled.
func (r *recurrent) freshInput(n *network, a *activation, state kernels.Mat) {
	_, scales := r.slot(n, n.slots(r.o.Window)-1)
	rows, size := r.graph.rows, r.graph.rows*n.Width
	change := kernels.HostMat(rows, n.Width, r.change[:size])
	r.input(n, a, state, kernels.HostMat(rows, n.Width, r.base[:size]), scales[0], change, true)
}

// forget discards all rows and states. The weights remain.
func (r *recurrent) forget() {
	if r == nil {
		return
	}
	for _, n := range r.layers {
		if n != nil {
			n.forget()
		}
	}
}

func (n *network) forget() {
	clear(n.window)
	clear(n.state)
	n.counts[stepCount], n.counts[newestEpoch], n.counts[holds] = 0, 0, 0
}

package predict

import (
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

var (
	lstmGCNKind = kind{entry: entry{Name: "lstm-gcn", Help: "a learned LSTM whose gates are graph convolutions (GCRN, Seo et al. 2018), " +
		"of the rows that have arrived so far"}, cell: kernels.LSTM}
	gruGCNKind  = kind{entry: entry{Name: "gru-gcn", Help: "the same with a GRU"}, cell: kernels.GRU}
	lstmGATKind = kind{entry: entry{Name: "lstm-gat", Help: "an LSTM whose gates have attention over neighbours in place of their mean"},
		cell: kernels.LSTM, attends: true}
)

// recurrent predicts the change of rows of a layer with a recurrent cell for each vertex of a part
// and its ghosts. A step is taken when rows X of width d have arrived. D is their change since the
// step before (0 in the first step), and A the mean over neighbours in the part:
//
//	U = (X P, D P, h)
//	Z = U V + (A U) W + b;  (h, c) = cell(Z, (h, c))
//	Ĥ = H̃ + a (Φ R + r),  Φ = (X P, D P, h)
//
// a is the age of a ghost row H̃. X P and D P are divided by the root of their mean square. P is a
// fixed random projection. The gates' weights V, W and b are trained (online.go). The readout R and
// r is a ridge regression of the change of own rows (readout.go):
//
//   - "fresh": of their change until the current epoch, in each epoch and in each part.
//   - "past": of their change until the last training, of all parts.
//
// Design note: SAT trains all weights by gradient descent. A readout that few steps of Adam have
// trained before a refresh is worse than stale rows after it: rows then change in other directions.
// The regression has the least squared error for a state, and costs less than a step of Adam. Hidden
// rows span few directions, so that a random projection to 8 numbers describes them well.
type recurrent struct {
	o       *Options
	cell    kernels.Cell
	attends bool // attention in place of the mean
	graph   *partGraph
	layers  []*network

	base     []float32 // own rows of the ghosts' epochs [own x widest]
	epochs   []int32   // of rows, 0: none [rows]
	uniform  bool      // all epochs are equal
	age      []float32 // a, relative to the greatest or to an interval [rows]
	squares  []float64 // of X P and of D P [rows x 2]
	arrived  []float32 // X P [rows x hidden]
	m        []float32 // mean of U over neighbours [rows x columns]
	z        []float32 // [rows x Gates·hidden]
	next     []float32 // state after a step [rows x States·hidden]
	sampled  []uint32  // own rows: those to learn from, then those held out
	learned  int       // number of the former
	readout  readout
	training training

	// Arguments of the bodies of parallel loops, which are made once.
	assembling struct {
		n     *network
		epoch int
	}
	filling struct {
		n             *network
		scale, change float32 // factors of X P and D P
	}
	applying struct {
		dst, ghosts kernels.Mat
		first       int
	}
	attending struct {
		n *network
		m kernels.Mat
	}
	bodies struct{ base, squares, fill, design, apply, attend func(lo, hi int) }
}

// network has the weights ω and the state of a layer.
type network struct {
	*layer
	projection          []float32 // P [Width x hidden]
	weights, grad, best []float32 // V, W, b, and of attention a, b
	moments             []float32 // of Adam [2 x len(weights)]
	readout             []float32 // R, then r [terms x Width]
	scales              []float32 // see the constants
	projected           []float32 // X P of the last step [rows x hidden]
	features            []float32 // Φ [rows x columns]
	inputs              []float32 // U of the last step, with attention [rows x columns]
	state               []float32 // [rows x States·hidden]
	window              []float32 // sampled rows of the last steps, a ring of slots [Window]
	latest, earlier     []float32 // sums of regressions of past rows, of the last step and of those before [terms x (terms + Width)]
	held                []float32 // predicted ghosts, with Hold [Ghosts x Width]
	counts              []int32   // see the constants

	factor   []float64 // of the readout's Gram matrix [terms x terms]
	factored int32     // step of factor, 0: none
}

// Positions in network.counts.
const (
	stepCount   = iota // steps taken
	newestEpoch        // of the rows of the last step
	adamSteps
	lastTrained // steps taken before the last training
	trained     // number of trainings, at most 2
	fallsBack   // reason to use stale rows until the next training, a Fallback
	holds       // 1 if held has the predictions of the last training
	numCounts
)

// Positions in network.scales.
const (
	changeScale = iota // root of the mean square of D P, 0 in the first step
	gain               // of predictions from past rows
	lastGain           // the best one in the last training
	numScales
)

func newRecurrent(o *Options, k *kind, widest int) *recurrent {
	g, a := newPartGraph(o.Shard, k.attends, o.Arena), o.Arena
	floats := func(n int) []float32 { return mapped.Make[float32](a, n) }
	r := &recurrent{o: o, cell: k.cell, attends: k.attends, graph: g}
	r.base, r.age = floats(g.own*widest), floats(g.rows)
	r.epochs, r.squares = mapped.Make[int32](a, g.rows), mapped.Make[float64](a, 2*g.rows)
	r.arrived, r.m = floats(g.rows*hidden), floats(g.rows*columns)
	r.z, r.next = floats(g.rows*kernels.Gates*hidden), floats(g.rows*r.stateWidth())
	r.sampled, r.learned = sampleRows(SampledRows(o.Rows, widest, g.own), g.own, a)
	r.readout = newReadout(len(r.sampled), widest, a)
	r.training = r.newTraining(widest)
	r.bodies.base, r.bodies.squares, r.bodies.fill = r.baseRows, r.squareRows, r.fillRows
	r.bodies.design, r.bodies.apply, r.bodies.attend = r.designRows, r.applyRows, r.attendRows
	return r
}

func (r *recurrent) add(l *layer) {
	n, a, rows := &network{layer: l}, r.o.Arena, r.graph.rows
	floats := func(n int) []float32 { return mapped.Make[float32](a, n) }
	size := (2*columns + 1) * kernels.Gates * hidden
	if r.attends {
		size += 2 * columns
		n.inputs = floats(rows * columns)
	}
	n.projection = floats(l.Width * hidden)
	n.weights, n.grad, n.best, n.moments = floats(size), floats(size), floats(size), floats(2*size)
	n.readout, n.scales = floats(terms*l.Width), floats(numScales)
	n.projected, n.features, n.state = floats(rows*hidden), floats(rows*columns), floats(rows*r.stateWidth())
	n.window, n.counts = floats(r.o.Window*r.slotSize()), mapped.Make[int32](a, numCounts)
	n.factor = mapped.Make[float64](a, terms*terms)
	if !r.o.Fresh {
		n.latest, n.earlier = floats(terms*(terms+l.Width)), floats(terms*(terms+l.Width))
	}
	if r.o.Hold {
		n.held = floats(r.o.Plan.Ghosts * l.Width)
	}
	a.Fill(func() { n.initialise(r.cell, r.o.Seed) })
	for len(r.layers) <= l.Layer {
		r.layers = append(r.layers, nil)
	}
	r.layers[l.Layer] = n
}

// take takes a step if rows have arrived, and sets dst to the predicted ghost rows. It reports
// whether it has.
func (r *recurrent) take(l *layer, epoch int, view halo.View, dst kernels.Mat) (bool, Fallback) {
	n := r.layers[l.Layer]
	newest := r.findEpochs(view)
	if newest == 0 || !r.hasOwnRows(n) {
		return false, none
	}
	if due := int(n.counts[newestEpoch]); due == 0 || newest >= due+r.o.Timing.Interval {
		if !r.step(n, epoch, newest, view.Rows) {
			return false, NotFinite
		}
	}
	if r.o.Hold {
		reason := Fallback(n.counts[fallsBack])
		if reason != none || n.counts[holds] == 0 {
			return false, reason
		}
		copy(dst.Host(), n.held)
		return true, none
	}
	if !r.weigh(epoch) {
		return false, none
	}
	if reason, ok := r.canPredict(n, epoch); !ok {
		return false, reason
	}
	r.apply(n, dst, view.Rows)
	return true, none
}

// canPredict reports whether n has a readout, which it fits to fresh rows.
func (r *recurrent) canPredict(n *network, epoch int) (Fallback, bool) {
	if n.counts[stepCount] == 0 {
		return none, false
	}
	if r.o.Fresh {
		reason, ok := r.fitFresh(n, epoch)
		return reason, ok
	}
	reason := Fallback(n.counts[fallsBack])
	return reason, reason == none && n.scales[gain] > 0 && n.scales[changeScale] > 0
}

// hold stores predictions for an epoch, and for those until the next training. Fresh rows are those
// of the epoch before.
func (r *recurrent) hold(n *network, epoch int, view halo.View) {
	n.counts[holds] = 0
	if r.findEpochs(view) == 0 || !r.hasOwnRows(n) || !r.weigh(epoch) {
		return
	}
	reason, ok := r.canPredict(n, epoch-1)
	if r.o.Fresh {
		n.counts[fallsBack] = int32(reason)
	}
	if ok {
		r.apply(n, kernels.HostMat(r.o.Plan.Ghosts, n.Width, n.held), view.Rows)
		n.counts[holds] = 1
	}
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
	clear(n.projected)
	n.counts[stepCount], n.counts[newestEpoch], n.counts[holds], n.factored = 0, 0, 0, 0
}

package engine

import (
	"math"
	"slices"
	"time"

	"siafu/halo"
	"siafu/halo/predict"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// staleness measures the effect of stale ghosts on training, for --measure-staleness: a
// measured epoch runs along the exact route first, with the weights and the dropout of its
// training. It depends on routes and their sources' rows, not on the refresh policy. The
// zero value measures nothing. In mini-batches, each step of a measured epoch is measured
// (measure_batches.go).
//
// Design note: the exact pass precedes the training pass, because both write the same values.
// Users of a training pass (a checkpoint, a prediction of another pass) then find the same
// values as without measurements.
type staleness struct {
	every       int         // epochs between two measurements, 0: none
	predicts    bool        // ghost rows are predicted
	layers      []*measured // that have ghosts
	exact       []float32   // the gradient of the exact pass on this rank
	trained     []float32   // the gradient of training
	inExactPass bool        // during the exact pass
	epoch       int         // measured epoch, 0: none
	pass        int         // pass of the measured epoch whose rows are compared
	firstPass   int         // first such pass, whose gradient is compared
	// compared returns the exact rows to compare with the rows that a pass gathers in a layer, if any.
	compared func(l *measured, at halo.Slot) (exact []float32, ok bool)
	outside  outsideMeasurement // of mini-batches
}

// measured is a layer's ghosts in the current epoch.
type measured struct {
	layer, width     int
	exact            []float32 // rows of the exact pass [ghosts x width]; in mini-batches of all local vertices
	hostBuffer       []float32 // to fetch rows from device memory
	difference, norm float64   // squares: of H - H̃, of H
	received         float64   // square of the difference from the received rows, from which H̃ is predicted
	age, oldest      float64   // epochs: sum over used rows, maximum
	used             int       // rows
}

// Measured is the purpose of the memory for exact rows and gradients, in addition to those
// of training.
const Measured = "measurements of staleness"

// prepareMeasurement allocates the measurements, if requested and the route of training is not
// exact. Call it after the routes are connected.
func (s *lockstep) prepareMeasurement(e *Engine, a *mapped.Arena) {
	if e.Config.MeasureStaleness == 0 || s.routes.training == s.routes.exact && e.Config.Batches() == 0 {
		return
	}
	a = a.For(Measured)
	m := &staleness{
		every: e.Config.MeasureStaleness, predicts: e.Config.Predicts(), compared: wholeLayer,
		exact: mapped.Make[float32](a, e.Network.NumWeights()), trained: mapped.Make[float32](a, e.Network.NumWeights()),
	}
	s.stale = m
	if e.Config.Batches() > 0 {
		m.prepareOutside(e, a)
		return
	}
	for _, l := range s.routes.exact.graph.Shapes() {
		m.layers = append(m.layers, newMeasured(l, s.routes.exact.graph.Plan.Ghosts, a))
	}
}

// wholeLayer compares all ghosts of a layer. Differences of an earlier epoch are discarded.
func wholeLayer(l *measured, _ halo.Slot) ([]float32, bool) {
	l.difference, l.received, l.used, l.age, l.oldest = 0, 0, 0, 0, 0
	return l.exact, true
}

// measures reports whether the staleness of ghost rows is measured.
func (m *staleness) measures() bool { return m.every > 0 }

// newMeasured allocates exact rows of a layer.
func newMeasured(l halo.Shape, rows int, a *mapped.Arena) *measured {
	return &measured{layer: l.Layer, width: l.Width, exact: mapped.Make[float32](a, rows*l.Width)}
}

// of returns a layer that has ghosts.
func (m *staleness) of(layer int) *measured {
	return m.layers[slices.IndexFunc(m.layers, func(l *measured) bool { return l.layer == layer })]
}

// recordRows records the ghost rows that a pass will gather, from a source.
func (m *staleness) recordRows(o kernels.Ops, at halo.Slot, view halo.View, source halo.Source) error {
	if m.epoch == 0 || m.pass != at.Epoch {
		return nil
	}
	if p, ok := source.(*predict.Source); ok {
		view = p.Predicted(at, view)
	}
	l := m.of(at.Layer)
	rows := kernels.Fetch(o, view.Rows, &l.hostBuffer)
	if m.inExactPass {
		copy(l.exact, rows)
		return nil
	}
	exact, ok := m.compared(l, at)
	if !ok {
		return nil
	}
	l.difference += distance(exact, rows)
	l.count(view, m.epoch)
	if p, ok := source.(receiver); ok {
		received, err := p.Received(at)
		if err != nil {
			return err
		}
		l.received += distance(exact, received.Rows.Host())
	}
	return nil
}

// receiver is a source that predicts rows from those of Received.
type receiver interface {
	Received(at halo.Slot) (halo.View, error)
}

var _ receiver = (*predict.Source)(nil)

// distance returns the square of the distance of rows from the exact ones.
func distance(exact, rows []float32) (sum float64) {
	for i, x := range exact {
		d := float64(x) - float64(rows[i])
		sum += float64(d * d)
	}
	return sum
}

// count adds the number of rows and their ages. A row that never arrived is as old as the run.
func (l *measured) count(view halo.View, epoch int) {
	rows := view.Rows.Rows
	l.used += rows
	add := func(rows, age int) {
		if rows > 0 {
			l.age, l.oldest = l.age+float64(rows*age), max(l.oldest, float64(age))
		}
	}
	view.ForEachBlock(func(b halo.Block) {
		add(b.Rows, epoch-b.Epoch)
		rows -= b.Rows
	})
	add(rows, epoch)
}

// begin marks the start of the exact pass of an epoch.
func (m *staleness) begin(epoch int) {
	m.epoch, m.pass, m.firstPass, m.inExactPass = epoch, epoch, epoch, true
}

// ended marks the end of the exact pass. It sets the difference H - H̃ of each layer to H, which
// holds if training uses no ghosts; otherwise recordRows overwrites the difference.
func (m *staleness) ended() {
	m.inExactPass = false
	for _, l := range m.layers {
		l.norm = 0
		for _, x := range l.exact {
			l.norm += float64(x) * float64(x)
		}
		l.difference, l.received, l.used, l.age, l.oldest = l.norm, 0, 0, 0, 0
	}
}

// summarize returns the results of all ranks: nil if the epoch was not measured, or if numbers
// are not finite. Collective over the graph ranks.
func (m *staleness) summarize(c world.Comm, epoch int) (*runfolder.Staleness, error) {
	if m.epoch != epoch {
		return nil, nil
	}
	var sums, oldest []float64
	for _, l := range m.layers {
		sums, oldest = append(sums, l.difference, l.norm, l.age, float64(l.used), l.received), append(oldest, l.oldest)
	}
	if err := world.SumFloat64s(c, sums); err != nil {
		return nil, err
	}
	if err := world.MaxFloat64s(c, oldest); err != nil {
		return nil, err
	}
	gradient, norm, err := m.gradientError(c)
	if err != nil {
		return nil, err
	}
	line := &runfolder.Staleness{GradientError: gradient, GradientNorm: norm}
	gradient += norm
	for _, at := range m.layers {
		s := sums[5*len(line.Layers):]
		found := runfolder.LayerStaleness{
			Layer: at.layer + 1, Difference: math.Sqrt(s[0]), Relative: relative(s[0], s[1]),
			MeanAge: s[2] / max(s[3], 1), MaxAge: int(oldest[len(line.Layers)]), Ghosts: int64(s[3]),
		}
		if m.predicts {
			stale := relative(s[4], s[1])
			found.StaleDifference, found.StaleRelative = math.Sqrt(s[4]), &stale
			gradient += found.StaleDifference
		}
		line.Layers = append(line.Layers, found)
		gradient += found.Difference
	}
	if math.IsNaN(gradient) || math.IsInf(gradient, 0) {
		return nil, nil
	}
	return line, nil
}

// gradientError returns ‖g̃ - g‖ / ‖g‖ and ‖g‖ of the gradients of all ranks. Collective.
func (m *staleness) gradientError(c world.Comm) (found, norm float64, err error) {
	for _, grad := range [][]float32{m.exact, m.trained} {
		if err := world.SumFloat32s(c, grad); err != nil {
			return 0, 0, err
		}
	}
	var difference, square float64
	for i, g := range m.exact {
		d := float64(m.trained[i]) - float64(g)
		difference, square = difference+float64(d*d), square+float64(g)*float64(g)
	}
	return relative(difference, square), math.Sqrt(square), nil
}

// relative returns the root of the ratio of two squares. It is finite if they are finite.
func relative(difference, norm float64) float64 {
	return math.Sqrt(difference / max(norm, math.SmallestNonzeroFloat32))
}

// measure runs the exact route for the epoch of a line, if a measurement is due. It changes nothing
// that training reads. Collective over the graph ranks.
func (t *trainer) measure(e *epochState) (leave bool, err error) {
	m, line := t.stale, &e.line
	if (line.Epoch-1)%m.every != 0 {
		return false, nil
	}
	return false, t.untimed(line, func() error {
		m.begin(line.Epoch)
		err := t.exactGradient(line.Epoch)
		m.ended()
		return err
	})
}

// untimed calls measure, whose time and traffic are not those of the epoch.
func (t *trainer) untimed(line *runfolder.Epoch, measure func() error) error {
	start, goOn := time.Now(), t.workers.pauseClocks()
	err := measure()
	t.routes.discardStats()
	goOn()
	now := time.Now()
	t.workers.clocks[0].record(evaluation, start, now)
	line.EvalSeconds += now.Sub(start).Seconds()
	return err
}

// exactGradient runs a forward and a backward pass along the exact route, with the dropout of a pass.
// It stores this rank's gradient. Collective over the graph ranks.
func (t *trainer) exactGradient(pass int) error {
	err := t.run(passRun{Pass: model.Pass{Epoch: pass, Train: true}, route: t.routes.exact, walk: t.routes.exact.epochWalk})
	copy(t.stale.exact, t.grad)
	return err
}

// recordTrained records this rank's gradient of a step of training, if it is compared.
func (m *staleness) recordTrained(step int, grad []float32) {
	if m.firstPass == step {
		copy(m.trained, grad)
	}
}

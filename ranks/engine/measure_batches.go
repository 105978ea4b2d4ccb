package engine

import (
	"siafu/halo"
	"siafu/halo/history"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// outsideMeasurement compares the rows of the history that mini-batches use with exact rows. Each
// step of a measured epoch begins with an exact forward pass with the weights of the step, without
// dropout. The first one is followed by an exact forward and backward pass with the dropout of the
// step, for the gradient. Errors are sums over the epoch's steps.
type outsideMeasurement struct {
	own    int                 // rows of own vertices in measured.exact, before the ghosts
	rows   *history.Store      // exact rows of own vertices, which other ranks pull
	epochs []uint32            // of pulled rows
	set    func() *history.Set // outside vertices of the current batch, if steps gather the history of all of them
	buffer []float32           // exact rows of the set
}

// prepareOutside allocates the measurements of mini-batches in a. connect completes them.
func (m *staleness) prepareOutside(e *Engine, a *mapped.Arena) {
	p := halo.NewPlan(e.Shard)
	m.compared = func(*measured, halo.Slot) ([]float32, bool) { return nil, false } // or useSets
	m.outside = outsideMeasurement{
		own: p.Own, epochs: mapped.Make[uint32](a, p.Ghosts),
		rows: history.New(history.Options{Comm: e.Peers, Shapes: e.historyShapes(), Plan: p, Team: e.packers}, a),
	}
	for _, l := range e.historyShapes() {
		m.layers = append(m.layers, newMeasured(l, p.Own+p.Ghosts, a))
	}
}

// connect prepares the exchange of exact rows. Collective over the graph ranks.
func (m *outsideMeasurement) connect(a *mapped.Arena) error {
	return m.rows.ExchangeSets([]history.Set{history.AllGhosts(len(m.epochs))}, a)
}

// exchange sets the exact rows of a layer from those of own vertices in a pass. Ghost rows come from
// their owners without a codec. Collective over the graph ranks.
func (m *outsideMeasurement) exchange(t *trainer, l *measured, p model.Pass) error {
	own := l.exact[:m.own*l.width]
	kernels.Read(t.adder, own, t.store.Emitted(l.layer, p))
	m.rows.Push(l.layer, p.Epoch, 0, 0, own)
	if err := m.rows.BeginPull(l.layer, make([]int, t.comm.Size())); err != nil {
		return err
	}
	return m.rows.EndPull(l.exact[m.own*l.width:], m.epochs)
}

// useSets compares the rows of the current batch's outside vertices, which set returns.
func (m *staleness) useSets(set func() *history.Set) {
	m.outside.set = set
	m.compared = func(l *measured, at halo.Slot) (exact []float32, ok bool) {
		if at.OutsideTraining { // a step counted as the epoch of an evaluation
			return nil, false
		}
		return m.outside.exactRows(l), true
	}
}

// exactRows returns the exact rows of the current batch's outside vertices, in their order, and adds
// the square of their norm.
func (m *outsideMeasurement) exactRows(l *measured) []float32 {
	set := m.set()
	m.buffer = m.buffer[:0]
	for _, v := range set.Own {
		m.buffer = append(m.buffer, l.row(int(v))...)
	}
	for _, g := range set.Ghosts {
		m.buffer = append(m.buffer, l.row(m.own+int(g))...)
	}
	l.norm += square(m.buffer)
	return m.buffer
}

// row returns the exact row of a local vertex.
func (l *measured) row(vertex int) []float32 { return l.exact[vertex*l.width : (vertex+1)*l.width] }

// observe adds a row of the history that a step uses: of a local vertex, of an epoch, 0 if it was never
// stored. It was predicted from received.
func (m *staleness) observe(layer, vertex int, used, received []float32, epoch int) {
	l := m.of(layer)
	exact := l.row(vertex)
	l.norm += square(exact)
	l.difference += distance(exact, used)
	l.received += distance(exact, received)
	age := float64(m.epoch - epoch)
	l.used, l.age, l.oldest = l.used+1, l.age+age, max(l.oldest, age)
}

// square returns the sum of the squares of x.
func square(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// measuresStep reports whether the steps of an epoch are measured.
func (m *staleness) measuresStep(epoch int) bool {
	return m.measures() && (epoch-1)%m.every == 0
}

// measureStep runs the exact passes for the k-th step of an epoch, if the epoch is measured; step counts
// the run's steps. Collective over the graph ranks.
func (t *trainer) measureStep(epoch, k, step int) error {
	m := t.stale
	if !m.measuresStep(epoch) {
		return nil
	}
	return t.untimed(&t.now.line, func() error {
		if m.epoch, m.pass = epoch, 0; k == 0 { // exact passes record no rows
			m.firstPass = step
			m.clear()
		}
		p := model.Pass{Epoch: step}
		err := t.forward(p, false)
		for _, l := range m.layers {
			if err == nil {
				err = m.outside.exchange(t, l, p)
			}
		}
		if k == 0 && err == nil {
			err = t.exactGradient(step)
		}
		m.pass = step
		return err
	})
}

// clear sets all sums to 0.
func (m *staleness) clear() {
	for _, l := range m.layers {
		l.norm, l.difference, l.received, l.used, l.age, l.oldest = 0, 0, 0, 0, 0, 0
	}
}

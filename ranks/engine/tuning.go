package engine

import (
	"sync/atomic"
	"time"

	"siafu/halo/codec"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
	"siafu/ranks/tune"
	"siafu/ranks/world"
	"siafu/ranks/world/link"
)

// tuning chooses the codec of a lockstep's exchanges while it trains, for
// --codec auto. The methods of a nil tuning do nothing.
type tuning struct {
	*Engine
	chooser *tune.Chooser
	s       *lockstep
	places  map[place]int  // numbers of exchanges
	hidden  []atomic.Int64 // by exchange: nanoseconds of tasks that run meanwhile, of all workers
	samples [][]float32    // by exchange: some of the rows that this rank sends
	list    []tune.Exchange
}

// place is where an exchange is in an epoch.
type place struct {
	layer    int
	backward bool
}

// sampleRows is how many rows of an exchange codecs are timed on.
const sampleRows = 512

// beginTuning begins to choose for the epochs from first on, if rows travel and
// a choice was asked for. Collective over the graph ranks.
func (r *Engine) beginTuning(s *lockstep, first int) error {
	if len(r.Codecs) == 1 {
		return nil
	}
	if s.exchange == nil {
		r.Reporter.Note("codec auto: no rows travel between ranks -> " + r.Codecs[0].Name() + "\n")
		return nil
	}
	t := &tuning{Engine: r, s: s, places: map[place]int{}}
	for l, layer := range s.intervals[0].net.Layers {
		if s.gathers(l) {
			t.add(place{l, false})
		}
		if s.gathers(l) && layer.GathersBack() {
			t.add(place{l, true})
		}
	}
	t.hidden, t.samples = make([]atomic.Int64, len(t.list)), make([][]float32, len(t.list))
	var names []string
	for _, c := range r.Codecs {
		names = append(names, c.Name())
	}
	rows, err := r.rowsBetween(s.graph)
	t.chooser = tune.NewChooser(names, tune.Traffic{Hosts: r.Peers.Hosts(), Rows: rows, Exchanges: t.list}, first, r.Config.Epochs)
	r.tuning, s.tuning = t, t
	return err
}

// Chosen is what an automatic choice has come to, "" where there was none.
func (r *Engine) Chosen() string {
	if len(r.Codecs) == 1 {
		return ""
	}
	if r.tuning == nil {
		return r.Codecs[0].Name() // no rows travel
	}
	return r.tuning.name()
}

func (t *tuning) add(p place) {
	t.places[p] = len(t.list)
	t.list = append(t.list, tune.Exchange{Width: t.s.graph.Layer(p.layer).Width, Backward: p.backward})
}

// rowsBetween is how many rows each rank sends each other one. Collective over
// the graph ranks.
func (r *Engine) rowsBetween(w *graphwork.Work) ([]int64, error) {
	n, me := r.Peers.Size(), r.Peers.Rank()
	rows := make([]int64, n*n)
	for q := range n {
		rows[me*n+q] = w.Plan.SendStart[q+1] - w.Plan.SendStart[q]
	}
	return rows, world.SumInt64s(r.Peers, rows)
}

// name is what rows travel through, "" where nothing is chosen.
func (t *tuning) name() string {
	if t == nil {
		return ""
	}
	return t.chooser.Codec()
}

// ran counts a task that can hide messages.
func (t *tuning) ran(task schedule.Task, p model.Pass, d time.Duration) {
	if t == nil || !p.Train {
		return
	}
	switch task.Stage {
	case schedule.GatherOwn:
		t.hides(place{task.Layer, false}, d)
	case schedule.GatherBack:
		t.hides(place{task.Layer, true}, d)
	}
}

func (t *tuning) hides(p place, d time.Duration) {
	if x, ok := t.places[p]; ok && t.Config.Mode == "pipe" {
		t.hidden[x].Add(int64(d))
	}
}

// sample keeps some of the rows that an exchange which has just begun sends.
func (t *tuning) sample(at place) {
	if t == nil || !t.s.pass.Train || !t.chooser.Gauging() {
		return
	}
	x, rows := t.places[at], t.s.exchange.Leaving()
	n := min(rows.Len, sampleRows)
	t.samples[x] = t.samples[x][:0]
	for i := range n {
		t.samples[x] = append(t.samples[x], rows.Row(i*rows.Len/n)...)
	}
}

// after takes the seconds of an epoch that has ended and sets the codec of the
// next. Collective over the graph ranks.
func (t *tuning) after(seconds float64) error {
	if t == nil {
		return nil
	}
	gauging := t.chooser.Gauging()
	report, due := t.chooser.Epoch(seconds)
	if !due {
		return nil
	}
	if gauging {
		if err := t.gauge(); err != nil {
			return err
		}
	}
	agreed := append([]float64{report}, t.takeHidden()...)
	for i := range agreed[1:] {
		agreed[1+i] = -agreed[1+i] // the least, among largest
	}
	if err := world.MaxFloat64s(t.Peers, agreed); err != nil {
		return err
	}
	for i := range agreed[1:] {
		agreed[1+i] = -agreed[1+i]
	}
	if said := t.chooser.Agreed(agreed[0], agreed[1:]); said != "" {
		t.Reporter.Note(said + "\n")
	}
	t.s.exchange.Use(t.codec(t.chooser.Codec()))
	return nil
}

// takeHidden is the seconds that each exchange's messages were hidden since the
// last call.
func (t *tuning) takeHidden() []float64 {
	seconds := make([]float64, len(t.hidden))
	for x := range t.hidden {
		seconds[x] = time.Duration(t.hidden[x].Swap(0)).Seconds() / float64(len(t.s.workers.clocks))
	}
	return seconds
}

func (t *tuning) codec(name string) codec.Codec {
	for _, c := range t.Codecs {
		if c.Name() == name {
			return c
		}
	}
	panic("engine: a codec is chosen that is no candidate")
}

// gauge measures links, and the candidates on the rows of the last epoch.
// Collective over the graph ranks.
func (t *tuning) gauge() error {
	links, err := link.Measure(t.Peers)
	if err != nil {
		return err
	}
	g := newGauge(t.packers)
	costs := make([][]tune.Cost, len(t.Codecs))
	var flat []float64
	for i, c := range t.Codecs {
		costs[i] = make([]tune.Cost, len(t.list))
		for x, e := range t.list {
			k := g.cost(c, t.samples[x], e)
			flat = append(flat, k.Encode, k.Decode, k.Size)
		}
	}
	if err := world.MaxFloat64s(t.Peers, flat); err != nil {
		return err
	}
	for i := range costs {
		for x := range costs[i] {
			at := 3 * (i*len(t.list) + x)
			costs[i][x] = tune.Cost{Encode: flat[at], Decode: flat[at+1], Size: flat[at+2]}
		}
	}
	t.chooser.Gauge(links, costs)
	t.takeHidden() // of an epoch that ran for the first time
	return nil
}

package engine

import (
	"time"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/ranks/tune"
	"siafu/ranks/world"
)

// tuning chooses the codec of an exchange while a run trains, for --codec auto.
// It is the exchange's Observer.
type tuning struct {
	e        *Engine
	chooser  *tune.Chooser
	exchange *halo.Exchange
	seen     map[exchangeKey]*observed // of the measuring epoch
}

// exchangeKey identifies an exchange in an epoch.
type exchangeKey struct {
	layer    int
	backward bool
}

// observed is the measurement of an exchange with uncoded rows.
type observed struct {
	sample         codec.Rows // at most sampleRows of the sent rows
	out, in        float64    // bytes sent and received
	travel, waited time.Duration
}

// sampleRows is the number of rows of an exchange on which codecs are timed.
const sampleRows = 512

// beginTuning starts the choice for the epochs from first on, if rows are exchanged and the
// codec is auto. It returns what the choice does after an epoch.
func (e *Engine) beginTuning(s *lockstep, first int) hooks {
	if len(e.Codecs) == 1 {
		return nil
	}
	if !s.routes.connected() {
		e.Reporter.Note("codec auto: no rows travel between ranks -> " + e.Codecs[0].Name() + "\n")
		return nil
	}
	var names []string
	for _, c := range e.Codecs {
		names = append(names, c.Name())
	}
	t := &tuning{e: e, chooser: tune.NewChooser(names, e.Config.SettledCodec, first, e.Config.Epochs), exchange: s.routes.exact.exchange,
		seen: map[exchangeKey]*observed{}}
	if plan := e.Config.Recorded.Codecs; len(plan) > 0 {
		t.chooser.Follow(plan)
	}
	t.exchange.Observe(t)
	t.use()
	return hooks{t.endEpoch}
}

// ChosenCodec returns the result of an automatic choice, "" if there was none.
func (e *Engine) ChosenCodec() string {
	if len(e.Codecs) > 1 && e.codec.current == "" {
		return e.Codecs[0].Name() // no rows are exchanged
	}
	return e.codec.current
}

// chosenCodec has the names of the current codec of a tuning and of the one on which it has settled, "" if
// there is none.
type chosenCodec struct{ current, settled string }

// use sets the codec of the next exchanges.
func (t *tuning) use() {
	c := t.e.Codecs[t.chooser.Current()]
	t.exchange.Use(c)
	if t.e.codec.current = c.Name(); t.chooser.Settled() {
		t.e.codec.settled = c.Name()
	}
}

// Leaving implements halo.Observer. It stores some of the rows.
func (t *tuning) Leaving(k halo.Key, rows codec.Rows, arriving int) {
	if k.OutsideTraining || !t.chooser.Measuring() {
		return
	}
	n := min(rows.Len, sampleRows)
	o := &observed{out: float64(4 * rows.Len * rows.Cols), in: float64(4 * arriving * rows.Cols)}
	o.sample = codec.Rows{X: make([]float32, 0, n*rows.Cols), Cols: rows.Cols, Len: n}
	for i := range n {
		o.sample.X = append(o.sample.X, rows.Row(i*rows.Len/n)...)
	}
	t.seen[exchangeKey{k.Layer, k.Backward}] = o
}

// Arrived implements halo.Observer.
func (t *tuning) Arrived(k halo.Key, travel, waited time.Duration) {
	if o, ok := t.seen[exchangeKey{k.Layer, k.Backward}]; ok && !k.OutsideTraining {
		o.travel, o.waited = travel, waited
	}
}

// endEpoch records the seconds of an epoch and sets the codec of the next. It is a hook. Collective
// over the graph ranks.
func (t *tuning) endEpoch(e *epochState) (leave bool, err error) {
	measured := t.chooser.Measuring()
	seconds, due := t.chooser.Ended(e.line.Seconds)
	if !due {
		t.use()
		return false, nil
	}
	slowest := []float64{seconds} // this rank's, and after MaxFloat64s the maximum of all ranks
	if measured {
		if err := t.e.Peers.Barrier(); err != nil { // ranks encode at the same time
			return false, err
		}
		for _, c := range t.e.Codecs {
			slowest = append(slowest, t.exchangeSeconds(c))
		}
		clear(t.seen)
	}
	if err := world.MaxFloat64s(t.e.Peers, slowest); err != nil {
		return false, err
	}
	if said := t.chooser.Agreed(slowest[0], slowest[1:]); said != "" {
		t.e.Reporter.Note(said + "\n")
	}
	t.use()
	return false, nil
}

// exchangeSeconds estimates this rank's seconds for the exchanges of the measuring epoch with a
// codec. A transfer that caused no wait was overlapped by other work. With fewer bytes it would also
// be overlapped.
func (t *tuning) exchangeSeconds(c codec.Codec) (seconds float64) {
	for p, o := range t.seen {
		cost := codec.Measure(t.e.packers, c, o.sample, p.backward)
		seconds += cost.Work(o.out, o.in)
		if o.waited > 0 {
			seconds += codec.Exposed(cost.Size*o.travel.Seconds(), (o.travel - o.waited).Seconds())
		}
	}
	return seconds
}

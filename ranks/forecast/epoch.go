package forecast

import (
	"siafu/graph/partition"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/ranks/graphwork"
)

// Rates are the measured costs of an epoch's work on a host with all its threads.
type Rates struct {
	Row      float64         // seconds of tensor work per vertex
	Edge     map[int]float64 // by layer: seconds to gather along an edge
	Backward map[int]float64 // by layer: seconds to return a gradient along an edge
	Codec    codec.Cost
	Predict  map[int]predict.Cost // by width of rows
	Disk     float64              // bytes/s that a host reads and writes; 0: no disk limits an epoch
}

// Epoch has the estimated seconds of a training epoch by kind of work. All hosts are assumed
// equal to the measured one. Every exchange waits for the slowest rank.
type Epoch struct {
	Tensor      float64 `json:"tensor_seconds"`
	Gather      float64 `json:"gather_seconds"`
	Codec       float64 `json:"codec_seconds"`
	Predict     float64 `json:"predict_seconds,omitempty"` // predictions of ghost rows, except in mini-batches
	Rows        float64 `json:"row_seconds"`               // exchange of ghost rows
	Pairs       float64 `json:"pair_seconds,omitempty"`    // exchange of embeddings of pairs' ends, in link prediction
	Weights     float64 `json:"weight_seconds"`            // exchange of weights and gradients
	Exposed     float64 `json:"exposed_seconds"`           // part of Rows that gathers along own edges do not hide
	Disk        float64 `json:"disk_seconds,omitempty"`    // reading and writing of the scratch file, at the same time as the rest
	Sequential  float64 `json:"nopipe_seconds"`            // an epoch without overlap
	Overlapping float64 `json:"pipe_seconds"`              // an epoch with overlap
}

// Compute returns the seconds of an epoch without communication.
func (e Epoch) Compute() float64 { return e.Tensor + e.Gather + e.Codec + e.Predict }

// Seconds returns the seconds of an epoch in a mode of train.
func (e Epoch) Seconds(mode string) float64 {
	if mode == "nopipe" {
		return e.Sequential
	}
	return e.Overlapping
}

// Epoch estimates an epoch on the given partition.
func (f *Forecast) Epoch(parts []partition.RankReport, r Rates, l Link) Epoch {
	share := l.shared(f.Graph)
	t := f.Work(parts, r, share, func(e Exchange) float64 { return f.rows(e, parts, l) })
	if f.Graph > 1 || f.Servers > 0 {
		t.Weights = (1 + f.corrections()) * f.weightSeconds(l)
	}
	t.Pairs = f.pairSeconds(parts, l)
	t.Disk = f.diskSeconds(parts, r, float64(share))
	others := t.Pairs + t.Weights
	t.Sequential, t.Overlapping = max(t.Sequential+others, t.Disk), max(t.Overlapping+others, t.Disk)
	return t
}

// Work estimates an epoch without weights, pairs and files, in which the threads of a host work for
// share of the parts. travel returns the seconds of an exchange of ghost rows without overlap.
func (f *Forecast) Work(parts []partition.RankReport, r Rates, share int, travel func(Exchange) float64) (t Epoch) {
	sent, _ := f.Config.Ghosts().Share(f.Config.Epochs)
	more := f.corrections()
	for _, p := range parts {
		t.Tensor = max(t.Tensor, (1+more)*float64(share)*r.Row*(float64(p.Vertices)+waits*f.ghostRows(p)))
	}
	f.computedGathers(&t, 1+more, parts, r, float64(share))
	f.passes(&t, f.Exchanges(), 1, sent, parts, r, float64(share), travel)
	if more > 0 {
		f.passes(&t, f.exchanges(true), more, more, parts, r, float64(share), travel)
	}
	t.Predict = float64(share) * f.predictSeconds(parts, r)
	t.Sequential, t.Overlapping = t.Compute()+t.Rows, t.Compute()+t.Exposed
	return t
}

// PredictedWidths returns the widths of the ghost rows that an epoch predicts, one for each layer:
// none without --predict, and in mini-batches.
func (f *Forecast) PredictedWidths() (list []int) {
	if !f.Config.Predicts() || f.Config.Batches() > 0 {
		return nil
	}
	for _, e := range f.exchanges(true) {
		if e.Backward { // rows with a gradient depend on weights
			list = append(list, e.Width)
		}
	}
	return list
}

// predictSeconds returns the seconds of an epoch's predictions.
func (f *Forecast) predictSeconds(parts []partition.RankReport, r Rates) (seconds float64) {
	for _, width := range f.PredictedWidths() {
		timing, cost := f.Config.Ghosts().Timing(), r.Predict[width]
		fits, stale := timing.Stale()
		most, cells := int64(0), int64(0)
		for _, p := range parts {
			most, cells = max(most, p.Ghosts), max(cells, p.Vertices+p.Ghosts)
		}
		if f.Config.TrainsPredictor() {
			fits = stale // a regression is over rows of all ages
			seconds += float64(cells)*cost.Step/float64(timing.Interval) + cost.Train/float64(max(f.Config.PredictEvery, 1))
		}
		seconds += fits*cost.Fit + stale*float64(most)*cost.Row
	}
	return seconds
}

// passes adds the gathers of a number of passes, and their exchanges. sent is the number of
// exchanges that send rows, which a refresh policy may make smaller than passes.
func (f *Forecast) passes(t *Epoch, list []Exchange, passes, sent float64, parts []partition.RankReport, r Rates, share float64,
	travel func(Exchange) float64) {
	for _, e := range list {
		var own, all, work float64
		for _, p := range parts {
			hidden, rest := f.along(e, p)
			edge := f.edge(e, p, r)
			own, all = max(own, passes*share*(edge*hidden+f.besides(e, p, r))), max(all, passes*share*edge*(hidden+rest))
			work = max(work, sent*share*f.codecSeconds(e, p, r))
		}
		rows := sent * travel(e)
		t.Gather += all
		t.Codec += work
		t.Rows += rows
		t.Exposed += codec.Exposed(rows, own)
	}
}

// computedGathers adds the gathers of layers that exchange nothing, along edges into own vertices and
// into ghosts.
func (f *Forecast) computedGathers(t *Epoch, passes float64, parts []partition.RankReport, r Rates, share float64) {
	for _, e := range f.computed() {
		most := 0.
		for _, p := range parts {
			own, rest := f.along(e, p)
			most = max(most, passes*share*f.edge(e, p, r)*(own+rest+waits*f.ghostEdges(e.Layer, p)))
		}
		t.Gather += most
	}
}

// codecSeconds returns the seconds of a rank to encode and decode the rows of an exchange.
func (f *Forecast) codecSeconds(e Exchange, p partition.RankReport, r Rates) float64 {
	out, in := float64(floats(e.Sent(p.SendRows), int64(e.Width))), float64(floats(e.Sent(p.Ghosts), int64(e.Width)))
	if e.Backward {
		out, in = in, out
	}
	return r.Codec.Work(out, in)
}

// along returns the number of edges that an exchange's gather reads on a rank, self loops
// included: own edges, whose ends the rank owns, and the rest.
func (f *Forecast) along(e Exchange, p partition.RankReport) (own, rest float64) {
	n, edges, cut := float64(p.Vertices), float64(p.Edges), float64(p.Cut)
	if e.Backward && e.Layer == f.Net.Layers()-1 && f.trainedApart(p) {
		into := float64(p.TrainEdges)
		cut *= into / max(edges, 1)
		edges = into
	}
	return edges - cut + n, cut
}

// trainedApart reports whether the last layer's backward gather reads only edges into training
// vertices.
func (f *Forecast) trainedApart(p partition.RankReport) bool {
	var back []bool
	for _, g := range f.foot.Gathers {
		back = append(back, g.Backward)
	}
	_, apart := graphwork.Reverse(back, f.Directed, p.TrainEdges, p.Edges)
	return apart
}

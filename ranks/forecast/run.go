package forecast

import (
	"math"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
)

// Run has the properties of a run that are known before it starts.
type Run struct {
	Config   config.Config
	Net      model.Spec // with the orders of its products
	Vertices int64      // of the dataset
	Edges    int64      // of the dataset
	Directed bool       // the dataset stores out-edges separately
	Weighted bool       // its edges have weights
	EdgeDim  int        // features per edge
	Sparse   bool       // its features are sparse
	Half     bool       // its features are bfloat16
	Slots    int        // floats per weight of the optimiser
	Graph    int        // graph ranks, or parts if ranks carry several, or pipelines
	Servers  int
	Predicts bool              // predict once, without training
	Targets  int               // columns of labels for multi-label classification and regression, else 0
	Labels   bool              // the targets are copied: classes as labels with one column each, or scaled
	Links    *graph.LinkCounts // of link prediction, else nil
	// Runs is the number of pairs of a vertex and a relation of edges into it, 0 without relations.
	Runs    int64
	Triples bool          // the edges of Links have relations
	Limit   int64         // memory of a rank's part with Config.Scratch, in bytes; 0: as little as possible
	Whole   bool          // the only rank uses the dataset's edges and features (shard.Shard.Whole)
	Codecs  []codec.Codec // of ghost rows: the configured codec first, then those that auto may choose
}

// Forecast has the estimates for a Run with any partitioning.
type Forecast struct {
	Run
	foot  model.Footprint
	batch model.Footprint // of mini-batches, if any
	ops   kernels.Ops     // shapes only, computes nothing
}

// New sketches small networks with the run's shapes. It takes milliseconds and a constant amount
// of memory.
func New(r Run) *Forecast {
	f := &Forecast{Run: r, foot: r.Net.Footprint(r.Sparse, engine.Memory(r.Config, r.Graph)), ops: kernels.NewTeam(1)}
	switch b := r.Config.Batching(); {
	case b.Draws():
		f.batch = r.Config.BatchNetwork(r.Net).Footprint(false, model.InStep)
	case b.Count > 0:
		f.batch = r.Net.Footprint(r.Sparse && b.Kind != config.Variates, model.InStep)
	}
	return f
}

// Exchange is one exchange of ghost rows in an epoch.
type Exchange struct {
	Layer, Width int
	Backward     bool // gradients of ghosts are sent to their owners

	Computed float64 // fraction of the ghosts whose rows are computed instead
}

// Sent returns the number of rows that an owner sends to a rank, of those that are ghosts there.
func (e Exchange) Sent(rows int64) int64 { return rows - int64(math.Round(e.Computed*float64(rows))) }

// Exchanges returns the exchanges of a training epoch, in order. If ÂX is cached, the first
// layer's exchange is not included, because it runs once. Fetches of sampled mini-batches
// depend on the samples, and are not included.
func (f *Forecast) Exchanges() []Exchange {
	if f.Config.Alone() || f.Config.Batching().Draws() {
		return nil
	}
	return f.exchanges(f.Config.Batches() == 0 && f.Config.Returns())
}

// exchanges returns those of a pass over the whole graph.
func (f *Forecast) exchanges(returns bool) (list []Exchange) {
	for l, g := range f.foot.Gathers {
		if g.Width > 0 && !f.computesGhosts(l) {
			list = append(list, Exchange{l, g.Width, false, f.computedShare(l)})
		}
	}
	for l := len(f.foot.Gathers) - 1; l >= 0; l-- {
		if g := f.foot.Gathers[l]; g.Backward && returns && !f.computesGhosts(l) {
			list = append(list, Exchange{l, g.Width, true, f.computedShare(l)})
		}
	}
	return list
}

// corrections returns the mean number of exact synchronous steps per epoch. Each costs an exact
// epoch.
func (f *Forecast) corrections() float64 {
	if f.Config.Epochs == 0 {
		return 0
	}
	return float64(f.Config.Corrections()) / float64(f.Config.Epochs)
}

// Gathers returns the aggregations of each layer in an epoch.
func (f *Forecast) Gathers() []model.Gathering { return f.foot.Gathers }

// maxWidth returns the width of the widest rows that an epoch exchanges.
func (f *Forecast) maxWidth() int64 {
	width := 0
	for _, g := range f.foot.Gathers {
		width = max(width, g.Width)
	}
	return int64(width)
}

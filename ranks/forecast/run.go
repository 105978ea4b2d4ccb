package forecast

import (
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
	Net      model.Spec // whose orders have been chosen
	Vertices int64      // of the dataset
	Directed bool       // the dataset keeps out-edges of its own
	Weighted bool       // its edges have weights
	EdgeDim  int        // features of an edge
	Sparse   bool       // its features are sparse
	Slots    int        // of the optimiser, floats a weight
	Graph    int        // graph ranks, or their parts where they carry several
	Servers  int
	Predicts bool              // once, and trains nothing
	Targets  int               // columns of the dataset's labels, where a vertex has several or numbers
	Labels   bool              // classes are trained as labels, a column each
	Links    *graph.LinkCounts // of link prediction, else nil
	Codecs   []codec.Codec     // that of rows, and those that may be tried in its place
}

// Forecast has the estimates for a Run with any partitioning.
type Forecast struct {
	Run
	foot  model.Footprint
	batch model.Footprint // where there are mini-batches
	ops   kernels.Ops     // that nothing computes with
}

// New sketches small networks of the run's shapes; it takes milliseconds, and
// memory for nothing that is in proportion to them.
func New(r Run) *Forecast {
	f := &Forecast{Run: r, foot: r.Net.Footprint(r.Sparse, engine.Memory(r.Config)), ops: kernels.NewTeam(1)}
	switch b := r.Config.Batching(); {
	case b.Draws():
		f.batch = r.Config.BatchNetwork(r.Net).Footprint(false, model.InStep)
	case b.Count > 0:
		f.batch = r.Net.Footprint(r.Sparse, model.InStep)
	}
	return f
}

// Exchange is one exchange of rows between graph ranks in an epoch.
type Exchange struct {
	Layer, Width int
	Backward     bool // gradients of ghosts go to their owners
}

// Exchanges returns the exchanges of a training epoch, in order. If ÂX is cached, the first
// layer's exchange is not included, because it runs once. Fetches of sampled mini-batches
// depend on the samples, and are not included.
func (f *Forecast) Exchanges() []Exchange {
	if f.Config.Alone() || f.Config.Batching().Draws() {
		return nil
	}
	return f.exchanges(f.Config.Batches() == 0 && f.Config.Returns())
}

// exchanges are those of a pass over the whole graph.
func (f *Forecast) exchanges(returns bool) (list []Exchange) {
	for l, g := range f.foot.Gathers {
		if g.Width > 0 && !f.knows(l) {
			list = append(list, Exchange{l, g.Width, false})
		}
	}
	for l := len(f.foot.Gathers) - 1; l >= 0; l-- {
		if g := f.foot.Gathers[l]; g.Backward && returns && !f.knows(l) {
			list = append(list, Exchange{l, g.Width, true})
		}
	}
	return list
}

// knows reports whether layer l gathers from ghosts whose features are known.
func (f *Forecast) knows(l int) bool { return l == 0 && f.Net.KnownGhosts }

// corrections are how many exact steps of all ranks together there are after an epoch,
// in the mean of a run: each costs an exact epoch.
func (f *Forecast) corrections() float64 {
	if f.Config.Epochs == 0 {
		return 0
	}
	return float64(f.Config.Corrections()) / float64(f.Config.Epochs)
}

// Gathers returns the aggregations of each layer in an epoch.
func (f *Forecast) Gathers() []model.Gathering { return f.foot.Gathers }

// Footprint returns the memory of the network beside the graph.
func (f *Forecast) Footprint() model.Footprint { return f.foot }

// maxWidth returns the width of the widest rows that an epoch exchanges.
func (f *Forecast) maxWidth() int64 {
	width := 0
	for _, g := range f.foot.Gathers {
		width = max(width, g.Width)
	}
	return int64(width)
}

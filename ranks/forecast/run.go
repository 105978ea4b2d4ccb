package forecast

import (
	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/kernels/model"
	"siafu/ranks/config"
)

// Run is what is known of a run before it begins.
type Run struct {
	Net       model.Spec // whose orders have been chosen
	Directed  bool       // the dataset keeps out-edges of its own
	Sparse    bool       // its features are sparse
	Async     bool       // bounded asynchrony
	Recompute bool       // what layers make is made again for the way back
	Intervals func(vertices int) int
	Refresh   string // of ghosts, by policy
	Overlap   bool   // own edges are gathered while ghosts are under way
	HalfRows  bool   // rows are rounded to bfloat16 where they are gathered
	HalfKept  bool   // ÂX is kept in bfloat16
	Slots     int    // of the optimiser, floats a weight
	Staleness int
	Resumed   bool // from a checkpoint
	Initial   bool // weights come from a file
	Graph     int  // graph ranks, or their parts where they carry several
	Servers   int
	Codec     codec.Codec
	Others    []codec.Codec // that may be tried in its place
}

// Forecast is what follows from a Run for any partitioning.
type Forecast struct {
	Run
	foot     model.Footprint
	row, col bool // edges have coefficients by destination, by source
}

// New sketches small networks of the run's shapes; it takes milliseconds, and
// memory for nothing that is in proportion to them.
func New(r Run) *Forecast {
	f := &Forecast{Run: r, foot: r.Net.Footprint(r.Sparse, r.memory())}
	if r.Net.Propagates() {
		a := mapped.NewArena()
		defer a.Free()
		degrees := []uint32{1, 1}
		c := r.Net.Coefficients(degrees, degrees, 1, a)
		f.row, f.col = len(c.Row) > 0, len(c.Col) > 0
	}
	return f
}

// memory is how long values stand.
func (r Run) memory() model.Memory {
	switch {
	case r.Async:
		return model.Apart
	case r.Recompute:
		return model.Recompute
	}
	return model.InStep
}

// Exchange is one exchange of rows between graph ranks in an epoch.
type Exchange struct {
	Layer, Width int
	Backward     bool // gradients of ghosts go to their owners
}

// Exchanges are those of an epoch's training, in their order. Where ÂX is kept
// that of the first layer has been made once and for all.
func (f *Forecast) Exchanges() []Exchange {
	if f.Refresh == config.Never {
		return nil
	}
	var list []Exchange
	for l, g := range f.foot.Gathers {
		if g.Width > 0 {
			list = append(list, Exchange{l, g.Width, false})
		}
	}
	for l := len(f.foot.Gathers) - 1; l >= 0; l-- {
		if g := f.foot.Gathers[l]; g.Backward {
			list = append(list, Exchange{l, g.Width, true})
		}
	}
	return list
}

// Gathers are what each layer wants of the graph in an epoch.
func (f *Forecast) Gathers() []model.Gathering { return f.foot.Gathers }

// Footprint is what the network takes beside the graph.
func (f *Forecast) Footprint() model.Footprint { return f.foot }

// maxWidth is the width of the widest rows that an epoch exchanges.
func (f *Forecast) maxWidth() int64 {
	width := 0
	for _, g := range f.foot.Gathers {
		width = max(width, g.Width)
	}
	return int64(width)
}

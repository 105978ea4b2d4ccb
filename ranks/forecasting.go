package ranks

import (
	"siafu/graph"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/forecast"
	"siafu/ranks/tune"
)

// Forecast is what is known of a run of c on a dataset before it begins, on so
// many graph ranks and servers. fits tells whether ÂX would fit into every
// rank's memory; choice says which orders of products follow.
func (c Config) Forecast(meta *graph.Meta, graphRanks, servers int, fits bool) (f *forecast.Forecast, choice string, err error) {
	list, err := c.codecs()
	if err != nil {
		return nil, "", err
	}
	o, err := kernels.NewOptimizer(c.optimizer())
	if err != nil {
		return nil, "", err
	}
	net := c.spec(meta.FeatureDim, meta.Classes)
	choice = c.choose(&net, meta, fits)
	return forecast.New(forecast.Run{
		Net: net, Directed: meta.Directed, Sparse: meta.FeatureKind == "sparse",
		Async: c.Mode == "async", Intervals: func(n int) int { return c.intervals(net, n) }, Overlap: c.Mode != "nopipe",
		HalfRows: c.Gather == "bf16", HalfKept: c.Features == "bf16", Slots: o.StateSlots(), Staleness: c.Staleness,
		Graph: graphRanks, Servers: servers, Codec: list[0], Others: list[1:],
	}), choice, nil
}

// codecs are those that rows may travel through, the first of which they begin
// with.
func (c Config) codecs() ([]codec.Codec, error) {
	names, err := tune.Candidates(c.Codec)
	if err != nil {
		return nil, err
	}
	if names == nil {
		names = []string{c.Codec}
	}
	list := make([]codec.Codec, len(names))
	for i, name := range names {
		if list[i], err = codec.ByName(name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// choose settles the orders of a network's products.
func (c Config) choose(net *model.Spec, meta *graph.Meta, fits bool) string {
	return net.Choose(model.Load{
		Vertices: meta.Vertices, Edges: meta.Edges, FeatureNNZ: sparseNNZ(meta), CacheFits: fits,
	}, model.Choices{Order: c.Order, CacheInput: c.CacheInput})
}

// KeepBytes is what ÂX of a rank's own vertices takes, with the blocks of
// columns in which it is made.
func (c Config) KeepBytes(own, ghosts int64, features int) int64 {
	size := int64(4)
	if c.Features == "bf16" {
		size = 2
	}
	return own*int64(features)*size + 4*(own+ghosts)*keptColumns*4
}

// Roles are the numbers of graph ranks and servers in a world of size ranks.
func (c Config) Roles(size int) (graphRanks, servers int, err error) {
	servers, err = c.servers(size)
	return size - servers, servers, err
}

// AvailableMemory is what this host can give without swapping, in bytes.
func AvailableMemory() int64 { return availableMemory() }

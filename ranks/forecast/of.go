package forecast

import (
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/size"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
)

// Of returns the known properties of a run of c on a dataset. graph is the number of graph ranks,
// or of parts if ranks carry several. fits reports whether ÂX would fit into every rank's memory;
// choice is the basis for the orders of products.
func Of(c config.Config, meta *graph.Meta, graphRanks, servers int, fits bool) (f *Forecast, choice string, err error) {
	o, err := kernels.NewOptimizer(c.OptimizerConfig())
	if err != nil {
		return nil, "", err
	}
	net := c.NetworkOf(meta)
	choice = c.Orders(&net, meta, fits)
	f, err = OfNetwork(c, net, meta, graphRanks, servers, o.StateSlots())
	return f, choice, err
}

// OfNetwork is like Of, with a given network and an optimiser with the given number of floats per
// weight.
func OfNetwork(c config.Config, net model.Spec, meta *graph.Meta, graphRanks, servers, slots int) (*Forecast, error) {
	list, err := c.Codecs()
	if err != nil {
		return nil, err
	}
	if err := c.CheckGathers(meta, net); err != nil {
		return nil, err
	}
	graphRanks = c.Partitions(graphRanks)
	if lifetime := engine.Memory(c, graphRanks); c.Slices > 1 &&
		(lifetime&(model.InChain|model.Exchanged) != model.InChain || !net.Adds()) {
		return nil, fault.New(fault.Config, "train", "", "--memory slices=%d needs one graph rank, --memory scratch=DIR, --mode pipe, "+
			"no --recompute and no --measure-staleness, and a network whose layers add rows", c.Slices).
			Then("leave --memory slices=N out")
	}
	if err := c.Divide(meta.Train, int64(meta.Vertices), graphRanks); err != nil {
		return nil, err
	}
	run := Run{
		Config: c, Net: net, Vertices: meta.Vertices, Edges: meta.Edges, Directed: meta.Directed, Weighted: meta.Weighted, EdgeDim: meta.
			EdgeDim, Sparse: meta.FeatureKind == graph.SparseFeatures, Half: meta.FeatureKind == graph.HalfFeatures, Slots: slots,
		Graph: graphRanks, Servers: servers, Codecs: list, Links: meta.Links, Triples: meta.Relations != nil && net.Design.ScoreLayers == 0,
	}
	if meta.Relations != nil {
		for _, r := range meta.Relations.Relations {
			run.Runs += r.Targets
		}
	}
	if meta.Task == graph.MultiLabel || meta.Task == graph.Regression {
		run.Targets = meta.Classes
	}
	run.Labels = run.Targets == 0 && c.Task == graph.MultiLabel || meta.TargetScaling != nil
	return New(run), nil
}

// OfPrediction is like Of, for a trained network that only predicts.
func OfPrediction(c config.Config, net model.Spec, meta *graph.Meta, graphRanks int) (*Forecast, error) {
	f, err := OfNetwork(c, net, meta, graphRanks, 0, 0)
	if err != nil {
		return nil, err
	}
	f.Predicts = true
	return f, nil
}

// CachedInputBytes returns the bytes of a rank's cached input: ÂX, or all powers of features that
// net reads, and the blocks of columns during their computation.
func CachedInputBytes(c config.Config, net model.Spec, own, ghosts int64) int64 {
	each := int64(4)
	if c.Features == "bf16" {
		each = 2
	}
	return size.Sum(size.Product(own, int64(net.Dims[0]), int64(net.Powers().Cached()), each), 4*(own+ghosts)*engine.CachedColumns*4)
}

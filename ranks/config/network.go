package config

import (
	"siafu/graph"
	"siafu/graph/fault"
	"siafu/halo/codec"
	"siafu/kernels/model"
	"siafu/ranks/tune"
)

// Orders settles the orders of a network's products.
func (c Config) Orders(net *model.Spec, meta *graph.Meta, fits bool) string {
	nnz := int64(0)
	if meta.FeatureKind == "sparse" {
		nnz = meta.FeatureNNZ
	}
	choices := model.Choices{Order: c.Order, CacheInput: c.cacheInput()}
	if c.Batches() > 0 {
		choices = model.Choices{Order: "gather-first", CacheInput: "on"}
	}
	return net.Choose(model.Load{
		Vertices: meta.Vertices, Edges: meta.Edges, FeatureNNZ: nnz, CacheFits: fits,
	}, choices)
}

// cacheInput is what was asked for, and off where training and evaluations
// differ in their edges.
func (c *Config) cacheInput() string {
	if c.Refresh == Never {
		return "off"
	}
	return c.CacheInput
}

// Codecs are those that rows may travel through, the first of which they begin
// with.
func (c Config) Codecs() ([]codec.Codec, error) {
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

// Policies of refreshing ghosts; none in a run that does not train.
const (
	Always   = "always"
	Previous = "previous"
	Never    = "never"
)

// Exact tells whether passes that train use the rows of the same epoch.
func (c *Config) Exact() bool { return c.Refresh == Always || c.Refresh == "" }

// checkRefresh refuses what does not go together with ghosts that are not those
// of the epoch.
func (c *Config) checkRefresh() error {
	if c.MeasureStaleness > 0 && (c.Exact() || c.Tensor == TensorLambda) {
		return fault.New(fault.Usage, "train", "", "--measure-staleness=%d with --refresh=%s --tensor=%s", c.MeasureStaleness, c.Refresh, c.Tensor).
			Then("leave --measure-staleness out: it needs ghosts that may be stale, and tasks that run on the ranks")
	}
	if c.Exact() {
		return nil
	}
	refuse := func(flag, value, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--refresh=%s with --%s=%s", c.Refresh, flag, value).Then("%s", remedy)
	}
	switch list, _ := tune.Candidates(c.Codec); {
	case c.Mode == "async":
		return refuse("mode", c.Mode, "choose one of the two: intervals in bounded asynchrony use the newest rows that have come")
	case list != nil:
		return refuse("codec", c.Codec, "name the codec: nobody waits for rows, so that epochs do not show which one is fastest")
	case c.Refresh == Never && c.CacheInput == "on":
		return refuse("cache-input", c.CacheInput, "leave --cache-input out: evaluations gather along more edges than training does")
	}
	return nil
}

// checkAsync refuses what bounded asynchrony does not do.
func (c *Config) checkAsync() error {
	if c.Mode != "async" {
		if c.Staleness != 0 || c.SwitchToSync != 0 {
			return fault.New(fault.Usage, "train", "", "--staleness=%d --switch-to-sync=%g", c.Staleness, c.SwitchToSync).Then("they need --mode async")
		}
		return nil
	}
	if list, _ := tune.Candidates(c.Codec); list != nil {
		return fault.New(fault.Usage, "train", "", "--codec=%s with --mode async", c.Codec).
			Then("name the codec: epochs of single intervals do not show which one is fastest")
	}
	if rows, err := codec.ByName(c.Codec); err == nil {
		if _, fed := rows.(codec.Corrected); fed {
			return fault.New(fault.Usage, "train", "", "--codec=%s with --mode async", c.Codec).
				Then("leave +ef out: rows of an interval may be sent again before the next epoch")
		}
	}
	return nil
}

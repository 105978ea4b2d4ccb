package config

import (
	"strconv"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/halo/refresh"
	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/ranks/tune"
)

// Orders sets the orders of a network's products.
func (c Config) Orders(net *model.Spec, meta *graph.Meta, fits bool) string {
	nnz := int64(0)
	if meta.FeatureKind == "sparse" {
		nnz = meta.FeatureNNZ
	}
	choices := model.Choices{Order: c.Order, CacheInput: c.cacheInput(), Ghosts: c.ghostFeatures(), Lists: c.lists(meta, net)}
	if b := c.Batching(); b.Count > 0 && !b.Draws() {
		choices = model.Choices{Order: "gather-first", CacheInput: "on"}
	}
	net.InPlace = c.Tensor == "cpu" && !c.Asynchronous() // or other intervals may still read what it overwrites
	return net.Choose(model.Load{
		Vertices: meta.Vertices, Edges: meta.Edges, FeatureNNZ: nnz, CacheFits: fits,
	}, choices)
}

// lists reports whether rows can be gathered as lists: where the first layer's input is drawn, and
// as it is, along edges without weights.
func (c *Config) lists(meta *graph.Meta, net *model.Spec) bool {
	return c.Tensor == "cpu" && c.Gather != "bf16" && !(meta.Weighted && net.Weighs())
}

// cacheInput is what was asked for, and off where training and evaluations
// differ in their edges.
func (c *Config) cacheInput() string {
	if c.Alone() {
		return "off"
	}
	return c.CacheInput
}

// ghostFeatures is what was asked for, and sent where ranks are asynchronous, or rows of the
// first layer are to be those of other epochs or of some vertices.
func (c *Config) ghostFeatures() string {
	if !c.Exact() || c.Batching().Count > 0 || c.Mode == "async" {
		return "sent"
	}
	return c.GhostFeatures
}

// checkGhostFeatures refuses to keep what would not be used.
func (c *Config) checkGhostFeatures() error {
	if c.GhostFeatures != "kept" || c.ghostFeatures() == "kept" {
		return nil
	}
	return fault.New(fault.Usage, "train", "", "--ghost-features=kept with --mode=%s --refresh=%s --ghost-gradients=%s --batches=%d", c.Mode, c.Refresh, c.GhostGradients, c.Batching().Count).
		Then("leave --ghost-features out: cached ghost features need synchronous ranks with rows and gradients in each epoch")
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

// Ghosts returns the policy of refreshing ghost rows, which Validate has parsed. It is
// always if the run does not train.
func (c *Config) Ghosts() refresh.Policy {
	p, _ := refresh.Parse(c.Refresh)
	return p
}

// Alone reports whether training passes use no ghost rows.
func (c *Config) Alone() bool { return c.Ghosts().NoGhosts() }

// Returns reports whether gradients of ghost rows are returned to their owners.
func (c *Config) Returns() bool { return c.GhostGradients != "no" && c.Mode != Free }

// Exact reports whether training passes use ghost rows and gradients of the same epoch.
func (c *Config) Exact() bool { return c.Ghosts().Exact() && c.Returns() }

// checkRefresh refuses what does not go together with ghosts that are not those
// of the epoch.
func (c *Config) checkRefresh() error {
	policy, err := refresh.Parse(c.Refresh)
	if err == nil && c.MeasureStaleness > 0 && (c.Exact() || policy.Alternates() || c.Tensor == TensorLambda) {
		return fault.New(fault.Usage, "train", "", "--measure-staleness=%d with --refresh=%s --tensor=%s", c.MeasureStaleness, c.Refresh, c.Tensor).
			Then("leave --measure-staleness out: it needs ghosts that may be stale, and tensor tasks on the ranks")
	}
	if err != nil || c.Exact() {
		return err
	}
	what := "--refresh=" + c.Refresh
	if policy.Exact() {
		what = "--ghost-gradients=" + c.GhostGradients
	}
	refuse := func(flag, value, remedy string) error {
		return fault.New(fault.Usage, "train", "", "%s with --%s=%s", what, flag, value).Then("%s", remedy)
	}
	switch list, _ := tune.Candidates(c.Codec); {
	case c.Mode == Free:
		return c.checkFree()
	case c.Mode == "async":
		return refuse("mode", c.Mode, "choose one of the two: intervals in bounded asynchrony use the newest received rows")
	case policy.Samples() && c.PreAggregate == "on":
		return refuse("pre-aggregate", c.PreAggregate, "leave --pre-aggregate out: vertices are sampled one by one, but a sum has several")
	case policy.Alternates() && c.LocalEpochs > 0:
		return refuse("local-epochs", strconv.Itoa(c.LocalEpochs), "choose one of the two: both decide when ranks train alone")
	case policy.Alternates() && !c.Returns():
		return refuse("ghost-gradients", c.GhostGradients, "leave --ghost-gradients out: epochs with ghosts are exact")
	case list != nil:
		return refuse("codec", c.Codec, "name the codec: no rank waits for rows, so epoch times do not show the fastest codec")
	case c.Alone() && c.CacheInput == "on":
		return refuse("cache-input", c.CacheInput, "leave --cache-input out: evaluations gather along more edges than training does")
	}
	return nil
}

// checkAsync refuses what bounded asynchrony does not do.
func (c *Config) checkAsync() error {
	if c.Mode != "async" {
		if c.Mode != Free && c.DelayBound != 0 {
			return fault.New(fault.Usage, "train", "", "--delay-bound=%d", c.DelayBound).Then("set --mode free")
		}
		if c.Staleness != 0 || c.SwitchToSync != 0 {
			return fault.New(fault.Usage, "train", "", "--staleness=%d --switch-to-sync=%g", c.Staleness, c.SwitchToSync).Then("set --mode async")
		}
		if c.Linger != 1 {
			return fault.New(fault.Usage, "train", "", "--linger=%g", c.Linger).Then("set --mode async: in other modes a rank waits for all rows that it needs")
		}
		return nil
	}
	if list, _ := tune.Candidates(c.Codec); list != nil {
		return fault.New(fault.Usage, "train", "", "--codec=%s with --mode async", c.Codec).
			Then("name the codec: the epoch times of single intervals do not show the fastest codec")
	}
	if rows, err := codec.ByName(c.Codec); err == nil {
		if _, fed := rows.(codec.Corrected); fed {
			return fault.New(fault.Usage, "train", "", "--codec=%s with --mode async", c.Codec).
				Then("leave +ef out: an interval may send its rows again before the next epoch")
		}
	}
	return nil
}

package config

import (
	"fmt"
	"strings"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/halo/refresh"
	"siafu/kernels/model"
	"siafu/ranks/tune"
)

// Orders sets the orders of a network's products.
func (c Config) Orders(net *model.Spec, meta *graph.Meta, fits bool) string {
	nnz := int64(0)
	if meta.FeatureKind == graph.SparseFeatures {
		nnz = meta.FeatureNNZ
	}
	choices := model.Choices{Order: c.Order, CacheInput: c.cacheInput(), Ghosts: c.recomputeGhosts(), Lists: c.lists(meta, net)}
	if b := c.Batching(); b.Count > 0 && !b.Draws() {
		choices = model.Choices{Order: "gather-first", CacheInput: "on"}
	}
	net.Streams, net.Slices = c.Scratch != "", c.Slices
	net.WholeOutput = meta.Task != graph.MultiClass || meta.Classes == 2 // areas under ROC curves need all scores
	net.InPlace = c.Tensor == "cpu" && !c.Asynchronous()                 // asynchronous intervals may still read the overwritten rows
	return net.Choose(model.Load{
		Vertices: meta.Vertices, Edges: meta.Edges, FeatureNNZ: nnz, CacheFits: fits,
	}, choices)
}

// FetchesFiles reports whether the run reads parts of files before its tasks need them.
func (c *Config) FetchesFiles() bool {
	return c.LimitsMemory() && c.Tensor == "cpu" && c.Batches() == 0 && (c.Mode == "pipe" || c.Mode == "nopipe")
}

// LimitsMemory reports whether the run has a limit of memory.
func (c *Config) LimitsMemory() bool { return c.Memory != "" || c.Scratch != "" }

// lists reports whether rows can be gathered as lists of non-zeros: on the CPU, without rounding,
// and along edges without weights.
func (c *Config) lists(meta *graph.Meta, net *model.Spec) bool {
	return c.Tensor == "cpu" && c.Gather != "bf16" && !(meta.Weighted && net.Weighs())
}

// cacheInput returns the resolved --cache-input. It is off if training and evaluations gather along
// different edges.
func (c *Config) cacheInput() string {
	if c.Alone() {
		return "off"
	}
	return c.CacheInput
}

// recomputeGhosts returns --recompute-ghosts, with all rows received if ranks are asynchronous,
// or if an epoch gathers from only some ghosts or none. Stale rows are computed only on request.
func (c *Config) recomputeGhosts() string {
	p := c.Ghosts()
	if c.Asynchronous() || c.Batching().Count > 0 || p.NoGhosts() || p.Samples() || p.Alternates() ||
		c.RecomputeGhosts == "auto" && !c.Exact() {
		return "none"
	}
	return c.RecomputeGhosts
}

// ghostSteps is the number of fractions of a layer that GhostChoices returns for each layer.
const ghostSteps = 4

// GhostChoices returns the values of --recompute-ghosts among which auto chooses for ranks on several
// hosts, with more and more computed rows: from the first value, which needs no measurement, to all
// layers, in quarters of a layer. fits is that of Orders. There is no choice, and no value, with
// other values than auto, on GPUs, and with stale rows.
func (c Config) GhostChoices(net model.Spec, meta *graph.Meta, fits bool) (list []string) {
	if c.RecomputeGhosts != "auto" || !c.Exact() || c.Tensor == TensorCUDA {
		return nil
	}
	c.Orders(&net, meta, fits)
	least := net.LocalLayers
	c.RecomputeGhosts = "all"
	c.Orders(&net, meta, fits)
	if least == net.LocalLayers {
		return nil
	}
	for k := ghostSteps * least; k <= ghostSteps*net.LocalLayers; k++ {
		if list = append(list, fmt.Sprintf("layers:%g", float64(k)/ghostSteps)); k == 0 {
			list[0] = "none"
		}
	}
	return list
}

// Codecs returns the possible codecs of ghost rows. A run begins with the first one.
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

// Predicts reports whether training passes predict ghost rows from stale ones.
func (c *Config) Predicts() bool { return c.Predict != "" && c.Predict != predict.Off }

// Averages reports whether rows of a history are moving averages.
func (c *Config) Averages() bool {
	_, ok := predict.MomentumShare(c.Predict)
	return ok
}

// TrainsPredictor reports whether the predictor of ghost rows is trained online.
func (c *Config) TrainsPredictor() bool { return predict.Learns(c.Predict) }

// sendsWhole reports whether ranks send the rows of hidden layers of a network before their dropout.
func (c *Config) sendsWhole(s model.Spec) bool {
	if !s.TakesWholeRows() || c.RefreshRows == "dropped" {
		return false
	}
	return c.RefreshRows == "whole" || c.Predicts() && c.Batches() == 0 && c.Tensor == "cpu" && c.Order != "apply-first" &&
		c.RecomputeGhosts != "all" && !strings.HasPrefix(c.RecomputeGhosts, "layers:")
}

// Alone reports whether training passes use no ghost rows.
func (c *Config) Alone() bool { return c.Ghosts().NoGhosts() }

// Returns reports whether gradients of ghost rows are returned to their owners.
func (c *Config) Returns() bool { return c.GhostGradients != "no" && c.Mode != Free }

// Exact reports whether training passes use ghost rows and gradients of the same epoch.
func (c *Config) Exact() bool { return c.Ghosts().Exact() && c.Returns() }

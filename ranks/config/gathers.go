package config

import (
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels/model"
)

// CheckGathers returns an error if options do not work with the dataset's edges.
func (c *Config) CheckGathers(meta *graph.Meta, net model.Spec) error {
	if net.Design.EdgeFeatures && !meta.Weighted {
		return fault.New(fault.Usage, "train", "", "%s needs edge weights, but the edges of %s have none", net.Kind, meta.Name).
			Then("use a dataset with edge weights, or train a model without edge weights")
	}
	if dim := net.Design.EdgeDim; dim > 0 && dim != meta.EdgeDim {
		return fault.New(fault.Usage, "train", "", "%s needs edges with %d features, but the edges of %s have %d", net.Kind,
			dim, meta.Name, meta.EdgeDim).
			Then("use a dataset with the edge features that the network was trained with")
	}
	if err := net.CheckBlocks(); err != nil {
		return fault.New(fault.Usage, "train", "", "--model %s has %v", net.Kind, err).
			Then("choose blocks=N that divides --hidden and, unless --jumping is set, the number of classes")
	}
	return situation{Config: c, meta: meta, net: net}.refuse("train", edgeConflicts)
}

// NetworkOf returns the network for a dataset.
func (c *Config) NetworkOf(meta *graph.Meta) model.Spec {
	net := c.Network(meta.FeatureDim, c.Outputs(meta))
	if net.Dynamic() {
		net.Design.EdgeDim, net.Design.EdgeFeatures = meta.EdgeDim, meta.Weighted && meta.EdgeDim == 0
	}
	if meta.Relations != nil && model.KindOf(net.Kind).Relational {
		net.Design.Relations = len(meta.Relations.Relations)
	}
	if meta.Task == graph.Links && c.LinkScore == linkPerceptron {
		net.Design.ScoreLayers, net.Design.ScoreHidden, net.ScoreDropout = c.LinkLayers, c.LinkHidden, c.LinkDropout
		if c.LinkDropout < 0 {
			net.ScoreDropout = c.Dropout
		}
	}
	if meta.Task == graph.Links && meta.Relations != nil && c.scoresTriples() {
		net.Design.Score, net.Design.ScoreRelations = model.TripleScore(c.LinkScore), meta.Relations.Scored()
	}
	return net
}

// IgnoredWeights names the edge weights, features and relations that a run's network ignores. It
// is empty if the network uses all of them.
func IgnoredWeights(meta *graph.Meta, net model.Spec) string {
	var list []string
	if meta.Weighted && !net.Weighs() {
		list = append(list, "weights")
	}
	if meta.EdgeDim > 0 && net.Design.EdgeDim == 0 {
		list = append(list, "features")
	}
	if meta.Relations != nil && len(meta.Relations.Relations) > 1 && !model.KindOf(net.Kind).Relational {
		list = append(list, "relations")
	}
	if list == nil {
		return ""
	}
	return "the edges of " + meta.Name + " have " + strings.Join(list, " and ") + "; " + net.Kind + " ignores them"
}

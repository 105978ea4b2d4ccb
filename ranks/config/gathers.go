package config

import (
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels/model"
)

// CheckGathers returns an error if options do not work with the maxima that a network
// gathers, or with edge weights that the network uses.
func (c *Config) CheckGathers(meta *graph.Meta, net model.Spec) error {
	if c.GPUsGather() && model.KindOf(net.Kind).Maximum {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --graph=%s with %s", c.Tensor, c.GraphWork, net.Kind).
			Then("choose --graph cpu: GPUs gather sums and attention, but not maxima")
	}
	if c.GPUsGather() && net.Dynamic() {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --graph=%s with %s", c.Tensor, c.GraphWork, net.Kind).
			Then("choose --graph cpu, or --model gat: GPUs have no kernel for scores that depend on both ends of an edge")
	}
	if net.Design.EdgeFeatures && !meta.Weighted {
		return fault.New(fault.Usage, "train", "", "%s needs edge weights, but the edges of %s have none", net.Kind, meta.Name).
			Then("use a dataset with edge weights, or train a model without edge weights")
	}
	if dim := net.Design.EdgeDim; dim > 0 && dim != meta.EdgeDim {
		return fault.New(fault.Usage, "train", "", "%s needs edges with %d features, but the edges of %s have %d", net.Kind, dim, meta.Name, meta.EdgeDim).
			Then("use a dataset with the edge features that the network was trained with")
	}
	if !meta.Weighted || !net.Weighs() {
		return nil
	}
	refuse := func(flag, value, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--%s=%s with the edge weights of %s", flag, value, meta.Name).
			Then("%s, or import the dataset with --drop-weights", remedy)
	}
	switch {
	case c.PreAggregate == "on":
		return refuse("pre-aggregate", c.PreAggregate, "leave --pre-aggregate out: sums of rows work only for edges without weights")
	case c.GPUsGather():
		return refuse("graph", c.GraphWork, "choose --graph cpu: GPUs gather only along edges without weights")
	}
	return nil
}

// checkSums refuses sums of ghosts' rows that were asked for where none serves.
func (c *Config) checkSums() error {
	refuse := func(flag, value, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--pre-aggregate=%s with --%s=%s", c.PreAggregate, flag, value).Then("leave --pre-aggregate out: %s", remedy)
	}
	switch n := c.Network(1, 1); {
	case c.PreAggregate != "on":
		return nil
	case !n.Propagates():
		return refuse("model", c.Model, "this model does not aggregate")
	case !n.Adds():
		return refuse("model", c.Model, "attention and maxima are not plain sums of rows")
	case c.Mode == "async":
		return refuse("mode", c.Mode, "each interval sends its own rows, but a sum has rows of several intervals")
	}
	return nil
}

// NetworkOf returns the network for a dataset.
func (c *Config) NetworkOf(meta *graph.Meta) model.Spec {
	net := c.Network(meta.FeatureDim, c.Outputs(meta))
	if net.Dynamic() {
		net.Design.EdgeDim, net.Design.EdgeFeatures = meta.EdgeDim, meta.Weighted && meta.EdgeDim == 0
	}
	if meta.Task == graph.Links && c.LinkScore == linkPerceptron {
		net.Design.ScoreLayers, net.Design.ScoreHidden, net.ScoreDropout = c.LinkLayers, c.LinkHidden, c.LinkDropout
		if c.LinkDropout < 0 {
			net.ScoreDropout = c.Dropout
		}
	}
	return net
}

// checkDynamic refuses ghosts that are not there, with attention whose scores are made of whole
// rows: there is no score by which one is left out, and zeros would be attended to.
func (c *Config) checkDynamic() error {
	if !c.kind().Dynamic || !c.Ghosts().Samples() {
		return nil
	}
	return fault.New(fault.Usage, "train", "", "--model=%s with --refresh=%s", c.Model, c.Refresh).
		Then("choose gat or another policy: this attention has no score that masks ghosts outside the sample")
}

// IgnoredWeights names the edge weights and edge features that a run's network ignores. It
// is empty if the network uses all of them.
func IgnoredWeights(meta *graph.Meta, net model.Spec) string {
	var list []string
	if meta.Weighted && !net.Weighs() {
		list = append(list, "weights")
	}
	if meta.EdgeDim > 0 && net.Design.EdgeDim == 0 {
		list = append(list, "features")
	}
	if list == nil {
		return ""
	}
	return "the edges of " + meta.Name + " have " + strings.Join(list, " and ") + "; " + net.Kind + " ignores them"
}

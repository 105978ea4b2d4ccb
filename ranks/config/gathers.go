package config

import (
	"strings"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/halo/refresh"
	"siafu/kernels/model"
)

// CheckGathers refuses what does not go together with the maxima that a network gathers,
// or with weights of edges, where a dataset has some and the network takes them.
func (c *Config) CheckGathers(meta *graph.Meta, net model.Spec) error {
	if c.GPUsGather() && net.Takes() {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --graph=%s with %s", c.Tensor, c.GraphWork, net.Kind).
			Then("choose --graph cpu: GPUs gather sums and attention, and no maxima")
	}
	if c.GPUsGather() && net.Dynamic() {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --graph=%s with %s", c.Tensor, c.GraphWork, net.Kind).
			Then("choose --graph cpu, or gat: GPUs have no kernel for scores of both ends of an edge at once")
	}
	if net.Design.EdgeFeatures && !meta.Weighted {
		return fault.New(fault.Usage, "train", "", "%s of edges with weights, and those of %s have none", net.Kind, meta.Name).
			Then("use a dataset whose edges have weights, or train a model without")
	}
	if dim := net.Design.EdgeDim; dim > 0 && dim != meta.EdgeDim {
		return fault.New(fault.Usage, "train", "", "%s of edges with %d features, and those of %s have %d", net.Kind, dim, meta.Name, meta.EdgeDim).
			Then("use a dataset whose edges have the features that the network was trained with")
	}
	if !meta.Weighted || !net.Weighs() {
		return nil
	}
	refuse := func(flag, value, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--%s=%s on %s, whose edges have weights", flag, value, meta.Name).
			Then("%s, or import the dataset with --drop-weights", remedy)
	}
	switch {
	case c.PreAggregate == "on":
		return refuse("pre-aggregate", c.PreAggregate, "leave --pre-aggregate out: a sum of rows serves edges without weights alone")
	case c.GPUsGather():
		return refuse("graph", c.GraphWork, "choose --graph cpu: GPUs gather along edges without weights")
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
		return refuse("model", c.Model, "nothing is gathered")
	case !n.Adds():
		return refuse("model", c.Model, "attention weighs each row, and maxima are no sums")
	case c.Mode == "async":
		return refuse("mode", c.Mode, "an interval's rows leave when they are there, and sums are of many intervals")
	}
	return nil
}

// NetworkOf is the network for a dataset.
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
	if !c.kind().Dynamic() || c.Ghosts().Name != refresh.NameSample {
		return nil
	}
	return fault.New(fault.Usage, "train", "", "--model=%s with --refresh=%s", c.Model, c.Refresh).
		Then("choose gat, or another policy: this attention has no score by which a ghost that is not drawn could be left out")
}

// IgnoredWeights says which weights and features of edges make no difference to a run's
// network, empty where all do.
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
	return "the edges of " + meta.Name + " have " + strings.Join(list, " and ") + ", of which " + net.Kind + " takes no notice"
}

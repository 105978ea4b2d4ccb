package config

import (
	"siafu/graph"
	"siafu/graph/fault"
	"siafu/kernels/model"
)

// CheckGathers refuses what does not go together with the maxima that a network gathers,
// or with weights of edges, where a dataset has some and the network takes them.
func (c *Config) CheckGathers(meta *graph.Meta, net model.Spec) error {
	if c.GPUsGather() && net.Takes() {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --graph=%s with %s", c.Tensor, c.GraphWork, net.Kind).
			Then("choose --graph cpu: GPUs gather sums and attention, and no maxima")
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
	case c.Batching().Kind != "":
		return refuse("batch", c.Batch, "leave --batch out: the edges of a mini-batch are taken without weights")
	case c.GPUsGather():
		return refuse("graph", c.GraphWork, "choose --graph cpu: GPUs gather along edges without weights")
	}
	return nil
}

// IgnoredWeights says what a run does with weights of edges that make no difference to its
// network, empty where it does nothing with them.
func IgnoredWeights(meta *graph.Meta, net model.Spec) string {
	if !meta.Weighted || net.Weighs() {
		return ""
	}
	return "the edges of " + meta.Name + " have weights, of which " + net.Kind + " takes no notice"
}

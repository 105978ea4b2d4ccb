package config

import (
	"cmp"

	"siafu/internal/fault"
	"siafu/kernels/model"
)

// design returns the options of the network that its kind supports, other than its widths.
func (c *Config) design() (d model.Design) {
	kind := c.kind()
	for _, option := range kind.Options {
		switch option {
		case model.OptionAlpha:
			d.Alpha = c.Alpha
		case model.OptionTheta:
			d.Theta = c.Theta
		case model.OptionHops:
			d.Hops = c.Hops
		case model.OptionPowers:
			d.Hops = c.Powers
		case model.OptionPoolHidden:
			d.PoolHidden = c.PoolHidden
		case model.OptionBases:
			d.Bases = c.Bases
		case model.OptionBlocks:
			d.Blocks = c.Blocks
		case model.OptionEdgeResidual:
			d.EdgeResidual = c.EdgeResidual
		case model.OptionSoftmax:
			d.RelationSoftmax = c.Softmax == "relation"
		}
	}
	if kind.FixedDesign() {
		return d
	}
	d.Kinds, d.Project = c.LayerKinds, c.Project == "on" || c.Project == "auto" && kind.Relational
	if c.Activation != "auto" && c.Activation != cmp.Or(kind.Activation, "relu") {
		d.Activation = c.Activation
	}
	if c.Norm != "off" {
		d.Norm = c.Norm
	}
	if c.Jumping != "off" {
		d.Jumping = c.Jumping
	}
	switch c.Residual {
	case "add":
		d.Residual = c.Residual
	case "initial":
		d.Residual, d.Alpha = c.Residual, c.Alpha
	}
	return d
}

// sums reports whether layers need sums over the vertices of all ranks.
func (c *Config) sums() bool { return c.Norm == "batch" || c.Norm == "pair" }

// checkLayers returns a fault for a network with too few or too many layers.
func (c *Config) checkLayers() error {
	if least := c.kind().MinLayers; c.Layers < least {
		return fault.New(fault.Usage, "train", "", "--layers=%d with --model=%s", c.Layers, c.Model).Then("use %d layers or more", least)
	}
	if net := c.Network(1, 1); c.LayerKinds != "" && (c.kind().FixedDesign() || net.Check() != nil) {
		return fault.New(fault.Usage, "train", "", "--layer-kinds=%s with --model=%s", c.LayerKinds, c.Model).
			Then("list networks of %s, first that of --model, which must use the graph", Expand("${mixing_networks}"))
	}
	if steps := c.Network(1, 1).Layers(); steps > mostLayers {
		return fault.New(fault.Usage, "train", "", "--model=%s with --layers=%d makes a network of %d steps", c.Model, c.Layers, steps).
			Then("use fewer --layers, --model hops=N or --model steps=N: the maximum is %d steps", mostLayers)
	}
	return nil
}

package config

import (
	"fmt"
	"slices"

	"siafu/graph/fault"
	"siafu/kernels/model"
)

// design is what the configuration asks for beside the kind of network and its widths.
func (c *Config) design() (d model.Design) {
	switch c.Model {
	case "gcnii":
		return model.Design{Alpha: c.Alpha, Theta: c.Theta}
	case "appnp":
		return model.Design{Alpha: c.Alpha, Hops: c.Hops}
	case "sgc":
		return d
	}
	if own := c.Activation == "elu" && c.kind().Attends() || c.Activation == "relu" && !c.kind().Attends(); !own && c.Activation != "auto" {
		d.Activation = c.Activation
	}
	switch c.Residual {
	case "add":
		d.Residual = c.Residual
	case "initial":
		d.Residual, d.Alpha = c.Residual, c.Alpha
	}
	return d
}

// checkDesign refuses what does not go together with networks of layers that differ.
func (c *Config) checkDesign() error {
	refuse := func(flag string, value any, what, remedy string, args ...any) error {
		return fault.New(fault.Usage, "train", "", "--%s=%v with %s", flag, value, what).Then(remedy, args...)
	}
	own := slices.Contains([]string{"gcnii", "appnp", "sgc"}, c.Model)
	switch n := c.Network(1, 1); {
	case c.Residual != "none" && own:
		return refuse("residual", c.Residual, "--model="+c.Model, "leave --residual out: the network has its own way from the first rows to each layer, or none between layers")
	case c.Activation != "auto" && own:
		return refuse("activation", c.Activation, "--model="+c.Model, "leave --activation out: it is a part of this network")
	case c.Residual != "none" && c.Layers < 3:
		return fault.New(fault.Usage, "train", "", "--residual=%s with --layers=%d", c.Residual, c.Layers).
			Then("use 3 layers or more: a hidden layer takes something of one before it, and the last layer nothing")
	case n.Layers() > mostLayers:
		return fault.New(fault.Usage, "train", "", "--model=%s with --layers=%d is a network of %d steps", c.Model, c.Layers, n.Layers()).
			Then("use fewer --layers or --hops: %d steps are the most", mostLayers)
	case n.Composed() && c.Batch != "" && c.Batch != Full:
		what := "--model=" + c.Model
		if !own {
			what = fmt.Sprintf("--residual=%s --activation=%s", c.Residual, c.Activation)
		}
		return refuse("batch", c.Batch, what, "leave --batch out: mini-batches are for layers that are all alike")
	}
	return nil
}

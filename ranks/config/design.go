package config

import (
	"cmp"
	"fmt"
	"strings"

	"siafu/internal/fault"
	"siafu/kernels/model"
)

// design returns the network's options besides its kind and widths: those that its kind takes.
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
		}
	}
	if kind.FixedDesign() {
		return d
	}
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

// sumsRemedy is a remedy behind another one.
const sumsRemedy = "%s, or use --norm layer, which works per row: column means need all vertices of the epoch, and run where graph work runs"

// checkDesign refuses what does not go together with networks of layers that differ.
func (c *Config) checkDesign() error {
	refuse := func(flag string, value any, what, remedy string, args ...any) error {
		return fault.New(fault.Usage, "train", "", "--%s=%v with %s", flag, value, what).Then(remedy, args...)
	}
	kind := c.kind()
	fixed := kind.FixedDesign()
	switch n := c.Network(1, 1); {
	case c.Residual != "none" && fixed:
		return refuse("residual", c.Residual, "--model="+c.Model, "leave --residual out: the network has its own residual connections, or none between layers")
	case c.Activation != "auto" && fixed:
		return refuse("activation", c.Activation, "--model="+c.Model, "leave --activation out: this network has a fixed activation")
	case c.Norm != "off" && fixed:
		return refuse("norm", c.Norm, "--model="+c.Model, "leave --norm out: this network has no normalisation between its layers")
	case c.Jumping != "off" && fixed:
		return refuse("jumping", c.Jumping, "--model="+c.Model, "leave --jumping out: this network's last product has its own input")
	case model.DividesRows(c.Norm) && !kind.TakesRowNorms():
		return refuse("norm", c.Norm, "--model="+c.Model, "choose --norm layer: this normalisation follows sums and maxima of neighbours, not attention")
	case c.PoolHidden != 0 && !kind.Takes(model.OptionPoolHidden):
		return refuse("pool-hidden", c.PoolHidden, "--model="+c.Model, "leave --pool-hidden out, or choose --model %s: the network has no perceptron before its maxima", strings.Join(taking(model.OptionPoolHidden), ", "))
	case c.Norm != "off" && !model.DividesRows(c.Norm) && c.Layers < 2 && c.Jumping == "off":
		return refuse("norm", c.Norm, fmt.Sprintf("--layers=%d", c.Layers), "use 2 layers or more: hidden layers are normalised")
	case c.sums() && c.Asynchronous():
		return refuse("norm", c.Norm, "--mode="+c.Mode, sumsRemedy, "leave --mode out")
	case c.sums() && (!c.Exact() || c.LocalEpochs > 0):
		return refuse("norm", c.Norm, fmt.Sprintf("--refresh=%s --local-epochs=%d", c.Refresh, c.LocalEpochs), sumsRemedy, "leave both out")
	case c.sums() && c.Tensor == TensorLambda:
		return refuse("norm", c.Norm, "--tensor=lambda", sumsRemedy, "leave --tensor out")
	case c.sums() && c.GPUsApply():
		return refuse("norm", c.Norm, "--tensor=cuda --graph=cpu", sumsRemedy, "leave --graph out")
	case c.Residual != "none" && c.Layers < 3:
		return fault.New(fault.Usage, "train", "", "--residual=%s with --layers=%d", c.Residual, c.Layers).
			Then("use 3 layers or more: residuals connect hidden layers only")
	case c.Layers < kind.MinLayers:
		return refuse("layers", c.Layers, "--model="+c.Model, "use %d layers or more", kind.MinLayers)
	case n.Layers() > mostLayers:
		return fault.New(fault.Usage, "train", "", "--model=%s with --layers=%d makes a network of %d steps", c.Model, c.Layers, n.Layers()).
			Then("use fewer --layers, --hops or --steps: the maximum is %d steps", mostLayers)
	case n.Composed() && c.Batch != "" && c.Batch != Full:
		what := "--model=" + c.Model
		if !fixed {
			what = fmt.Sprintf("--norm=%s --jumping=%s --residual=%s --activation=%s", c.Norm, c.Jumping, c.Residual, c.Activation)
		}
		return refuse("batch", c.Batch, what, "leave --batch out: mini-batches need layers of one kind")
	}
	return nil
}

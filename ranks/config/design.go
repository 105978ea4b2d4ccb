package config

import (
	"fmt"
	"slices"

	"siafu/internal/fault"
	"siafu/kernels/model"
)

// design is what the configuration asks for beside the kind of network and its widths.
func (c *Config) design() (d model.Design) {
	switch c.Model {
	case "gcnii":
		return model.Design{Alpha: c.Alpha, Theta: c.Theta}
	case "appnp":
		return model.Design{Alpha: c.Alpha, Hops: c.Hops}
	case "sign":
		return model.Design{Hops: c.Powers}
	case "sgc":
		return d
	}
	if own := c.Activation == "elu" && c.kind().Attends() || c.Activation == "relu" && !c.kind().Attends(); !own && c.Activation != "auto" {
		d.Activation = c.Activation
	}
	if c.Model == "sage-pool" {
		d.PoolHidden = c.PoolHidden
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
	own := slices.Contains([]string{"gcnii", "appnp", "sgc", "sign"}, c.Model)
	switch n := c.Network(1, 1); {
	case c.Residual != "none" && own:
		return refuse("residual", c.Residual, "--model="+c.Model, "leave --residual out: the network has its own residual connections, or none between layers")
	case c.Activation != "auto" && own:
		return refuse("activation", c.Activation, "--model="+c.Model, "leave --activation out: this network has a fixed activation")
	case c.Norm != "off" && own:
		return refuse("norm", c.Norm, "--model="+c.Model, "leave --norm out: this network has no normalisation between its layers")
	case c.Jumping != "off" && own:
		return refuse("jumping", c.Jumping, "--model="+c.Model, "leave --jumping out: this network's last product has its own input")
	case model.DividesRows(c.Norm) && c.kind().Attends():
		return refuse("norm", c.Norm, "--model="+c.Model, "choose --norm layer: this normalisation follows sums and maxima of neighbours, not attention")
	case c.PoolHidden != 0 && c.Model != "sage-pool":
		return refuse("pool-hidden", c.PoolHidden, "--model="+c.Model, "leave --pool-hidden out, or choose --model sage-pool: only sage-pool has a perceptron before its maxima")
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
	case c.Model == "sign" && c.Layers < 2:
		return refuse("layers", c.Layers, "--model=sign", "use 2 layers or more: the first makes the powers' rows, and the others are the perceptron after them")
	case n.Layers() > mostLayers:
		return fault.New(fault.Usage, "train", "", "--model=%s with --layers=%d makes a network of %d steps", c.Model, c.Layers, n.Layers()).
			Then("use fewer --layers, --hops or --steps: the maximum is %d steps", mostLayers)
	case n.Composed() && c.Batch != "" && c.Batch != Full:
		what := "--model=" + c.Model
		if !own {
			what = fmt.Sprintf("--norm=%s --jumping=%s --residual=%s --activation=%s", c.Norm, c.Jumping, c.Residual, c.Activation)
		}
		return refuse("batch", c.Batch, what, "leave --batch out: mini-batches need layers of one kind")
	}
	return nil
}

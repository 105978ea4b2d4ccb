package config

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"siafu/graph/order"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/halo/refresh"
	"siafu/internal/fault"
	"siafu/internal/size"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/tune"
)

// Validate checks everything that can be checked before files are opened, and expands
// --precision. Its faults have kind Usage and name the flag.
func (c *Config) Validate() error {
	for _, check := range []func() error{
		c.checkRanges, c.checkEvaluations, c.checkNames, c.settlePrecision, c.checkCodec, c.checkMemory,
		c.checkTimes, c.checkSurvival, c.checkCost,
		c.checkView, c.checkClassWeights, c.checkLayers, c.checkPolicy, c.checkGhosts, c.checkBatch, c.checkPipeline, c.checkConflicts,
		c.checkSandboxes, c.checkLambda,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkConflicts returns a fault for options that do not work together with any dataset.
func (c *Config) checkConflicts() error {
	c.Monitor = cmp.Or(otherNames[c.Monitor], c.Monitor)
	return situation{Config: c}.refuse("train", conflicts)
}

// checkEvaluations returns a fault for stopping rules that need evaluations or other rules in a run
// without these.
func (c *Config) checkEvaluations() error {
	for _, r := range []struct {
		ok         bool
		flag, want string
	}{
		{c.SwitchToSync == 0 || c.TargetAcc > 0, "switch-to-sync", "0 without --target-acc"},
		{c.Patience == 0 || c.EvalEvery > 0, "patience", "0 while --eval-every is 0"},
		{c.TargetAcc == 0 || c.EvalEvery > 0, "target-acc", "0 while --eval-every is 0"},
	} {
		if !r.ok {
			return fault.New(fault.Usage, "train", "", "%s", Spell(r.flag, c.value(r.flag))).Then("it must be %s", r.want)
		}
	}
	return nil
}

// checkGhosts checks --recompute-ghosts, and replaces the values of its alias --ghost-features.
func (c *Config) checkGhosts() error {
	switch c.RecomputeGhosts {
	case "auto", "all", "none":
	case "kept":
		c.RecomputeGhosts = "layers:1"
	case "sent":
		c.RecomputeGhosts = "none"
	default:
		if _, _, ok := model.ParseLocal(c.RecomputeGhosts); !ok {
			return fault.New(fault.Usage, "train", "", "--recompute-ghosts=%q", c.RecomputeGhosts).
				Then("use auto, all, none, or layers:N with N layers that gather, such as 1, or 1.5 for one layer and " +
					"half of the ghosts of the next")
		}
	}
	return nil
}

// checkNames checks the values that come from a list. The command line checks flags too, but not
// the keys of a file.
func (c *Config) checkNames() error {
	oneOf := func(flag, got string, want []string) error {
		if slices.Contains(want, got) {
			return nil
		}
		return fault.New(fault.Usage, "train", "", "%s", Spell(flag, strconv.Quote(got))).
			Then("it must be one of %s", strings.TrimPrefix(strings.Join(want, ", "), ", "))
	}
	for f, value := range c.Options() {
		if list, ok := f.Tag.Lookup("enum"); ok {
			if err := oneOf(f.Tag.Get("toml"), value.String(),
				strings.Split(strings.ReplaceAll(Expand(list), ", ", ","), ",")); err != nil {
				return err
			}
		}
	}
	if name := cmp.Or(c.VertexOrder, "auto"); order.Check(name) != nil {
		return fault.New(fault.Usage, "train", "", "--vertex-order=%q", name).Then("%s", order.Remedy(name))
	}
	return nil
}

// checkCodec returns a fault for an unknown codec.
func (c *Config) checkCodec() error {
	if _, err := c.Codecs(); err != nil {
		return fault.New(fault.Usage, "train", "", "--codec=%q", c.Codec).Then("it must be %s; or one of %s", tune.Names(), codec.Names())
	}
	return nil
}

// checkMemory returns a fault for an invalid --memory.
func (c *Config) checkMemory() error {
	if _, ok := size.Parse(c.Memory); !ok && c.Memory != "" {
		return fault.New(fault.Usage, "train", "", "--memory=%q", c.Memory).Then("write a number of bytes such as 8GB, 380M or 2GiB")
	}
	return nil
}

// settlePrecision sets the formats that follow from --precision, unless they are given.
func (c *Config) settlePrecision() error {
	if c.Tensor != "cpu" {
		c.Products = cmp.Or(c.Products, "float32")
	}
	rows := map[string]string{"mixed": "bf16"}[c.Precision]
	for flag, value := range map[string]*string{"gather": &c.Gather, "features": &c.Features, "products": &c.Products} {
		if *value == "" {
			*value = cmp.Or(rows, "float32")
		}
		if rows != "" && *value != rows && (flag != "products" || c.Tensor == "cpu") {
			return fault.New(fault.Usage, "train", "", "--precision %s:%s=%s", c.Precision, flag, *value).
				Then("leave one of the two out: mixed means gather=%s,features=%s,products=%s", rows, rows, rows)
		}
	}
	return nil
}

// checkTimes returns a fault for invalid durations.
func (c *Config) checkTimes() error {
	if _, err := c.Limits(nil); err != nil {
		return err
	}
	if _, err := ParseDelay(c.Delay); err != nil {
		return err
	}
	if _, err := checkpoint.ParseInterval(c.CheckpointEvery); err != nil {
		return err
	}
	if d, err := time.ParseDuration(c.Grace); err != nil || d < 0 {
		return fault.New(fault.Usage, "train", "", "--grace=%q", c.Grace).Then("it must be a duration such as 30s")
	}
	return nil
}

// checkSurvival returns a fault for invalid settings of --survive.
func (c *Config) checkSurvival() error {
	if _, err := c.SilenceLimit(); err != nil {
		return err
	}
	_, err := c.ListenNetwork()
	return err
}

// checkView returns a fault if the ranks cannot carry the parts. It needs both numbers.
func (c *Config) checkView() error {
	if c.Parts == 0 && c.Pipeline == "" || c.Ranks == 0 {
		return nil
	}
	_, err := c.View(c.Ranks)
	return err
}

// checkClassWeights returns a fault for invalid class weights.
func (c *Config) checkClassWeights() error {
	_, _, err := c.Weights(nil)
	return err
}

// checkPolicy returns a fault for an invalid --refresh or --predict.
func (c *Config) checkPolicy() error {
	if _, err := refresh.Parse(c.Refresh); err != nil {
		return err
	}
	if !predict.Valid(c.Predict) {
		return fault.New(fault.Usage, "train", "", "--predict=%s", c.Predict).Then("%s", predict.Remedy(c.Predict))
	}
	if !predict.ValidHistory(c.PredictHistory) {
		return fault.New(fault.Usage, "train", "", "--predict history=%s", c.PredictHistory).
			Then("it must be one of %s", predict.HistoryUsage())
	}
	if lr := c.PredictLR; math.IsNaN(lr) || math.IsInf(lr, 0) {
		return fault.New(fault.Usage, "train", "", "--predict lr=%g", lr).Then("choose a finite number")
	}
	return nil
}

package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"siafu/graph/order"
	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/ranks/checkpoint"
	"siafu/ranks/tune"
)

// Validate checks everything that can be checked before files are opened, and expands
// --precision. Its faults have kind Usage and name the flag.
func (c *Config) Validate() error {
	for _, r := range []struct {
		ok   bool
		flag string
		got  any
		want string
	}{
		{c.Ranks >= 0, "ranks", c.Ranks, "1 or more"},
		{c.Servers >= -1, "servers", c.Servers, "-1, 0 or more"},
		{c.Bridges >= 0, "bridges", c.Bridges, "0 or more"},
		{c.Parts >= 0 && c.Parts <= mostParts, "parts", c.Parts, fmt.Sprint("from 0 to ", mostParts)},
		{c.Threads >= 0, "threads", c.Threads, "0 or more"},
		{c.Layers >= 1 && c.Layers <= mostLayers, "layers", c.Layers, fmt.Sprint("from 1 to ", mostLayers)},
		{c.Hidden >= 1, "hidden", c.Hidden, "1 or more"},
		{c.Embedding >= 1, "embedding", c.Embedding, "1 or more"},
		{1 <= c.LinkLayers && c.LinkLayers <= 64, "link-layers", c.LinkLayers, "1 to 64"},
		{1 <= c.LinkHidden && c.LinkHidden <= 1<<16, "link-hidden", c.LinkHidden, "1 to 65536"},
		{inRange(c.Dropout), "dropout", c.Dropout, "at least 0 and below 1"},
		{c.InputDropout == -1 || inRange(c.InputDropout), "input-dropout", c.InputDropout, "-1, or at least 0 and below 1"},
		{c.InputScale > 0 && !math.IsInf(c.InputScale, 1), "input-scale", c.InputScale, "above 0"},
		{c.Staleness >= 0, "staleness", c.Staleness, "0 or more"},
		{c.Linger >= 0 && !math.IsInf(c.Linger, 1), "linger", c.Linger, "0 or more"},
		{c.SwitchToSync >= 0 && c.SwitchToSync <= 1, "switch-to-sync", c.SwitchToSync, "a fraction from 0 to 1"},
		{c.SwitchToSync == 0 || c.TargetAcc > 0, "switch-to-sync", c.SwitchToSync, "0 without --target-acc"},
		{c.LambdaAtOnce >= 0, "lambda-at-once", c.LambdaAtOnce, "0 or more"},
		{c.Intervals >= 0, "intervals", c.Intervals, "0 or more"},
		{c.Alpha > 0 && c.Alpha <= 1, "alpha", c.Alpha, "above 0 and at most 1"},
		{c.Theta >= 0 && !math.IsInf(c.Theta, 0), "theta", c.Theta, "0 or more"},
		{c.Hops >= 1 && c.Hops <= mostLayers, "hops", c.Hops, fmt.Sprint("from 1 to ", mostLayers)},
		{c.PoolHidden >= 0, "pool-hidden", c.PoolHidden, "0 or more"},
		{c.Powers >= 1 && c.Powers <= mostLayers, "steps", c.Powers, fmt.Sprint("from 1 to ", mostLayers)},
		{c.Heads >= 1, "heads", c.Heads, "1 or more"},
		{c.OutputHeads >= 1, "output-heads", c.OutputHeads, "1 or more"},
		{c.LinkDropout == -1 || inRange(c.LinkDropout), "link-dropout", c.LinkDropout, "-1, or at least 0 and below 1"},
		{c.AttentionDropout == -1 || inRange(c.AttentionDropout), "attention-dropout", c.AttentionDropout, "-1, or at least 0 and below 1"},
		{c.Epochs >= 0 && c.Epochs <= mostEpochs, "epochs", c.Epochs, fmt.Sprint("from 0 to ", mostEpochs)},
		{c.LR > 0 && !math.IsInf(c.LR, 0), "lr", c.LR, "above 0"},
		{inRange(c.Momentum), "momentum", c.Momentum, "at least 0 and below 1"},
		{c.WeightDecay >= 0 && !math.IsInf(c.WeightDecay, 0), "weight-decay", c.WeightDecay, "0 or more"},
		{c.InnerDecay >= 0 && !math.IsInf(c.InnerDecay, 0), "inner-decay", c.InnerDecay, "0 or more"},
		{c.MeasureStaleness >= 0, "measure-staleness", c.MeasureStaleness, "0 or more"},
		{c.EvalEvery >= 0, "eval-every", c.EvalEvery, "0 or more"},
		{c.Keep >= 0, "keep", c.Keep, "0 or more"},
		{c.Patience >= 0, "patience", c.Patience, "0 or more"},
		{c.TargetAcc >= 0 && c.TargetAcc <= 1, "target-acc", c.TargetAcc, "a fraction from 0 to 1"},
		{c.DelayBound >= 0, "delay-bound", c.DelayBound, "0 or more"},
		{c.LocalEpochs >= 0, "local-epochs", c.LocalEpochs, "0 or more"},
		{c.ServerCorrection >= 0, "server-correction", c.ServerCorrection, "0 or more"},
		{c.CorrectionBatch >= 0, "correction-batch", c.CorrectionBatch, "0 or more"},
		{c.Patience == 0 || c.EvalEvery > 0, "patience", c.Patience, "0 while --eval-every is 0"},
		{inRange(c.LabelSmoothing), "label-smoothing", c.LabelSmoothing, "at least 0 and below 1"},
		{c.TargetAcc == 0 || c.EvalEvery > 0, "target-acc", c.TargetAcc, "0 while --eval-every is 0"},
	} {
		if !r.ok {
			return fault.New(fault.Usage, "train", "", "--%s=%v", r.flag, r.got).Then("it must be %s", r.want)
		}
	}
	if err := c.checkRecipe(); err != nil {
		return err
	}
	return c.validateNames()
}

// inRange reports whether p is in [0, 1); it is false for NaN.
func inRange(p float64) bool { return p >= 0 && p < 1 }

// validateNames checks the values that come from a list, which the command line
// checks too for flags, and for the keys of a file nobody else.
func (c *Config) validateNames() error {
	oneOf := func(flag, got string, want []string) error {
		if slices.Contains(want, got) {
			return nil
		}
		return fault.New(fault.Usage, "train", "", "--%s=%q", flag, got).Then("it must be one of %s", strings.TrimPrefix(strings.Join(want, ", "), ", "))
	}
	for f, value := range c.Options() {
		if list, ok := f.Tag.Lookup("enum"); ok {
			if err := oneOf(f.Tag.Get("toml"), value.String(), strings.Split(strings.ReplaceAll(Expand(list), ", ", ","), ",")); err != nil {
				return err
			}
		}
	}
	if err := oneOf("vertex-order", cmp.Or(c.VertexOrder, "auto"), strings.Split(order.Names, ", ")); err != nil {
		return err
	}
	if err := c.settlePrecision(); err != nil {
		return err
	}
	if _, err := c.Codecs(); err != nil {
		return fault.New(fault.Usage, "train", "", "--codec=%q", c.Codec).Then("it must be %s; or one of %s", tune.Names, codec.Names)
	}
	return c.validateDurations()
}

// settlePrecision sets what --precision decides and nobody has said apart.
func (c *Config) settlePrecision() error {
	rows := map[string]string{"mixed": "bf16"}[c.Precision]
	for flag, value := range map[string]*string{"gather": &c.Gather, "features": &c.Features} {
		if *value == "" {
			*value = cmp.Or(rows, "float32")
		}
		if rows != "" && *value != rows {
			return fault.New(fault.Usage, "train", "", "--precision=%s with --%s=%s", c.Precision, flag, *value).
				Then("leave one of the two out: mixed means --gather %s --features %s", rows, rows)
		}
	}
	return nil
}

// validateDurations checks what ends a wait, and what a host costs.
func (c *Config) validateDurations() error {
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
	if err := c.checkCost(); err != nil {
		return err
	}
	if c.Parts > 0 && c.Ranks > 0 {
		if _, err := c.View(c.Ranks); err != nil {
			return err
		}
	}
	if c.Recompute && c.Mode == "async" {
		return fault.New(fault.Usage, "train", "", "--recompute with --mode=async").
			Then("leave --recompute out: asynchronous intervals need their stored activations")
	}
	if err := c.checkSums(); err != nil {
		return err
	}
	if err := c.checkDesign(); err != nil {
		return err
	}
	if err := c.checkTask(); err != nil {
		return err
	}
	if err := c.checkRefresh(); err != nil {
		return err
	}
	if err := c.checkGhostFeatures(); err != nil {
		return err
	}
	if err := c.checkDynamic(); err != nil {
		return err
	}
	if err := c.checkBatch(); err != nil {
		return err
	}
	if err := c.checkRounds(); err != nil {
		return err
	}
	if err := c.checkSandboxes(); err != nil {
		return err
	}
	if err := c.CheckCUDA("train"); err != nil {
		return err
	}
	if err := c.checkLambda(); err != nil {
		return err
	}
	return c.checkAsync()
}

package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// wholeRun returns a run whose ghost rows may be sent before their dropout.
func wholeRun(t *testing.T, change func(c *Config)) Config {
	c := quick(t)
	c.Ranks, c.Servers, c.Threads, c.Epochs, c.Layers, c.Dropout, c.InputDropout = 3, 0, 2, 8, 3, 0.5, 0
	c.Order, c.PreAggregate, c.EvalEvery = "gather-first", "off", 3
	change(&c)
	return c
}

// Readers draw the masks of owners: where ghost rows are of the same epoch, runs have the same bits
// whether owners or readers apply dropout.
func TestReadersApplyTheDropoutOfOwners(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for name, change := range map[string]func(c *Config){
		"sage":              func(c *Config) { c.Model, c.Refresh = "sage", "every:1" },
		"sage, recompute":   func(c *Config) { c.Model, c.Refresh, c.Recompute, c.Mode = "sage", "every:1", true, "nopipe" },
		"sage-max":          func(c *Config) { c.Model, c.Refresh, c.Order = "sage-max", "every:1", "auto" },
		"gin":               func(c *Config) { c.Model, c.Refresh, c.Intervals, c.LR = "gin", "every:1", 4, 0.001 },
		"gin, recompute":    func(c *Config) { c.Model, c.Refresh, c.Recompute, c.LR = "gin", "every:1", true, 0.001 },
		"always":            func(c *Config) { c.RecomputeGhosts = "none" },
		"every epoch":       func(c *Config) { c.Refresh = "every:1" },
		"nopipe, recompute": func(c *Config) { c.Mode, c.Recompute, c.Refresh, c.Layers = "nopipe", true, "every:1", 4 },
		"bf16, intervals":   func(c *Config) { c.Gather, c.Intervals, c.Refresh = "bf16", 5, "every:1" },
		"parts, s2":         func(c *Config) { c.Parts, c.Ranks, c.Codec, c.Refresh = 4, 2, "s2", "every:1" },
		"measured":          func(c *Config) { c.MeasureStaleness, c.Refresh = 2, "every:1" },
	} {
		t.Run(name, func(t *testing.T) {
			c := wholeRun(t, change)
			c.RefreshRows = "whole"
			whole := train(t, c, data)
			c.RefreshRows = "dropped"
			dropped := train(t, c, data)
			sameLosses(t, name, whole.losses(), dropped.losses(), 0)
			if !bytes.Equal(whole.model, dropped.model) {
				t.Error("the models differ")
			}
			for i, e := range whole.Epochs {
				if e.GhostBytesRaw != dropped.Epochs[i].GhostBytesRaw {
					t.Errorf("epoch %d sends %d bytes, want %d", i+1, e.GhostBytesRaw, dropped.Epochs[i].GhostBytesRaw)
				}
			}
		})
	}
}

// Whole rows of an earlier epoch are nearer to those of the epoch, and predictions nearer still:
// another epoch's mask is wrong about half of the numbers. Rows contain the dropout of the layers before,
// which no map predicts. sage and gin add a vertex's own row, whose dropout no sum averages.
func TestWholeRowsAreLessStale(t *testing.T) {
	t.Parallel()
	data := evolving(t)
	for model, most := range map[string]float64{"gcn": 0.5, "sage": 0.9, "gin": 0.9} {
		run := func(rows string) (predicted, stale map[int]float64) {
			c := predictingRun(t, "every:10")
			c.Model, c.Dropout, c.RefreshRows = model, 0.5, rows
			if model == "gin" { // sums of up to 100 rows
				c.LR = 0.0003
			}
			return train(t, c, data).staleness(t, 10)
		}
		_, dropped := run("dropped")
		predicted, whole := run("whole")
		for l := range dropped {
			t.Logf("%s, layer %d: dropped rows are off by %.3f, whole rows by %.3f, predicted by %.3f", model, l,
				dropped[l], whole[l], predicted[l])
			if l > 1 && (whole[l] > 0.6*dropped[l] || predicted[l] > most*whole[l]) {
				t.Errorf("%s, layer %d: dropped rows are off by %.3f, whole rows by %.3f, predicted by %.3f", model, l,
					dropped[l], whole[l], predicted[l])
			}
		}
	}
}

// Whole rows are refused where no reader applies dropout.
func TestWholeRowsAreRefused(t *testing.T) {
	t.Parallel()
	for _, change := range []func(c *Config){
		func(c *Config) { c.Model = "gat" }, func(c *Config) { c.Dropout = 0 }, func(c *Config) { c.Layers = 1 },
		func(c *Config) { c.Norm = "layer" },
		func(c *Config) { c.Mode = "free" }, func(c *Config) { c.Batch = "history:3" },
		func(c *Config) { c.Tensor, c.Order = "cuda", "auto" },
		func(c *Config) { c.Order = "apply-first" }, func(c *Config) { c.PreAggregate = "on" },
		func(c *Config) { c.RecomputeGhosts = "layers:1" },
		func(c *Config) { c.RefreshRows = "half" },
	} {
		c := wholeRun(t, func(c *Config) { c.RefreshRows = "whole" })
		change(&c)
		err := Train(context.Background(), c, "nowhere", IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), "--refresh rows=") {
			t.Error(err)
		}
	}
}

package ranks

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/testkit/functiontest"
	"siafu/kernels/model"
	"siafu/ranks/config"
)

// halfAndRounded writes a graph with features in bfloat16, and with the same rounded numbers in float32.
func halfAndRounded(t testing.TB, n int) (half, rounded string) {
	t.Helper()
	c := randomContent(n, 3)
	c.FeatureFormat = graph.Bfloat16
	half = write(t, c)
	c.FeatureFormat = graph.Float32
	for i, x := range c.Features.Dense {
		c.Features.Dense[i] = graph.Narrow(x).Float32()
	}
	return half, write(t, c)
}

// Training with features in bfloat16 gives the bits of training with the rounded numbers in float32: for
// every network, order of products and use of features.
func TestHalfFeatures(t *testing.T) {
	t.Parallel()
	half, rounded := halfAndRounded(t, 90)
	function := functiontest.Build(t)
	all := map[string]func(*Config){
		"applied first":        func(c *Config) { c.Order = "apply-first" },
		"masked":               func(c *Config) { c.Order, c.InputDropout = "apply-first", 0.3 },
		"gathered":             func(c *Config) { c.Order, c.CacheInput = "gather-first", "off" },
		"gathered, 2 ranks":    func(c *Config) { c.Order, c.CacheInput, c.Ranks = "gather-first", "off", 2 },
		"sage, gathered":       func(c *Config) { c.Model, c.Order, c.CacheInput, c.Ranks = "sage", "gather-first", "off", 2 },
		"sage, cached":         func(c *Config) { c.Model, c.CacheInput, c.Ranks = "sage", "on", 2 },
		"cached in bf16":       func(c *Config) { c.CacheInput, c.Features, c.Gather = "on", "bf16", "bf16" },
		"int8":                 func(c *Config) { c.Codec, c.Ranks, c.CacheInput = "int8", 2, "off" },
		"computed ghosts":      func(c *Config) { c.Model, c.RecomputeGhosts, c.Ranks = "sage-pool", "layers:1", 3 },
		"gathered ghosts":      func(c *Config) { ghostsGathered(c); c.CacheInput = "off" },
		"cached ghosts":        func(c *Config) { ghostsGathered(c); c.CacheInput = "on" },
		"history":              func(c *Config) { c.Batch = "history:3" },
		"variates":             func(c *Config) { c.Batch = "variates:3,2" },
		"neighbours":           func(c *Config) { c.Model, c.Batch, c.Ranks = "sage", "neighbor:3,4,3", 2 },
		"clusters":             func(c *Config) { c.Batch = "cluster:4,2" },
		"asynchronous":         func(c *Config) { c.Mode, c.Staleness = "async", 0 },
		"scratch":              func(c *Config) { c.Scratch, c.Memory, c.ForceMemory = t.TempDir(), "1MB", true },
		"functions":            func(c *Config) { onFunctions(c, function) },
		"functions with codec": func(c *Config) { onFunctions(c, function); c.Model, c.LambdaCodec = "sage", "int8" },
	}
	for i, k := range model.Kinds() {
		all["network "+k] = func(c *Config) { c.Model, c.Ranks, c.Layers = k, 1+i%2, 3 }
	}
	copies := map[string]bool{"applied first": false, "masked": false, "sage, cached": false, "computed ghosts": false,
		"network mlp": false, "gathered": true}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Hidden, c.Epochs, c.Threads, c.Intervals, c.EvalEvery, c.CheckpointEvery = 4, 2, 1, 2, 1, "off"
			c.InputDropout = 0
			all[name](&c)
			got, want := sameOnBoth(t, c, half, rounded, nil)
			more := got.Summary.PerRank[0].ArrayBytes - want.Summary.PerRank[0].ArrayBytes
			if copied, known := copies[name]; known && copied != (more > 0) {
				t.Errorf("%d bytes of arrays more than with float32, a float32 copy: %t", more, copied)
			}
		})
	}
}

func ghostsGathered(c *Config) {
	c.Model, c.Order, c.RecomputeGhosts, c.Ranks = "sage", "gather-first", "layers:1", 2
}

func onFunctions(c *Config, path string) {
	c.Tensor, c.Lambda, c.LambdaFunction, c.Order = config.TensorLambda, config.LambdaLocal, path, "apply-first"
}

// sameOnBoth compares training on two datasets, and the predictions of both models. place is nil for the
// processor.
func sameOnBoth(t *testing.T, c Config, half, rounded string, place func(*member)) (got, want trained) {
	t.Helper()
	run := func(data string) trained {
		if place != nil {
			return trainWith(t, c, data, place)
		}
		return train(t, c, data)
	}
	want = run(rounded)
	c.Out += "-half"
	got = run(half)
	sameLosses(t, "bfloat16", got.losses(), want.losses(), 0)
	if !bytes.Equal(got.model, want.model) {
		t.Error("model.safetensors differs")
	}
	return got, want
}

// Predictions on a dataset in bfloat16 equal those on the rounded numbers.
func TestHalfFeaturesPredict(t *testing.T) {
	t.Parallel()
	half, rounded := halfAndRounded(t, 90)
	c := quick(t)
	c.Epochs, c.Model = 3, "sage"
	train(t, c, rounded)
	want, got := predict(t, c.Out, rounded, 2), predict(t, c.Out, half, 1)
	const name = "predictions.csv"
	a, err := os.ReadFile(filepath.Join(want, name))
	b, err2 := os.ReadFile(filepath.Join(got, name))
	if err != nil || err2 != nil || !bytes.Equal(a, b) {
		t.Errorf("%s differs (%v, %v)", name, err, err2)
	}
}

// On a device, features in bfloat16 are float32, and give the same bits.
func TestHalfFeaturesOnADevice(t *testing.T) {
	t.Parallel()
	half, rounded := halfAndRounded(t, 30)
	for k, order := range []string{"gather-first", "apply-first"} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			c := quick(t)
			c.Hidden, c.Epochs, c.Threads, c.Order, c.CacheInput, c.Ranks = 4, 1, 1, order, "off", 1+k
			c.EvalEvery, c.CheckpointEvery = 0, "off"
			sameOnBoth(t, c, half, rounded, onDevice(t, standIn))
		})
	}
}

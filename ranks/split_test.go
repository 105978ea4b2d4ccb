package ranks

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/cuda/device"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/ptx"
	"siafu/ranks/config"
)

// split returns a short run with tensor work on GPUs and graph work on processors.
func split(t testing.TB, ranks, servers int) Config {
	c := onGPUs(t, ranks, servers)
	c.GraphWork = config.GraphCPU
	return c
}

// With --tensor cuda --graph cpu losses equal the processor's except for the order of float32
// sums: 1e-5 is the tolerance with everything on GPUs.
func TestTensorWorkOnGPUs(t *testing.T) {
	t.Parallel()
	directed, sparse := generatedSmall(t, true), bag(t)
	one, three, both := []int{1}, []int{3}, []int{1, 3} // ranks
	for name, of := range hosttest.Share(t, 2, map[string]struct {
		ranks []int
		set   func(c *Config) (data string)
	}{
		"gcn":      {both, func(c *Config) string { return directed }},
		"sage":     {three, func(c *Config) string { c.Model = "sage"; return directed }},
		"gat":      {one, func(c *Config) string { c.Model, c.Heads, c.AttentionDropout = "gat", 2, 0.3; return directed }},
		"gin":      {three, func(c *Config) string { c.Model, c.Layers = "gin", 3; return directed }},
		"ÂX, bf16": {one, func(c *Config) string { c.InputDropout, c.CacheInput, c.Features = 0, "on", "bf16"; return directed }},
		"powers, bf16": {three, func(c *Config) string {
			c.Model, c.InputDropout, c.CacheInput, c.Features = "sign", 0, "on", "bf16"
			return sparse
		}},
		"gather first":  {one, func(c *Config) string { c.Order, c.Layers = "gather-first", 3; return directed }},
		"apply first":   {one, func(c *Config) string { c.Order, c.Layers = "apply-first", 3; return directed }},
		"recompute":     {three, func(c *Config) string { c.Recompute, c.Layers, c.Model, c.Heads = true, 4, "gat", 2; return directed }},
		"sparse":        {three, func(c *Config) string { c.Model, c.CacheInput = "sage", "off"; return sparse }},
		"rare evals":    {one, func(c *Config) string { c.EvalEvery, c.Dropout = 2, 0; return directed }},
		"cuBLAS":        {one, func(c *Config) string { c.Hidden = 48; return directed }},
		"nopipe, codec": {three, func(c *Config) string { c.Mode, c.Codec = "nopipe", "int8"; return directed }},
	}) {
		for _, ranks := range of.ranks {
			t.Run(fmt.Sprint(name, " ranks=", ranks), func(t *testing.T) {
				c := split(t, ranks, ranks/3)
				c.Intervals, c.Epochs = 5, 2
				data := of.set(&c)
				c.Tensor, c.GraphWork = "cpu", ""
				want := train(t, c, data)
				c.Tensor, c.GraphWork, c.Out = config.TensorCUDA, config.GraphCPU, c.Out+"-gpus"
				k := racked(1, 0)
				place := k.with
				if name == "cuBLAS" {
					place = func(r *member) {
						r.gpus = k.gpus()
						r.gpus.open = func(int) (device.Device, error) { return ptx.New(ptx.Settings{Libraries: true}), nil }
					}
				}
				sameLosses(t, "GPUs", trainWith(t, c, data, place).losses(), want.losses(), 1e-5)
				if log, err := os.ReadFile(filepath.Join(c.Out, "log.txt")); err != nil || strings.Contains(string(log),
					"stand-in for cuBLAS") != (name == "cuBLAS") || !strings.Contains(string(log), " and cuda PTX") {
					t.Errorf("%v\n%s", err, log)
				}
				for n, d := range k.made {
					if !d.closed || !d.memory {
						t.Errorf("device %d: closed %t, used %t", n, d.closed, d.memory)
					}
				}
			})
		}
	}
}

// A device without memory, or one that fails during tasks, ends the run with an error, in
// synchronous mode and in bounded asynchrony, whose arrays are freed before the engine.
func TestTensorWorkFails(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for name, f := range map[string]struct {
		open func() device.Device
		says string
	}{
		"no room": {func() device.Device { return ptx.New(ptx.Settings{Memory: 16 << 10}) }, "too little memory for this run"},
		"fails": {func() device.Device {
			d := &mortal{Device: standIn()}
			d.left.Store(40)
			return d
		}, "the device failed: an illegal address"},
	} {
		for _, mode := range []string{"pipe", "async"} {
			for _, ranks := range []int{1, 3} {
				t.Run(fmt.Sprint(name, " ", mode, " ranks=", ranks), func(t *testing.T) {
					c := split(t, ranks, 0)
					c.Mode, c.Intervals, c.ForceMemory = mode, 5, true
					err := refused(c, data, io.Discard, func(r *member) {
						r.gpus = racked(1, 0).gpus()
						r.gpus.open = func(int) (device.Device, error) { return f.open(), nil }
					})
					if err == nil || !strings.Contains(err.Error(), f.says) {
						t.Errorf("%v", err)
					}
				})
			}
		}
	}
}

// A run saved on the processor resumes with tensor work on GPUs, also on a rank without
// vertices.
func TestTensorWorkGoesOn(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	owner := make([]int, 400)
	for v := range owner {
		owner[v] = v % 2 // of three
	}
	partitionBy(t, data, "", 3, owner...)
	c := split(t, 3, 0)
	c.Tensor, c.GraphWork, c.Epochs, c.Partitioner = "cpu", "", 6, ""
	want := train(t, c, data)
	c.Out, c.Epochs, c.CheckpointEvery = c.Out+"-gpus", 3, "3e"
	train(t, c, data)
	c.Tensor, c.GraphWork, c.Epochs, c.Resume = config.TensorCUDA, config.GraphCPU, 6, "auto"
	sameLosses(t, "resumed", trainWith(t, c, data, racked(2, 0).with).losses(), want.losses(), 1e-5)
}

package config

import (
	"maps"
	"testing"
)

// Identities are those of the checkpoints of version 0.1.0, which must resume.
func TestIdentity(t *testing.T) {
	always := map[string]string{
		"layers": "2", "hidden": "16", "dropout": "0.5", "input-dropout": "0.5", "optimizer": "adam", "lr": "0.01",
		"weight-decay": "0.0005", "weight-decay-on": "first", "seed": "1", "initializer": "small-logits",
	}
	for model, of := range map[string]struct {
		set  func(c *Config)
		more map[string]string
	}{
		"gcn":  {func(*Config) {}, nil},
		"sgc":  {func(c *Config) { c.Products = "bf16" }, map[string]string{"products": "bf16"}},
		"gat":  {func(c *Config) { c.Heads = 2 }, map[string]string{"heads": "2", "output-heads": "1", "attention-dropout": "0.5"}},
		"sign": {func(*Config) {}, map[string]string{"residual": "none", "activation": "auto", "alpha": "0", "theta": "0", "hops": "3"}},
		"gcnii": {func(c *Config) { c.Init = "weights" }, map[string]string{
			"residual": "none", "activation": "auto", "alpha": "0.1", "theta": "0.5", "hops": "0", "inner-decay": "0.01",
		}},
		"gin": {func(c *Config) { c.Optimizer, c.Norm, c.Batch, c.InputScale = "sgd", "layer", "neighbor:4,4", 2 }, map[string]string{
			"optimizer": "sgd", "momentum": "0.9", "batch": "neighbor:4,4", "history-format": "float32", "input-scale": "2",
			"residual": "none", "activation": "auto", "alpha": "0", "theta": "0", "hops": "0", "norm": "layer",
		}},
	} {
		c := Defaults()
		c.Model, c.Initializer = model, "small-logits"
		of.set(&c)
		want := maps.Clone(always)
		want["model"] = model
		maps.Copy(want, of.more)
		if c.Init != "" {
			delete(want, "initializer")
		}
		if got := c.Identity(c.Network(10, 3)); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
	c := Defaults()
	for f := range c.Options() {
		if name, ok := f.Tag.Lookup("identity"); ok && identities[name] == nil {
			t.Errorf("%s: the tag identity names %q, which is no condition", f.Name, name)
		}
	}
}

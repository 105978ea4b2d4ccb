package config

import (
	"slices"
	"strings"
	"testing"

	"siafu/graph"
)

// Each flag without effect is reported once, with the reason. Flags with an effect are not.
func TestIdle(t *testing.T) {
	classes := &graph.Meta{Task: graph.MultiClass, Classes: 3, FeatureDim: 5}
	links := &graph.Meta{Task: graph.Links, FeatureDim: 5}
	for name, tc := range map[string]struct {
		meta *graph.Meta
		set  func(c *Config)
		want []string
	}{
		"nothing said": {classes, func(*Config) {}, nil},
		"heads": {classes, func(c *Config) { c.Heads, c.OutputHeads = 8, 2 },
			[]string{"--heads=8 has no effect with --model=gcn", "--heads output=2 has no effect with --model=gcn"}},
		"heads of attention": {classes, func(c *Config) { c.Heads, c.OutputHeads, c.AttentionDropout, c.Model = 8, 2, 0.1, "gatv2" }, nil},
		"no attention dropout": {classes, func(c *Config) { c.AttentionDropout, c.Softmax, c.Model = 0.1, "relation", "rgat" },
			[]string{"--dropout attention=0.1 has no effect with --model=rgat"}},
		"relations of other networks": {classes, func(c *Config) { c.Bases, c.Softmax, c.EdgeResidual, c.Model = 2, "relation", 0.1, "rgcn" },
			[]string{"--model edge-residual=0.1 has no effect with --model=rgcn", "--model softmax=relation has no effect"}},
		"heads of one layer": {classes, func(c *Config) { c.Heads, c.Layers, c.Model = 8, 1, "gat" },
			[]string{"--heads=8 has no effect with --layers=1"}},
		"of other networks": {classes, func(c *Config) { c.Hops, c.Powers, c.Theta, c.Alpha, c.InnerDecay = 2, 2, 0.3, 0.3, 0.3 },
			[]string{"--model hops=", "--model steps=", "--model theta=", "--weight-decay inner=", "--model alpha="}},
		"gcnii": {classes, func(c *Config) {
			c.Model, c.Layers, c.Theta, c.Alpha, c.InnerDecay = "gcnii", 1, 0.3, 0.3, 0.3
			c.Hidden = 7
		}, nil},
		"appnp":   {classes, func(c *Config) { c.Model, c.Hops, c.Alpha = "appnp", 3, 0.3 }, nil},
		"sign":    {classes, func(c *Config) { c.Model, c.Powers = "sign", 2 }, nil},
		"a share": {classes, func(c *Config) { c.Residual, c.Layers, c.Alpha = "initial", 3, 0.3 }, nil},
		"one layer": {classes, func(c *Config) { c.Layers, c.Hidden = 1, 7 },
			[]string{"--hidden=7 has no effect with --model=gcn --layers=1"}},
		"one layer that jumps": {classes, func(c *Config) { c.Layers, c.Hidden, c.Jumping = 1, 7, "cat" }, nil},
		"one matrix":           {classes, func(c *Config) { c.Model, c.Hidden = "sgc", 7 }, []string{"--hidden=7"}},
		"momentum": {classes, func(c *Config) { c.Momentum = 0.5 },
			[]string{"--optimizer momentum=0.5 has no effect with --optimizer=adam"}},
		"momentum of sgd": {classes, func(c *Config) { c.Optimizer, c.Momentum = "sgd", 0.5 }, nil},
		"embeddings": {classes, func(c *Config) { c.Embedding, c.LinkHidden = 7, 7 },
			[]string{"--embedding=7 has no effect with the task multiclass",
				"--link-score hidden=7 has no effect with the task multiclass"}},
		"pairs": {links, func(c *Config) { c.Embedding, c.LinkHidden, c.LinkDropout = 7, 7, 0.1 },
			[]string{"--link-score hidden=7 has no effect with --link-score=dot", "--link-score dropout="}},
		"pairs by mlp": {links, func(c *Config) { c.Embedding, c.LinkScore, c.LinkLayers = 7, linkPerceptron, 2 }, nil},
		"history": {classes, func(c *Config) { c.HistoryFormat = "bf16" },
			[]string{"--batch format=bf16 has no effect with --batch=full"}},
		"batches of a history": {classes, func(c *Config) { c.HistoryFormat, c.Batch = "bf16", "history:3" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := Defaults()
			tc.set(&c)
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := c.Idle(tc.meta); !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// No recipe has a flag that changes nothing.
func TestRecipesAreNotIdle(t *testing.T) {
	for _, r := range recipes {
		c := Defaults()
		c.Recipe = r.Name
		if err := Parse(&c, "recipe", strings.Fields(r.Flags)...); err != nil {
			t.Fatal(err)
		}
		if got := c.Idle(&graph.Meta{Task: graph.MultiClass, Classes: 3, FeatureDim: 5}); got != nil &&
			!strings.Contains(r.Flags, "links") {
			t.Errorf("%s: %q", r.Name, got)
		}
	}
}

package config

import (
	"fmt"

	"siafu/kernels/model"
)

// identities has the conditions in the tag identity of options. If the condition holds, a resumed
// run must have the same value of the option.
var identities = map[string]func(c *Config, net model.Spec) bool{
	"always":    func(*Config, model.Spec) bool { return true },
	"random":    func(c *Config, _ model.Spec) bool { return c.Init == "" },
	"rounded":   func(c *Config, _ model.Spec) bool { return c.RoundsProducts() },
	"momentum":  func(c *Config, _ model.Spec) bool { return c.Optimizer == "sgd" },
	"batches":   func(c *Config, _ model.Spec) bool { return c.Batches() > 0 },
	"pipelines": func(c *Config, _ model.Spec) bool { return c.Pipeline != "" },
	"scaled":    func(c *Config, _ model.Spec) bool { return c.InputScale != 1 },
	"loss":      func(c *Config, _ model.Spec) bool { return c.LabelSmoothing > 0 || c.Weighs() || c.Task != "" },
	"pool":      func(c *Config, _ model.Spec) bool { return c.kind().Takes(model.OptionPoolHidden) },
	"inner":     func(c *Config, _ model.Spec) bool { return c.kind().Takes(model.OptionInnerDecay) },
	"design":    func(_ *Config, net model.Spec) bool { return net.Design != (model.Design{}) },
	"relations": func(c *Config, _ model.Spec) bool { return c.kind().Relational },
	"related":   func(_ *Config, net model.Spec) bool { return net.Design.RelationSoftmax || net.Design.EdgeResidual > 0 },
	"projected": func(_ *Config, net model.Spec) bool { return net.Design.Project },
	"mixed":     func(_ *Config, net model.Spec) bool { return net.Design.Kinds != "" },
	"norm":      func(_ *Config, net model.Spec) bool { return net.Design.Norm != "" },
	"jumping":   func(_ *Config, net model.Spec) bool { return net.Design.Jumping != "" },
	"scores":    func(_ *Config, net model.Spec) bool { return net.Design.ScoreLayers > 0 },
	"triples":   func(c *Config, _ model.Spec) bool { return c.LinkNegatives > 1 },
	"score":     func(_ *Config, net model.Spec) bool { return net.Design.ScoreLayers > 0 || net.Design.Score != "" },
	"attention": func(_ *Config, net model.Spec) bool { return net.Attends() },
}

// Identity returns the options that influence the numbers of a run, by flag. They are stored in
// checkpoints, and a resumed run must have the same ones. net is the network for the dataset.
func (c *Config) Identity(net model.Spec) map[string]string {
	d := net.Design
	resolved := map[string]any{
		"input-dropout": net.InputDropout, "attention-dropout": net.AttentionDropout, "link-dropout": net.ScoreDropout,
		"alpha": d.Alpha, "theta": d.Theta, "hops": d.Hops,
	}
	of := map[string]string{}
	for f, value := range c.Options() {
		if holds, ok := identities[f.Tag.Get("identity")]; ok && holds(c, net) {
			flag := f.Tag.Get("toml")
			if of[flag] = fmt.Sprint(value); resolved[flag] != nil {
				of[flag] = fmt.Sprint(resolved[flag])
			}
		}
	}
	return of
}

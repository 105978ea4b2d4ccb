package config

import (
	"fmt"
	"slices"

	"siafu/graph"
)

// Idle returns, for each flag with a non-default value and no effect on this run, one
// sentence with the reason. Usually another flag is missing. This is not an error, because
// lists of networks share flags (siafu sweep).
func (c *Config) Idle(m *graph.Meta) []string {
	net, usual := c.NetworkOf(m), Defaults()
	with := func(flag, value string) string { return fmt.Sprintf("with --%s=%s", flag, value) }
	model := func(names ...string) (bool, string) {
		return slices.Contains(names, c.Model), with("model", c.Model)
	}
	attends := func() (bool, string) { return net.Attends(), with("model", c.Model) }
	links := func() (bool, string) { return m.Task == graph.Links, "with the task " + m.Task }
	perceptron := func() (bool, string) {
		if m.Task != graph.Links {
			return links()
		}
		return c.LinkScore == linkPerceptron, with("link-score", c.LinkScore)
	}
	var list []string
	for _, f := range []struct {
		flag string
		acts func() (acts bool, without string)
	}{
		{"heads", func() (bool, string) {
			if net.Attends() {
				return c.hides(), with("layers", "1")
			}
			return attends()
		}},
		{"output-heads", attends},
		{"attention-dropout", attends},
		{"hops", func() (bool, string) { return model("appnp") }},
		{"steps", func() (bool, string) { return model("sign") }},
		{"theta", func() (bool, string) { return model("gcnii") }},
		{"inner-decay", func() (bool, string) { return model("gcnii") }},
		{"alpha", func() (bool, string) {
			if is, _ := model("gcnii", "appnp"); is {
				return true, ""
			}
			return c.Residual == "initial", with("model", c.Model) + " --residual=" + c.Residual
		}},
		{"hidden", func() (bool, string) {
			return c.hides(), with("model", c.Model) + fmt.Sprintf(" --layers=%d", c.Layers)
		}},
		{"momentum", func() (bool, string) { return c.Optimizer == "sgd", with("optimizer", c.Optimizer) }},
		{"embedding", links},
		{"link-layers", perceptron},
		{"link-hidden", perceptron},
		{"link-dropout", perceptron},
		{"history-format", func() (bool, string) {
			kind := c.Batching().Kind
			return kind == History || kind == Variates, with("batch", c.Batch)
		}},
	} {
		if value := c.value(f.flag); value != usual.value(f.flag) {
			if acts, without := f.acts(); !acts {
				list = append(list, fmt.Sprintf("--%s=%s has no effect %s", f.flag, value, without))
			}
		}
	}
	return list
}

// hides reports whether the network has hidden layers, whose width is --hidden.
func (c *Config) hides() bool {
	return c.Model != "sgc" && (c.Layers > 1 || c.Jumping != "off" || c.Model == "gcnii")
}

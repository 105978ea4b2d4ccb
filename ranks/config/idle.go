package config

import (
	"fmt"

	"siafu/graph"
	"siafu/kernels/model"
)

// Idle returns, for each flag with a non-default value and no effect on this run, one
// sentence with the reason. Usually another flag is missing. This is not an error, because
// lists of networks share flags (siafu sweep).
func (c *Config) Idle(m *graph.Meta) []string {
	net, usual := c.NetworkOf(m), Defaults()
	with := func(flag, value string) string { return fmt.Sprintf("with --%s=%s", flag, value) }
	option := func(o model.Option) (bool, string) { return c.kind().Takes(o), with("model", c.Model) }
	hides := net.HasHidden(c.Layers)
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
				return hides, with("layers", "1")
			}
			return attends()
		}},
		{"output-heads", attends},
		{"attention-dropout", func() (bool, string) { return net.Attends() && !c.kind().KeepsEdges, with("model", c.Model) }},
		{"hops", func() (bool, string) { return option(model.OptionHops) }},
		{"steps", func() (bool, string) { return option(model.OptionPowers) }},
		{"theta", func() (bool, string) { return option(model.OptionTheta) }},
		{"inner-decay", func() (bool, string) { return option(model.OptionInnerDecay) }},
		{"bases", func() (bool, string) { return option(model.OptionBases) }},
		{"blocks", func() (bool, string) { return option(model.OptionBlocks) }},
		{"edge-residual", func() (bool, string) { return option(model.OptionEdgeResidual) }},
		{"softmax", func() (bool, string) { return option(model.OptionSoftmax) }},
		{"alpha", func() (bool, string) {
			return c.kind().Takes(model.OptionAlpha) || c.Residual == "initial", with("model", c.Model) + " --residual=" + c.Residual
		}},
		{"hidden", func() (bool, string) {
			return hides, with("model", c.Model) + fmt.Sprintf(" --layers=%d", c.Layers)
		}},
		{"momentum", func() (bool, string) { return c.Optimizer == "sgd", with("optimizer", c.Optimizer) }},
		{"embedding", links},
		{"link-layers", perceptron},
		{"link-hidden", perceptron},
		{"link-dropout", perceptron},
		{"link-negatives", func() (bool, string) {
			if m.Task != graph.Links {
				return links()
			}
			return m.Relations != nil, "on edges without relations"
		}},
		{"history-format", func() (bool, string) {
			kind := c.Batching().Kind
			return kind == History || kind == Variates, with("batch", c.Batch)
		}},
	} {
		if value := c.value(f.flag); value != usual.value(f.flag) {
			if acts, without := f.acts(); !acts {
				list = append(list, fmt.Sprintf("%s has no effect %s", Spell(f.flag, value), without))
			}
		}
	}
	return list
}

package config

import (
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/ranks/schedule/pipeline"
)

// ByMemory is the value of --pipeline balance=memory for equal activations.
const ByMemory = "memory"

// Pipelining is the parsed --pipeline.
type Pipelining struct {
	Stages    int // of consecutive layers, each on a graph rank; 0: no pipeline
	Pipelines int // each on its partition of the graph
}

// Ranks returns the number of graph ranks.
func (p Pipelining) Ranks() int { return p.Stages * p.Pipelines }

// Pipelining parses --pipeline. For no and for invalid text the result is zero.
func (c *Config) Pipelining() Pipelining {
	stages, rest, more := strings.Cut(c.Pipeline, ",")
	p, err := strconv.Atoi(stages)
	d, failed := 1, error(nil)
	if more {
		d, failed = strconv.Atoi(rest)
	}
	if err != nil || failed != nil || p < 1 || d < 1 || p > mostLayers || d > mostLayers {
		return Pipelining{}
	}
	return Pipelining{p, d}
}

// Partitions returns the number of partitions of the graph in a run with the given number of members
// that have one: one for each, or for each pipeline.
func (c *Config) Partitions(members int) int { return members / max(c.Pipelining().Stages, 1) }

// PipelineSettings returns the settings of a step of a pipeline.
func (c *Config) PipelineSettings() pipeline.Settings {
	s := pipeline.Settings{Stages: c.Pipelining().Stages, Microbatches: c.Microbatches}
	if c.Schedule == pipeline.GPipe.String() {
		s.Schedule = pipeline.GPipe
	}
	for r := pipeline.Off; r <= pipeline.EagerForwardBackward; r++ {
		if r.String() == c.Redundancy {
			s.Redundancy = r
		}
	}
	return s
}

// checkPipeline returns a fault for an invalid --pipeline or --pipeline microbatches=N.
func (c *Config) checkPipeline() error {
	p, b := c.Pipelining(), c.Batching()
	wrong := func(text string, of ...any) *fault.Error { return fault.New(fault.Usage, "train", "", text, of...) }
	switch {
	case c.Pipeline == "":
		return nil
	case p.Stages == 0:
		return wrong("--pipeline=%q", c.Pipeline).Then("it must be P or P,D: P stages of layers, 1 or more, and D pipelines, 1 or more")
	case b.Kind != Cluster:
		return wrong("--pipeline=%s with --batch=%s", c.Pipeline, c.Batch).
			Then("set --batch cluster:N,Q: a microbatch is Q joined clusters, which need no rows of other microbatches")
	case p.Stages > c.Network(1, 1).Layers():
		return wrong("--pipeline=%s with a network of %d layers", c.Pipeline, c.Network(1, 1).Layers()).
			Then("use at most %d stages, or raise --layers", c.Network(1, 1).Layers())
	case p.Stages == 1 && c.Redundancy != pipeline.Off.String():
		return wrong("--pipeline redundancy=%s with --pipeline=%s", c.Redundancy, c.Pipeline).
			Then("use 2 stages or more: a stage is protected by another rank")
	case c.miniBatches()%c.Microbatches != 0:
		return wrong("--pipeline microbatches=%d with --batch=%s, which has %d microbatches in an epoch",
			c.Microbatches, c.Batch, c.miniBatches()).
			Then("use a number of microbatches that divides %d: each update has the same number", c.miniBatches())
	}
	return nil
}

// miniBatches returns the number of mini-batches in an epoch of --batch cluster.
func (c *Config) miniBatches() int {
	b := c.Batching()
	return (b.Clusters + b.Joined - 1) / b.Joined
}

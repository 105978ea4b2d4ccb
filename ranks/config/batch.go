package config

import (
	"fmt"
	"strconv"
	"strings"

	"siafu/graph/fault"
	"siafu/halo/history"
	"siafu/ranks/tune"
)

// What an epoch is cut into; empty is Full.
const (
	Full     = "full"
	History  = "history"  // history:N
	Variates = "variates" // variates:N,D
)

// Batches is how many mini-batches an epoch has on each rank, 0 where it is one pass
// over the whole graph.
func (c *Config) Batches() int {
	n, _ := c.batch()
	return n
}

// Samples is how many neighbours a vertex samples in a mini-batch, 0 where all are
// gathered from.
func (c *Config) Samples() int {
	_, d := c.batch()
	return d
}

// batch is both, zeros of what is none.
func (c *Config) batch() (batches, samples int) {
	kind, rest, counted := strings.Cut(c.Batch, ":")
	if !counted {
		return 0, 0
	}
	count, each, sampled := strings.Cut(rest, ",")
	n, err := strconv.Atoi(count)
	switch {
	case err != nil || n < 1:
	case kind == History && !sampled:
		return n, 0
	case kind == Variates && sampled:
		if d, err := strconv.Atoi(each); err == nil && d > 0 {
			return n, d
		}
	}
	return 0, 0
}

// Steps is how often so many epochs update the weights.
func (c *Config) Steps(epochs int) int { return epochs * max(c.Batches(), 1) }

// HistoryRows is how histories keep rows.
func (c *Config) HistoryRows() history.Format {
	f, _ := history.FormatOf(c.HistoryFormat)
	return f
}

// mostBatches keeps what ranks agree on within messages, and updates within 32 bits.
const mostBatches = 1 << 16

// checkBatch refuses what does not go together with mini-batches.
func (c *Config) checkBatch() error {
	n := c.Batches()
	switch {
	case c.Batch == "" || c.Batch == Full:
		return nil
	case n < 1 || n > mostBatches:
		return fault.New(fault.Usage, "train", "", "--batch=%q", c.Batch).
			Then("it must be full, history:N, or variates:N,D with D neighbours, 1 or more; N is from 1 to %d", mostBatches)
	case c.Steps(c.Epochs) > mostEpochs:
		return fault.New(fault.Usage, "train", "", "--batch=%s with --epochs=%d", c.Batch, c.Epochs).Then("they must make %d updates at most", mostEpochs)
	}
	refuse := func(flag string, value any, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--batch=%s with --%s=%v", c.Batch, flag, value).Then("%s", remedy)
	}
	list, _ := tune.Candidates(c.Codec)
	switch {
	case c.Mode == "async":
		return refuse("mode", c.Mode, "choose --mode pipe: ranks go through their batches together")
	case !c.Exact():
		return refuse("refresh", c.Refresh, "leave --refresh out: rows outside of a batch come from the history")
	case c.Samples() > 0 && (c.Model != "gcn" || c.Layers < 2):
		return refuse("model", fmt.Sprintf("%s --layers=%d", c.Model, c.Layers), "choose gcn of two layers or more, or history:N")
	case c.Samples() > 0 && (c.HistoryFormat != "float32" || c.Features == "bf16"):
		return refuse("history-format", fmt.Sprintf("%s --features=%s", c.HistoryFormat, c.Features), "leave both at float32, or choose history:N")
	case c.Model == "gat" || c.Model == "mlp":
		return refuse("model", c.Model, "choose gcn, sage or gin, which gather rows as the layer before has left them")
	case c.InputDropout > 0:
		return refuse("input-dropout", c.InputDropout, "leave it out: the input layer's ÂX is computed once, for all batches")
	case c.CacheInput == "off":
		return refuse("cache-input", c.CacheInput, "leave --cache-input out: batches share the input layer's ÂX")
	case c.Order == "apply-first":
		return refuse("order", c.Order, "leave --order out: the history has rows as they are before their weights")
	case c.Tensor != "cpu":
		return refuse("tensor", c.Tensor, "leave --tensor out")
	case list != nil:
		return refuse("codec", c.Codec, "name the codec, which is that of evaluations, or leave --codec out")
	}
	return nil
}

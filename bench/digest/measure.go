package digest

import (
	"context"
	"math"
	"slices"
	"strconv"

	"siafu/bench/trials"
	"siafu/kernels/model"
)

// bench is a running comparison.
type bench struct {
	Options
	systems []System
	graphs  []trials.Graph
	rates   []float64
	archive *trials.Archive
}

// cell is one setting of the comparison: a graph, a network and a number of graph ranks.
type cell struct {
	graph trials.Graph
	model string
	ranks int
}

// flags returns the common flags of all trainings in a cell.
func (b *bench) flags(c cell, s System, more ...string) []string {
	list := append([]string{"--model", c.model, "--servers", strconv.Itoa(s.Servers), "--partitioner", b.Partitioner,
		"--checkpoint-every", "off"}, b.Train...)
	list = append(list, s.Flags...)
	if s.UnitRows && model.KindOf(c.model).TakesRowNorms() {
		list = append(list, "--norm", "l2")
	}
	return append(list, more...)
}

// systemsOf returns the systems of a list that train a network.
func systemsOf(list []System, model string) []System {
	return slices.DeleteFunc(slices.Clone(list), func(s System) bool { return len(s.Networks) > 0 && !slices.Contains(s.Networks, model) })
}

// members returns the number of ranks of a run: the graph ranks and the system's parameter servers.
func (c cell) members(s System) int { return c.ranks + s.Servers }

// accuracy trains a system once per seed and returns the results, fewer if the time limit is
// reached. A system whose results depend on timing uses the first link.
func (b *bench) accuracy(ctx context.Context, c cell, s System) ([]*trials.Result, error) {
	return b.accuracyOver(ctx, c, s, b.rates[0])
}

// accuracyOver does the same with another link for systems whose results depend on timing.
func (b *bench) accuracyOver(ctx context.Context, c cell, s System, rate float64) ([]*trials.Result, error) {
	var list []*trials.Result
	for seed := range b.Seeds {
		t := trials.Trial{Data: c.graph.Data, Ranks: c.members(s), Flags: b.flags(c, s,
			"--epochs", strconv.Itoa(b.Epochs), "--eval-every", "1", "--seed", strconv.Itoa(seed+1))}
		if s.Timely {
			t.Rate = rate
		}
		r, err := b.archive.Get(ctx, t)
		if err != nil {
			return nil, err
		}
		if r != nil {
			list = append(list, r)
		}
	}
	return list, nil
}

// times returns the timing runs of each system over a link, by system. Runs of different systems are
// interleaved. For a system whose results depend on timing it returns the accuracy runs.
func (b *bench) times(ctx context.Context, c cell, systems []System, rate float64, more ...string) (map[string][]*trials.Result, error) {
	all := map[string][]*trials.Result{}
	for turn := range b.Turns {
		for _, s := range systems {
			if s.Timely {
				s.Flags = append(slices.Clone(s.Flags), more...)
				list, err := b.accuracyOver(ctx, c, s, rate)
				if err != nil {
					return nil, err
				}
				all[s.Name] = list
				continue
			}
			r, err := b.archive.Get(ctx, trials.Trial{Data: c.graph.Data, Ranks: c.members(s), Rate: rate, Turn: turn,
				Flags: b.flags(c, s, append([]string{"--epochs", strconv.Itoa(max(b.Timed, s.Period+1)), "--eval-every", "0"}, more...)...)})
			if err != nil {
				return nil, err
			}
			if r != nil {
				all[s.Name] = append(all[s.Name], r)
			}
		}
	}
	return all, nil
}

func tests(list []*trials.Result) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * r.Summary.TestAccAtBestVal
	}
	return x
}

// reaching returns the epochs and the seconds after which the mean best validation accuracy reaches a
// target: +Inf if never, NaN without runs. The argument each is the seconds of an epoch; a system
// whose results depend on timing uses its measured times.
func reaching(list []*trials.Result, s System, target, each float64) (epochs, seconds float64) {
	epochs = trials.Reaching(list, target)
	switch {
	case math.IsInf(epochs, 1) || math.IsNaN(epochs):
		return epochs, epochs
	case !s.Timely:
		return epochs, epochs * each
	}
	for _, r := range list {
		for _, e := range r.Epochs[:int(epochs)] {
			seconds += e.Seconds / float64(len(list))
		}
	}
	return epochs, seconds
}

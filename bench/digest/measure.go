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

// setting is a graph, network and number of ranks on which systems are compared.
type setting struct {
	graph trials.Graph
	model string
	ranks int
}

// flags returns the flags of a system's trainings in a setting.
func (b *bench) flags(c setting, s System, more ...string) []string {
	list := append([]string{"--model", c.model, "--servers", strconv.Itoa(s.Servers), "--partitioner", b.Partitioner,
		"--checkpoint-every", "off"}, b.Train...)
	list = append(list, s.Flags...)
	if s.UnitRows && model.KindOf(c.model).TakesRowNorms() {
		list = append(list, "--norm", "l2")
	}
	return append(list, more...)
}

// systemsOf returns the systems in list that can train a network.
func systemsOf(list []System, model string) []System {
	return slices.DeleteFunc(slices.Clone(list), func(s System) bool { return len(s.Networks) > 0 && !slices.Contains(s.Networks, model) })
}

// worldSize returns the number of ranks of a system, including its servers.
func (c setting) worldSize(s System) int { return c.ranks + s.Servers }

// accuracy returns the accuracy trainings of a system, one per seed. The list is shorter after
// the time limit. A Timely system uses the first link rate.
func (b *bench) accuracy(ctx context.Context, c setting, s System) ([]*trials.Result, error) {
	return b.accuracyOver(ctx, c, s, b.rates[0])
}

// accuracyOver returns the accuracy trainings with a link rate for Timely systems.
func (b *bench) accuracyOver(ctx context.Context, c setting, s System, rate float64) ([]*trials.Result, error) {
	var list []*trials.Result
	for seed := range b.Seeds {
		t := trials.Trial{Data: c.graph.Data, Ranks: c.worldSize(s), Flags: b.flags(c, s,
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

// times returns the timed trainings of each system over a link, by system name. Repetitions of
// the systems are interleaved. For a Timely system, it returns the accuracy trainings.
func (b *bench) times(ctx context.Context, c setting, systems []System, rate float64, more ...string) (map[string][]*trials.Result, error) {
	all := map[string][]*trials.Result{}
	for repetition := range b.Turns {
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
			r, err := b.archive.Get(ctx, trials.Trial{Data: c.graph.Data, Ranks: c.worldSize(s), Rate: rate, Turn: repetition,
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

func testAccuracies(list []*trials.Result) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * r.Summary.TestAccAtBestVal
	}
	return x
}

// reaching returns the number of epochs, and seconds, after which the trainings' mean best
// validation accuracy reaches target. It returns +Inf if never reached, NaN without trainings.
// An epoch takes epochSeconds, except for a Timely system, whose measured epoch times are added.
func reaching(list []*trials.Result, s System, target, epochSeconds float64) (epochs, seconds float64) {
	epochs = trials.Reaching(list, target)
	switch {
	case math.IsInf(epochs, 1) || math.IsNaN(epochs):
		return epochs, epochs
	case !s.Timely:
		return epochs, epochs * epochSeconds
	}
	for _, r := range list {
		for _, e := range r.Epochs[:int(epochs)] {
			seconds += e.Seconds / float64(len(list))
		}
	}
	return epochs, seconds
}

package digest

import (
	"context"
	"math"
	"slices"
	"strconv"

	"siafu/ranks/runfolder"
)

// bench is a comparison under way.
type bench struct {
	Options
	parts   []part
	systems []System
	graphs  []Graph
	rates   []float64
	archive archive
}

// cell is what systems are compared on.
type cell struct {
	graph Graph
	model string
	ranks int
}

// flags are those of all trainings in a cell.
func (b *bench) flags(c cell, s System, more ...string) []string {
	list := append([]string{"--model", c.model, "--servers", strconv.Itoa(s.Servers), "--partitioner", b.Partitioner,
		"--checkpoint-every", "off"}, b.Train...)
	return append(append(list, s.Flags...), more...)
}

// systemsOf are those of a list that train a network.
func systemsOf(list []System, model string) []System {
	return slices.DeleteFunc(slices.Clone(list), func(s System) bool { return len(s.Networks) > 0 && !slices.Contains(s.Networks, model) })
}

// members is how many ranks a system needs for a cell's graph ranks.
func (c cell) members(s System) int { return c.ranks + s.Servers }

// accuracy are the trainings of a system for accuracy, one a seed; fewer where the
// time was over. Those of a timely system go over the first link.
func (b *bench) accuracy(ctx context.Context, c cell, s System) ([]*Result, error) {
	return b.accuracyOver(ctx, c, s, b.rates[0])
}

// accuracyOver is the same with another link for timely systems.
func (b *bench) accuracyOver(ctx context.Context, c cell, s System, rate float64) ([]*Result, error) {
	var list []*Result
	for seed := range b.Seeds {
		t := Trial{Data: c.graph.Data, Ranks: c.members(s), Flags: b.flags(c, s,
			"--epochs", strconv.Itoa(b.Epochs), "--eval-every", "1", "--seed", strconv.Itoa(seed+1))}
		if s.Timely {
			t.Rate = rate
		}
		r, err := b.archive.get(ctx, t)
		if err != nil {
			return nil, err
		}
		if r != nil {
			list = append(list, r)
		}
	}
	return list, nil
}

// times are the trainings of systems for time over a link, in turns, by system; of a
// timely system those for accuracy.
func (b *bench) times(ctx context.Context, c cell, systems []System, rate float64, more ...string) (map[string][]*Result, error) {
	all := map[string][]*Result{}
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
			r, err := b.archive.get(ctx, Trial{Data: c.graph.Data, Ranks: c.members(s), Rate: rate, Turn: turn,
				Flags: b.flags(c, s, append([]string{"--epochs", strconv.Itoa(b.Timed), "--eval-every", "0"}, more...)...)})
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

// perEpoch is the mean of a number over a training's epochs but the first, the least
// of all turns; NaN of none. A mean, since periodic systems have epochs of two kinds.
func perEpoch(turns []*Result, of func(runfolder.Epoch) float64) float64 {
	best := math.NaN()
	for _, r := range turns {
		sum, n := 0.0, 0
		for _, e := range r.Epochs[min(1, len(r.Epochs)):] {
			sum, n = sum+of(e), n+1
		}
		if mean := sum / float64(n); !(mean >= best) {
			best = mean
		}
	}
	return best
}

func seconds(e runfolder.Epoch) float64 { return e.Seconds }
func sent(e runfolder.Epoch) float64    { return float64(e.GhostBytesSent) }

// best are the best validation accuracies of trainings, in percent.
func best(list []*Result) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * r.Summary.BestValAcc
	}
	return x
}

// meanStd are the mean and the standard deviation of x; NaN of none.
func meanStd(x []float64) (mean, std float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		std += (v - mean) * (v - mean) / n
	}
	if len(x) == 0 {
		return math.NaN(), math.NaN()
	}
	return mean, math.Sqrt(std)
}

// rising are the best validation accuracies, in percent, after 0, 1, 2 … epochs of a
// training. An epoch's line tells of the weights that it starts from.
func rising(r *Result) []float64 {
	x, best := make([]float64, len(r.Epochs)+1), 0.0
	for k, e := range r.Epochs {
		if e.ValAcc != nil {
			best = max(best, 100**e.ValAcc)
		}
		x[k] = best
	}
	x[len(r.Epochs)] = max(best, 100*r.Summary.FinalValAcc)
	return x
}

// reaching is after how many epochs, and seconds, of trainings that take each seconds an
// epoch the mean of their best validation accuracies has come to a target; +Inf for
// never, NaN of no trainings. Of a timely system seconds are its own.
func reaching(list []*Result, s System, target, each float64) (epochs, seconds float64) {
	if len(list) == 0 {
		return math.NaN(), math.NaN()
	}
	mean := rising(list[0])
	for _, r := range list[1:] {
		next := rising(r)
		mean = mean[:min(len(mean), len(next))]
		for k := range mean {
			mean[k] += next[k]
		}
	}
	k := slices.IndexFunc(mean, func(x float64) bool { return x/float64(len(list)) >= target })
	if k < 0 {
		return math.Inf(1), math.Inf(1)
	}
	if !s.Timely {
		return float64(k), float64(k) * each
	}
	for _, r := range list {
		for _, e := range r.Epochs[:k] {
			seconds += e.Seconds / float64(len(list))
		}
	}
	return float64(k), seconds
}

package neutronstar

import (
	"context"
	"math"
	"slices"
	"strconv"

	"siafu/bench/trials"
)

// handlings are the ways to handle dependencies, by the paper's name and the value of
// --recompute-ghosts. The first one is the base of comparisons.
var handlings = []struct{ name, value string }{{"DepComm", "none"}, {"DepCache", "all"}, {"hybrid", "auto"}}

type bench struct {
	Options
	graphs []trials.Graph
	rates  []float64
	ready  map[place]bool // graphs with partitions
}

// place is a graph on a number of ranks.
type place struct {
	data  string
	ranks int
}

// setting has a link in bytes a second; 0: in one process.
type setting struct {
	trials.Setting
	rate float64
}

// settings returns all graphs and networks on a number of ranks with a link.
func (b *bench) settings(ranks int, rate float64) (list []setting) {
	for _, g := range b.graphs {
		for _, m := range b.Models {
			list = append(list, setting{trials.Setting{Graph: g, Model: m, Ranks: ranks}, rate})
		}
	}
	return list
}

// partitioned runs trials for the bench after their graphs are partitioned.
type partitioned struct {
	*bench
	trials.Runner
}

// Run runs a trial. Before the first one of a graph and number of ranks, it trains for an epoch
// in one process.
func (p partitioned) Run(ctx context.Context, t trials.Trial, folder string) (*trials.Result, error) {
	if at := (place{t.Data, t.Ranks}); !p.ready[at] {
		first := t
		first.Rate, first.Flags = 0, append(slices.Clone(t.Flags), "--epochs", "1")
		if _, err := p.Runner.Run(ctx, first, ""); err != nil {
			return nil, err
		}
		p.ready[at] = true
	}
	return p.Runner.Run(ctx, t, folder)
}

// cost is the cost of a handling in a setting: minima over repetitions, NaN if not measured.
type cost struct {
	epoch, setup           float64 // seconds of an epoch, and before the first one
	rows, sent, setupBytes float64 // bytes: ghost rows and interfaces in an epoch, interfaces before the first one
	resident, arrays       float64 // bytes of the largest graph rank
	uncounted              string  // reason why interfaces have no bytes
}

// costs trains in a setting with each handling, interleaved, and returns their costs.
func (b *bench) costs(t *trials.Sheet, c setting) []cost {
	turns := make([][]*trials.Result, len(handlings))
	for turn := range b.Turns {
		for k, h := range handlings {
			flags := slices.Concat([]string{"--model", c.Model, "--servers", "0", "--partitioner", b.Partitioner,
				"--checkpoint-every", "off", "--eval-every", "0"},
				b.Train, []string{"--recompute-ghosts", h.value, "--epochs", strconv.Itoa(b.Epochs)})
			one := trials.Trial{Data: c.Graph.Data, Ranks: c.Ranks, Rate: c.rate, Turn: turn, Flags: flags}
			r, err := t.GetFrom(one, partitioned{b, t.Runner})
			t.Fail(err)
			if r != nil {
				turns[k] = append(turns[k], r)
			}
		}
	}
	list := make([]cost, len(handlings))
	for k := range list {
		list[k] = costOf(turns[k])
	}
	return list
}

func costOf(turns []*trials.Result) cost {
	c := cost{epoch: trials.PerEpoch(turns, trials.Seconds), rows: trials.PerEpoch(turns, trials.Sent)}
	c.setup = least(turns, func(r *trials.Result) float64 {
		first := r.Epochs[0]
		return first.Elapsed - first.Seconds - first.EvalSeconds
	})
	c.sent = least(turns, func(r *trials.Result) float64 { return traffic(r).Epoch })
	c.setupBytes = least(turns, func(r *trials.Result) float64 { return traffic(r).Setup })
	c.resident = least(turns, func(r *trials.Result) float64 { return trials.Largest(r, trials.PeakBytes) })
	c.arrays = least(turns, func(r *trials.Result) float64 { return trials.Largest(r, trials.ArrayBytes) })
	for _, r := range turns {
		if r.Traffic != nil && r.Traffic.Missing != "" {
			c.uncounted = r.Traffic.Missing
		}
	}
	return c
}

// traffic returns the traffic of a training, NaN if it was not counted.
func traffic(r *trials.Result) trials.Traffic {
	if r.Traffic == nil || r.Traffic.Missing != "" {
		return trials.Traffic{Setup: math.NaN(), Epoch: math.NaN()}
	}
	return *r.Traffic
}

// least returns the minimum of a number over the trainings that have it, NaN without one.
func least(turns []*trials.Result, of func(*trials.Result) float64) float64 {
	best := math.NaN()
	for _, r := range turns {
		if x := of(r); !(x >= best) && !math.IsNaN(x) {
			best = x
		}
	}
	return best
}

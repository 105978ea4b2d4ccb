package neutronstar

import (
	"context"
	"math"
	"slices"

	"siafu/bench/trials"
)

// handlings are the ways to handle dependencies, by the paper's names. The first one is the base of
// comparisons.
var handlings = []trials.System{{Name: "DepComm", Flags: []string{"--recompute-ghosts", "none"}},
	{Name: "DepCache", Flags: []string{"--recompute-ghosts", "all"}}, {Name: "hybrid", Flags: []string{"--recompute-ghosts", "auto"}}}

// partitioned runs trials after their graphs are partitioned.
type partitioned struct {
	trials.Runner
	ready map[place]bool // graphs with partitions
}

// place is a graph on a number of ranks.
type place struct {
	data  string
	ranks int
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

// costs has the costs of a handling in a setting by their columns: minima over repetitions, NaN if not
// measured.
var costs = map[string]func(turns []*trials.Result) float64{
	"ghost MB/epoch|%.2f":      func(turns []*trials.Result) float64 { return trials.PerEpoch(turns, trials.Sent) / 1e6 },
	"interface MB/epoch|%.2f":  least(func(r *trials.Result) float64 { return traffic(r).Epoch / 1e6 }),
	"peak MB of a rank|%.2f":   least(func(r *trials.Result) float64 { return trials.Largest(r, trials.PeakBytes) / 1e6 }),
	"arrays MB|%.2f":           arrays,
	"arrays MB of a rank|%.2f": arrays,
	"setup s|%.3f":             setupSeconds,
	"setup MB|%.2f":            setupMB,
}

// fetches has the columns with the difference of a cost from that of the first handling.
var fetches = map[string]func(turns []*trials.Result) float64{"fetch s|%.3f": setupSeconds, "fetch MB|%.2f": setupMB}

var (
	arrays       = least(func(r *trials.Result) float64 { return trials.Largest(r, trials.ArrayBytes) / 1e6 })
	setupMB      = least(func(r *trials.Result) float64 { return traffic(r).Setup / 1e6 })
	setupSeconds = least(func(r *trials.Result) float64 {
		first := r.Epochs[0]
		return first.Elapsed - first.Seconds - first.EvalSeconds
	})
)

// traffic returns the traffic of a training, NaN if it was not counted.
func traffic(r *trials.Result) trials.Traffic {
	if r.Traffic == nil || r.Traffic.Missing != "" {
		return trials.Traffic{Setup: math.NaN(), Epoch: math.NaN()}
	}
	return *r.Traffic
}

// least returns the minimum of a number over the trainings that have it, NaN without one.
func least(of func(*trials.Result) float64) func([]*trials.Result) float64 {
	return func(turns []*trials.Result) float64 {
		best := math.NaN()
		for _, r := range turns {
			if x := of(r); !(x >= best) && !math.IsNaN(x) {
				best = x
			}
		}
		return best
	}
}

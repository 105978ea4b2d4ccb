package refresh

import (
	"siafu/halo"

	"siafu/internal/elementary"
)

var sampleKind = kind{
	entry: entry{Name: "sample", Form: "sample:P",
		Help: "each vertex is a ghost with probability P in an epoch, for all layers and ranks; " +
			"rows and gradients are multiplied by 1/P, except in attention (BNS-GCN, MLSys'22, algorithm 1)"},
	timetable: sample, samples: true,
	share: func(p Policy, _ int) (float64, bool) { return p.Value, p.Value == 1 },
	least: 1, params: []parameter{
		value("P a probability above 0 and up to 1", func(x float64) bool { return x > 0 && x <= 1 }, 0),
	},
}

// sample returns the timetable of BNS-GCN (Wan et al., "BNS-GCN: Efficient full-graph training of
// graph convolutional networks with partition-parallelism and random boundary node sampling",
// MLSys'22, algorithm 1): in each epoch every ghost is present with probability P, for all layers
// and all ranks that have it. Only rows and gradients of present ghosts are sent. They are scaled
// by 1/P, so that sums are unbiased; absent rows are zeros. Attention gives absent rows no weight
// and its weights sum to 1, so its rows are not scaled.
func sample(p Policy, o halo.HistoryOptions) timetable {
	after := float32(1 / p.Value)
	for _, s := range o.Shapes {
		if s.Scores > 0 {
			after = 1
		}
	}
	return timetable{
		leaving: func(halo.Slot) int { return 0 },
		blend:   func(bool, bool) blend { return blend{before: 0, after: after} },
		selector: func(epoch int) func(uint32) bool {
			return func(id uint32) bool { return Drawn(o.Seed, epoch, id, p.Value) }
		},
	}
}

// Drawn reports whether a vertex is in the sample of an epoch. It depends only on the
// arguments, so that all ranks select the same vertices.
func Drawn(seed uint64, epoch int, id uint32, p float64) bool {
	x := hash(hash(hash(seed)^uint64(epoch)) ^ uint64(id))
	return float64(x>>11) < p*(1<<53)
}

func hash(x uint64) uint64 { return elementary.Mix(x + elementary.Golden) }

package multilevel

import (
	"math/rand/v2"
	"runtime"

	"siafu/internal/workers"
)

const (
	batch = 4 // number of partitions in a batch
	// If the cuts of a batch differ by at most 1/similar of the largest, no further batch follows.
	similar = 100
)

// batches returns the maximum number of batches. It is lower for many parts, which need many
// bisections per partition.
func batches(parts int) int { return max(1, min(2, 16/parts)) }

// initial partitions the coarsest graph several times by recursive bisection and refinement. It
// returns the best result.
func initial(g *level, limits []weights, seed uint64) []uint32 {
	var best choice
	for b := range batches(len(limits)) {
		tries := make([]*refiner, batch)
		workers.Blocks(runtime.GOMAXPROCS(0), batch, 1, func(_, i, _ int) {
			rng := rand.New(rand.NewPCG(seed, uint64(b*batch+i)))
			tries[i] = newRefiner(g, divide(g, limits, rng), limits)
			tries[i].run()
		})
		least, most := tries[0].cut(), tries[0].cut()
		for _, r := range tries {
			least, most = min(least, r.cut()), max(most, r.cut())
			best.offer(r)
		}
		if most-least <= most/similar {
			break
		}
	}
	return best.owner
}

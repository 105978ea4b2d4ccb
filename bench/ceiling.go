package bench

import (
	"time"

	"siafu/graph/mapped"
	"siafu/kernels"
)

// ceiling is what this machine can do at most, as far as kernels can tell.
type ceiling struct {
	read float64 // bytes/s from memory, all threads
	peak float64 // float32 multiplications and additions a second, all threads
}

// measureCeiling reads an array of the given bytes, which should exceed every
// cache, and multiplies small matrices that stay in one.
func measureCeiling(team *kernels.Team, bytes int, budget time.Duration) ceiling {
	return ceiling{read: readBandwidth(team, bytes, budget), peak: multiplyAddPeak(team, budget)}
}

// atLeast is the better of two measurements.
func (c ceiling) atLeast(d ceiling) ceiling {
	return ceiling{read: max(c.read, d.read), peak: max(c.peak, d.peak)}
}

// readBandwidth sums columns: one vector addition for each vector that comes
// from memory, into sums that stay in the first-level cache.
func readBandwidth(team *kernels.Team, bytes int, budget time.Duration) float64 {
	const width = 256
	b := bed{team, mapped.NewArena()}
	defer b.arena.Free()
	rows := bytes / 4 / width
	x, sums := b.floats(rows*width, 1), make([]float32, width)
	seconds := least(budget, func() { kernels.ColumnSums(team, sums, rows, width, x, false) })
	return float64(rows*width*4) / seconds
}

// multiplyAddPeak is the best of a few products whose right operand fits into
// the first-level cache; the left one streams from the second.
func multiplyAddPeak(team *kernels.Team, budget time.Duration) float64 {
	const rows, maxK, maxN = 96 * 4, 256, 128
	b := bed{team, mapped.NewArena()}
	defer b.arena.Free()
	m := rows * team.Workers()
	left, right, dst := b.floats(m*maxK, 1), b.floats(maxK*maxN, 2), b.floats(m*maxN, 3)
	best := 0.0
	for _, s := range []struct{ n, k int }{{32, 256}, {64, 128}, {64, 256}, {128, 64}, {128, 128}} {
		seconds := least(budget/5, func() { kernels.MatMul(team, dst, m, s.n, s.k, left, right, false) })
		best = max(best, 2*float64(m*s.n*s.k)/seconds)
	}
	return best
}

package bench

import (
	"time"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// ceiling has the machine's peak rates, as measured by kernels.
type ceiling struct {
	read   float64 // bytes/s from an array larger than any cache, all threads
	cached float64 // bytes/s from an array of the size of a layer's operands
	peak   float64 // float32 multiplications and additions a second, all threads
}

// cachedShare is the ratio of the large array to one that a large third-level cache may hold:
// 64 MiB instead of 1 GiB.
const cachedShare = 16

// measureCeiling reads an array of the given bytes, which should exceed every
// cache, and a smaller one, and multiplies small matrices that stay in a cache.
func measureCeiling(team *kernels.Team, bytes int, budget time.Duration) ceiling {
	return ceiling{
		read:   readBandwidth(team, bytes, budget),
		cached: readBandwidth(team, bytes/cachedShare, budget),
		peak:   multiplyAddPeak(team, budget),
	}
}

func (c ceiling) atLeast(d ceiling) ceiling {
	return ceiling{read: max(c.read, d.read), cached: max(c.cached, d.cached), peak: max(c.peak, d.peak)}
}

// readBandwidth gathers rows in storage order, 256 into one: one multiply-add per vector from
// memory, and almost no writes. ColumnSums, which does not prefetch, reads a quarter less.
func readBandwidth(team *kernels.Team, bytes int, budget time.Duration) float64 {
	const width, sum = 128, 256
	b := fixture{team, mapped.NewArena()}
	defer b.arena.Free()
	sums := bytes / 4 / width / sum
	x, dst := b.mat(sums*sum, width, 1), b.mat(sums, width, 2)
	offsets := b.regular(sums, sum)
	g := kernels.Gather{Begin: offsets[:sums], End: offsets[1:], Cols: mapped.Make[uint32](b.arena, sums*sum)}
	for i := range g.Cols {
		g.Cols[i] = uint32(i)
	}
	seconds := minSeconds(budget, func() { team.SpMM(dst, g.Edges(), x, false) })
	return float64(x.Bytes()) / seconds
}

// multiplyAddPeak returns the best rate of a few products whose right operand fits into the
// first-level cache; the left one streams from the second.
func multiplyAddPeak(team *kernels.Team, budget time.Duration) float64 {
	const rows, maxK, maxN = 96 * 4, 256, 128
	b := fixture{team, mapped.NewArena()}
	defer b.arena.Free()
	m := rows * team.Workers()
	left, right, dst := b.mat(m, maxK, 1), b.mat(maxK, maxN, 2), b.mat(m, maxN, 3)
	best := 0.0
	for _, s := range []struct{ n, k int }{{32, 256}, {64, 128}, {64, 256}, {128, 64}, {128, 128}} {
		seconds := minSeconds(budget/5, func() { team.MatMul(dst.Reshape(m, s.n), left.Reshape(m, s.k), right.Reshape(s.k, s.n), false) })
		best = max(best, 2*float64(m*s.n*s.k)/seconds)
	}
	return best
}

package bench

import (
	"time"

	"siafu/internal/elementary"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// fixture has the operands' memory and the team of a measured kernel.
type fixture struct {
	team  *kernels.Team
	arena *mapped.Arena
}

// floats returns n values in ±1 that depend on their position and the seed.
func (b *fixture) floats(n int, seed uint64) []float32 {
	v := mapped.Make[float32](b.arena, n)
	b.team.Run(n, 1<<16, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v[i] = float32(int32(scramble(uint64(i)^seed<<40))) / (1 << 31)
		}
	})
	return v
}

// mat returns a matrix of such values, and room one of zeros.
func (b *fixture) mat(rows, cols int, seed uint64) kernels.Mat {
	return kernels.HostMat(rows, cols, b.floats(rows*cols, seed))
}

func (b *fixture) zeros(rows, cols int) kernels.Mat {
	return kernels.NewMat(b.team, b.arena, rows, cols)
}

// ids returns n numbers below the given one.
func (b *fixture) ids(n, below int, seed uint64) []uint32 {
	v := mapped.Make[uint32](b.arena, n)
	b.team.Run(n, 1<<16, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v[i] = uint32(scramble(uint64(i)^seed<<40) >> 32 * uint64(below) >> 32)
		}
	})
	return v
}

// regular returns the offsets of n rows of the same length.
func (b *fixture) regular(n, length int) []int64 {
	offsets := mapped.Make[int64](b.arena, n+1)
	for r := range offsets {
		offsets[r] = int64(r) * int64(length)
	}
	return offsets
}

// scramble returns a random number that depends on z.
func scramble(z uint64) uint64 { return elementary.Mix(z + elementary.Golden) }

// minSeconds repeats call until the budget is used, at least once, and returns the
// least seconds of a repetition.
func minSeconds(budget time.Duration, call func()) float64 {
	best := time.Duration(1<<63 - 1)
	for begin := time.Now(); ; {
		before := time.Now()
		call()
		now := time.Now()
		best = min(best, now.Sub(before))
		if now.Sub(begin) >= budget {
			return max(best.Seconds(), 1e-9)
		}
	}
}

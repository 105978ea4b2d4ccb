package worldtest

import (
	"fmt"
	"math"

	"siafu/ranks/world"
)

var sums = []check{
	{"SumFloat32s", reduction(world.SumFloat32s, func(rank, i int) float32 { return float32(term(rank, i)) }, add)},
	{"SumFloat64s", reduction(world.SumFloat64s, term, add)},
	{"SumInt64s", sumInt64s},
	{"MinInt64s", reduction(world.MinInt64s, integer, func(a, b int64) int64 { return min(a, b) })},
	{"MaxFloat64s", reduction(world.MaxFloat64s, term, func(a, b float64) float64 { return max(a, b) })},
}

var sumInt64s = reduction(world.SumInt64s, integer, add)

// sumLengths are lengths of vectors that are summed in different ways, divisible by the number
// of ranks and not.
var sumLengths = []int{0, 1, 2, 5, 511, 513, 1025, 4096, 20_011}

// term returns element i of a rank's vector. The elements differ so much in magnitude that
// another order of addition changes the bits of sums.
func term(rank, i int) float64 {
	if i%17 == 3 {
		return math.Copysign(0, -1) // the sum of minus zeros is minus zero
	}
	random := uint64(1+rank*7919+i) * 0x9e3779b97f4a7c15
	return (float64(random>>11)/(1<<52) - 1) * magnitudes[(i+3*rank)%len(magnitudes)]
}

var magnitudes = [...]float64{1e-4, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4}

// integer returns element i of a rank's vector of integers. Different ranks have the least one.
func integer(rank, i int) int64 { return int64(i*i) + int64(rank*7919+i*31)%101<<40 }

func add[T int64 | float32 | float64](a, b T) T { return a + b }

// reduction returns a test that compares the result of reduce, bit by bit, with the ranks' values
// combined in the order of ranks.
func reduction[T int64 | float32 | float64](reduce func(world.Comm, []T) error, value func(rank, i int) T,
	combine func(a, b T) T) func(world.Comm) error {
	return func(c world.Comm) error {
		for _, n := range sumLengths {
			x := make([]T, n)
			for i := range x {
				x[i] = value(c.Rank(), i)
			}
			if err := reduce(c, x); err != nil {
				return err
			}
			for i, got := range x {
				want := value(0, i)
				for r := 1; r < c.Size(); r++ {
					want = combine(want, value(r, i))
				}
				// Also distinguishes the zeros, which are the only equal values with different bits.
				if got != want || math.Signbit(float64(got)) != math.Signbit(float64(want)) {
					return fmt.Errorf("%d elements: result %d is %v, want %v", n, i, got, want)
				}
			}
		}
		return nil
	}
}

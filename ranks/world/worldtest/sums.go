package worldtest

import (
	"fmt"
	"math"

	"siafu/ranks/world"
)

var sums = []check{
	{"SumFloat32s", sumFloat32s},
	{"SumFloat64s", sumFloat64s},
	{"SumInt64s", sumInt64s},
	{"MinInt64s", minInt64s},
	{"MaxFloat64s", maxFloat64s},
}

// sumLengths are lengths of vectors, on both sides of where the way to sum
// changes, divisible by the number of ranks and not.
var sumLengths = []int{0, 1, 2, 5, 511, 513, 1025, 4096, 20_011}

// term is element i of a rank's vector: of very different magnitudes, so that
// another order of addition gives other bits.
func term(rank, i int) float64 {
	if i%17 == 3 {
		return math.Copysign(0, -1) // the sum of minus zeros is minus zero
	}
	return math.Sin(float64(1+rank*7919+i)) * math.Pow(10, float64((i+3*rank)%9-4))
}

func sumFloat32s(c world.Comm) error {
	for _, n := range sumLengths {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(term(c.Rank(), i))
		}
		if err := world.SumFloat32s(c, x); err != nil {
			return err
		}
		for i, got := range x {
			want := float32(term(0, i))
			for r := 1; r < c.Size(); r++ {
				want += float32(term(r, i))
			}
			if math.Float32bits(got) != math.Float32bits(want) {
				return fmt.Errorf("%d elements: sum %d is %v (%#x), want %v (%#x)",
					n, i, got, math.Float32bits(got), want, math.Float32bits(want))
			}
		}
	}
	return nil
}

func sumFloat64s(c world.Comm) error {
	for _, n := range sumLengths {
		x := make([]float64, n)
		for i := range x {
			x[i] = term(c.Rank(), i)
		}
		if err := world.SumFloat64s(c, x); err != nil {
			return err
		}
		for i, got := range x {
			want := term(0, i)
			for r := 1; r < c.Size(); r++ {
				want += term(r, i)
			}
			if math.Float64bits(got) != math.Float64bits(want) {
				return fmt.Errorf("%d elements: sum %d is %v, want %v", n, i, got, want)
			}
		}
	}
	return nil
}

func sumInt64s(c world.Comm) error {
	for _, n := range sumLengths {
		x := make([]int64, n)
		for i := range x {
			x[i] = int64(i*i) - int64(c.Rank())<<40
		}
		if err := world.SumInt64s(c, x); err != nil {
			return err
		}
		size := int64(c.Size())
		for i, got := range x {
			if want := int64(i*i)*size - (size*(size-1)/2)<<40; got != want {
				return fmt.Errorf("%d elements: sum %d is %d, want %d", n, i, got, want)
			}
		}
	}
	return nil
}

func minInt64s(c world.Comm) error {
	size := c.Size()
	// Element i is smallest on the rank after i%size.
	value := func(rank, i int) int64 { return int64((rank-i)%size+size) % int64(size) * -1000 }
	for _, n := range sumLengths {
		low := make([]int64, n)
		for i := range low {
			low[i] = value(c.Rank(), i)
		}
		if err := world.MinInt64s(c, low); err != nil {
			return err
		}
		for i := range low {
			if want := int64(size-1) * -1000; low[i] != want {
				return fmt.Errorf("%d elements: smallest %d is %d, want %d", n, i, low[i], want)
			}
		}
	}
	return nil
}

func maxFloat64s(c world.Comm) error {
	for _, n := range sumLengths {
		x := make([]float64, n)
		for i := range x {
			x[i] = term(c.Rank(), i)
		}
		if err := world.MaxFloat64s(c, x); err != nil {
			return err
		}
		for i, got := range x {
			want := term(0, i)
			for r := 1; r < c.Size(); r++ {
				want = max(want, term(r, i))
			}
			if got != want {
				return fmt.Errorf("%d elements: largest %d is %v, want %v", n, i, got, want)
			}
		}
	}
	return nil
}

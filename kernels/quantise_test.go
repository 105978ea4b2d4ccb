package kernels_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Rounding to few bits passes the conformance suite with every instruction
// set.
func TestFewBitsOfEveryInstructionSet(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		few, err := kernels.FewWith(set)
		if err != nil {
			t.Skip(err)
		}
		kerneltest.Extent(t, few.Extent)
		kerneltest.Codes(t, few.Codes)
		kerneltest.CodeValues(t, few.Values)
		kerneltest.HalfRows(t, few.NarrowRow, few.WidenRow)
	})
}

// A grid begins at or below the least element and ends at or above the largest, and its step
// is at most 1/128 longer than necessary.
func TestGridSpansTheRow(t *testing.T) {
	for _, bits := range []int{2, 4, 8} {
		top := math.Exp2(float64(bits)) - 1
		for _, c := range []struct{ lo, hi float32 }{
			{0, 0}, {0, 1}, {-1, 1}, {-3.3, -1.1}, {1003.9, 1003.9}, {1e-40, 3e-40}, {0, 1e-45}, {-1e37, 1e37}, {1e6, 1e6 + 1},
			{float32(math.Copysign(0, -1)), 0.3},
		} {
			g, ok := kernels.NewGrid(c.lo, c.hi, bits)
			offset, step := float64(g.Offset.Float32()), float64(g.Step.Float32())
			if !ok || offset > float64(c.lo) || offset+step*top < float64(c.hi) {
				t.Errorf("[%v, %v] in %d bits: from %v in steps of %v", c.lo, c.hi, bits, offset, step)
			}
			if need := (float64(c.hi) - offset) / top; step > max(need*(1+1.0/128), 1.0/(1<<110)) {
				t.Errorf("[%v, %v] in %d bits: a step of %v where %v is enough", c.lo, c.hi, bits, step, need)
			}
		}
		for _, c := range []struct{ lo, hi float32 }{{-3.4e38, 3.4e38}, {-math.MaxFloat32, 0}, {0, math.MaxFloat32}} {
			if _, ok := kernels.NewGrid(c.lo, c.hi, bits); ok {
				t.Errorf("a grid over [%v, %v]", c.lo, c.hi)
			}
		}
	}
}

// Over many epochs the mean of a rounded row is the row, within five standard errors. The
// variance of a rounded element is at most a quarter of a step squared, and the position of an
// element is known to 2⁻¹⁴ of a step. No error reaches a step.
func TestRoundingIsUnbiased(t *testing.T) {
	const cols, epochs = 70, 4000
	x := kerneltest.Values(cols, 6)
	x[3], x[40] = 0, 2.5
	for _, bits := range []int{2, 4, 8} {
		g, _ := kernels.NewGrid(slices.Min(x), slices.Max(x), bits)
		step := float64(g.Step.Float32())
		codes, got, sums := make([]byte, kernels.CodeBytes(cols, bits)+kernels.CodeSlack), make([]float32, cols), make([]float64, cols)
		for epoch := range epochs {
			r := kernels.NewRounding(9, epoch, 1, false)
			r.Codes(codes, x, g, bits, 12345)
			g.Values(got, codes, bits, false)
			for i, v := range got {
				if math.Abs(float64(v)-float64(x[i])) > step*(1+1e-5) {
					t.Fatalf("%d bits: %v becomes %v, more than a step of %v away", bits, x[i], v, step)
				}
				sums[i] += float64(v)
			}
		}
		for i, sum := range sums {
			if d := math.Abs(sum/epochs - float64(x[i])); d > step*(5*math.Sqrt(0.25/epochs)+1.0/(1<<14)) {
				t.Errorf("%d bits: %v is %v on average, steps of %v", bits, x[i], sum/epochs, step)
			}
		}
	}
}

// Random numbers differ between seeds, epochs, layers, directions and vertices.
func TestRoundingDraws(t *testing.T) {
	x := kerneltest.Values(64, 6)
	g, _ := kernels.NewGrid(slices.Min(x), slices.Max(x), 8)
	codes := func(r kernels.Rounding, id uint32) []byte {
		dst := make([]byte, 64+kernels.CodeSlack)
		r.Codes(dst, x, g, 8, id)
		return dst[:64]
	}
	base := codes(kernels.NewRounding(1, 2, 3, false), 4)
	for name, other := range map[string][]byte{
		"seed":      codes(kernels.NewRounding(2, 2, 3, false), 4),
		"epoch":     codes(kernels.NewRounding(1, 3, 3, false), 4),
		"layer":     codes(kernels.NewRounding(1, 2, 4, false), 4),
		"direction": codes(kernels.NewRounding(1, 2, 3, true), 4),
		"vertex":    codes(kernels.NewRounding(1, 2, 3, false), 5),
		"sum":       codes(kernels.NewRounding(1, 2, 3, false).OfSums(0), 4),
	} {
		if slices.Equal(base, other) {
			t.Errorf("another %s draws the same numbers", name)
		}
	}
	if slices.Equal(codes(kernels.NewRounding(1, 2, 3, false).OfSums(0), 4), codes(kernels.NewRounding(1, 2, 3, false).OfSums(1), 4)) {
		t.Error("sums of another rank draw the same numbers")
	}
}

func BenchmarkFewBits(b *testing.B) {
	for _, cols := range []int{16, 41, 128} {
		const rows = 128
		x := kerneltest.Values(rows*cols, 1)
		for i := range x {
			x[i] = max(x[i], 0)
		}
		for _, bits := range []int{8, 4, 2} {
			stride := kernels.CodeBytes(cols, bits)
			codes, grids := make([]byte, rows*stride+kernels.CodeSlack), make([]kernels.Grid, rows)
			r := kernels.NewRounding(1, 2, 3, false)
			encode := func() {
				for i := range rows {
					row := x[i*cols : (i+1)*cols]
					lo, hi, _ := kernels.Extent(row)
					grids[i], _ = kernels.NewGrid(lo, hi, bits)
					r.Codes(codes[i*stride:], row, grids[i], bits, uint32(i))
				}
			}
			decode := func(add bool) func() {
				dst := make([]float32, cols)
				return func() {
					for i := range rows {
						grids[i].Values(dst, codes[i*stride:], bits, add)
					}
				}
			}
			for name, f := range map[string]func(){"encode": encode, "decode": decode(false), "add": decode(true)} {
				b.Run(fmt.Sprintf("cols=%d/bits=%d/%s", cols, bits, name), func(b *testing.B) {
					b.SetBytes(int64(4 * rows * cols))
					for b.Loop() {
						f()
					}
				})
			}
		}
	}
}

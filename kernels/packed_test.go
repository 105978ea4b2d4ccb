package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Gathers of packed rows give the same bits as dense rows, with zeros of either sign and NaNs.
func TestPackedRows(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	use(t, team, "avx512")
	const rows, locals = 500, 530
	g := packedEdges(rows, locals)
	for _, width := range []int{48, 50, 64, 95, 96, 113, 128} {
		for _, full := range []float64{0, 0.05, 0.5, 0.8} {
			t.Run(fmt.Sprintf("width=%d/full=%v", width, full), func(t *testing.T) {
				values := sparseValues(rows*width, full)
				x, target := kernels.HostMat(rows, width, values),
					kernels.HostMat(rows, width, slices.Repeat([]float32{float32(math.NaN())}, rows*width))
				p, kept := kernels.NewPacked(target, make([]uint64, kernels.PackedWords*rows)), 0
				for _, at := range [][2]int{{310, rows}, {0, 1 + 120}, {121, 310}} {
					kept += team.Pack(p, at[0], x.Part(at[0], at[1]))
				}
				if want := nonzeros(values); kept != want {
					t.Errorf("%d values packed, of %d", kept, want)
				}
				for _, e := range []kernels.Edges{g.Edges(), unscaled(g).Edges()} {
					for _, add := range []bool{false, true} {
						want, got := kerneltest.Values(rows*width, 5), kerneltest.Values(rows*width, 5)
						team.SpMM(kernels.HostMat(rows, width, want), e, x, add)
						team.SpMMPacked(kernels.HostMat(rows, width, got), e, p, int64(kept), add)
						if !slices.Equal(mapped.Bytes(got), mapped.Bytes(want)) {
							t.Errorf("add %v: other bits", add)
						}
					}
				}
			})
		}
	}
}

// Rows packed in place equal rows packed elsewhere to the bit. Adjacent memory stays
// unchanged.
func TestPackedInPlace(t *testing.T) {
	team := kernels.NewTeam(1)
	defer team.Close()
	use(t, team, "avx512")
	const rows, lo, hi = 40, 3, 36
	for _, width := range []int{48, 67, 96, 121, 128} {
		for _, full := range []float64{0, 0.4, 1} {
			before := sparseValues(rows*width, full)
			x, after := kernels.HostMat(rows, width, before), slices.Clone(before)
			bits, target := make([]uint64, kernels.PackedWords*rows), kernels.HostMat(rows, width, make([]float32, rows*width))
			elsewhere := kernels.NewPacked(target, make([]uint64, kernels.PackedWords*rows))
			kept := team.Pack(elsewhere, lo, x.Part(lo, hi))
			inPlace := kernels.HostMat(rows, width, after)
			p := kernels.NewPacked(inPlace, bits)
			if n := team.Pack(p, lo, inPlace.Part(lo, hi)); n != kept || n != nonzeros(before[lo*width:hi*width]) {
				t.Errorf("width %d: %d values in place, %d elsewhere", width, n, kept)
			}
			if around := lo * width; !slices.Equal(mapped.Bytes(after[:around]), mapped.Bytes(before[:around])) {
				t.Errorf("width %d: rows before have changed", width)
			}
			if around := hi * width; !slices.Equal(mapped.Bytes(after[around:]), mapped.Bytes(before[around:])) {
				t.Errorf("width %d: rows behind have changed", width)
			}
			if slices.ContainsFunc(bits[kernels.PackedWords*hi:], func(b uint64) bool { return b != 0 }) {
				t.Errorf("width %d: bits of rows behind", width)
			}
			for r := lo; r < hi; r++ {
				n := nonzeros(before[r*width : (r+1)*width])
				if !slices.Equal(mapped.Bytes(after[r*width:r*width+n]), mapped.Bytes(target.Host()[r*width:r*width+n])) {
					t.Fatalf("width %d, row %d: others in place", width, r)
				}
			}
		}
	}
}

// nonzeros counts non-zeros, infinities and NaNs included.
func nonzeros(x []float32) (n int) {
	for _, v := range x {
		if v != 0 {
			n++
		}
	}
	return n
}

// packedEdges returns edges with a hub and empty rows; columns from rows on are ghosts.
func packedEdges(rows, locals int) kernels.Gather {
	rng := rand.New(rand.NewPCG(3, 4))
	var g kernels.Gather
	for r := range rows {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		degree := r % 30
		if r == 77 {
			degree = 40000
		}
		for range degree {
			g.Cols = append(g.Cols, rng.Uint32N(uint32(rows)))
		}
		g.End = append(g.End, int64(len(g.Cols)))
		for range r % 3 {
			g.Cols = append(g.Cols, uint32(rows+rng.IntN(locals-rows)))
		}
	}
	g.RowScale, g.ColScale, g.SelfLoops = magnitudes(rows, 1), magnitudes(locals, 2), true
	return g
}

// magnitudes returns numbers above zero.
func magnitudes(n int, seed uint64) []float32 {
	x := kerneltest.Values(n, seed)
	for i, v := range x {
		x[i] = max(v, -v)
	}
	return x
}

func unscaled(g kernels.Gather) *kernels.Gather {
	g.RowScale, g.ColScale, g.SelfLoops = nil, nil, false
	return &g
}

// sparseValues returns n values, of which the fraction full is not zero.
func sparseValues(n int, full float64) []float32 {
	rng := rand.New(rand.NewPCG(5, 6))
	x := kerneltest.Values(n, 3)
	for i := range x {
		switch {
		case rng.Float64() >= full && i%3 == 0:
			x[i] = float32(math.Copysign(0, -1))
		case rng.Float64() >= full || full == 0:
			x[i] = 0
		case i%997 == 0:
			x[i] = float32(math.Inf(1 - i%2*2))
		}
	}
	return x
}

package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

// Gathers of packed rows give the same bits as those of the rows, zeros of either sign
// and what is no number included.
func TestPackedRows(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	use(t, team, "avx512")
	const rows, locals = 500, 530
	g := packedEdges(rows, locals)
	for _, width := range []int{48, 50, 64, 95, 96, 113, 128} {
		for _, full := range []float64{0, 0.05, 0.5, 0.8} {
			t.Run(fmt.Sprintf("width=%d/full=%v", width, full), func(t *testing.T) {
				room := kernels.HostMat(rows, width, slices.Repeat([]float32{float32(math.NaN())}, rows*width))
				x, p := kernels.HostMat(rows, width, sparseValues(rows*width, full)), kernels.NewPacked(room, make([]uint32, locals))
				for _, at := range [][2]int{{310, rows}, {0, 1 + 120}, {121, 310}} {
					if !team.Pack(p, at[0], x.Part(at[0], at[1])) {
						t.Fatalf("no room for rows %v", at)
					}
				}
				for _, e := range []kernels.Edges{g.Edges(), unscaled(g).Edges()} {
					for _, add := range []bool{false, true} {
						want, got := kerneltest.Values(rows*width, 5), kerneltest.Values(rows*width, 5)
						team.SpMM(kernels.HostMat(rows, width, want), e, x, add)
						team.SpMMPacked(kernels.HostMat(rows, width, got), e, x, p, add)
						if !slices.Equal(mapped.Bytes(got), mapped.Bytes(want)) {
							t.Errorf("add %v: other bits", add)
						}
					}
				}
			})
		}
	}
}

// Rows that do not fit leave alone what lies beyond their room.
func TestPackedRowsWithoutRoom(t *testing.T) {
	team := kernels.NewTeam(1)
	defer team.Close()
	use(t, team, "avx512")
	const rows, width = 64, 64
	all := slices.Repeat([]float32{7}, rows*width)
	p := kernels.NewPacked(kernels.HostMat(rows, width, all), make([]uint32, rows))
	if team.Pack(p, 16, kernels.HostMat(32, width, sparseValues(32*width, 1))) {
		t.Error("rows without zeros have found room")
	}
	for i, v := range all {
		if r := i / width; v != 7 && (r < 16 || r >= 48) {
			t.Fatalf("row %d written", r)
		}
	}
}

// packedEdges has a hub and empty rows; columns from rows on are others'.
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
	g.RowScale, g.ColScale, g.SelfLoops = kerneltest.Values(rows, 1), kerneltest.Values(locals, 2), true
	return g
}

func unscaled(g kernels.Gather) *kernels.Gather {
	g.RowScale, g.ColScale, g.SelfLoops = nil, nil, false
	return &g
}

// sparseValues are n values of which that share is no zero.
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

package kernels_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Rows that reuse sources are gathered without blocks, rows with random sources by blocks.
// Blocks have their own sums, so the bits differ. The reference gathers a copy of only the
// sources that are read, which are too few for blocks.
func TestNoBlocksWhereAnOrderServes(t *testing.T) {
	const rows, sources, width, degree = 64, 131072, 128, 300
	x := kerneltest.Values(sources*width, 1)
	for name, apart := range map[string]uint32{"near": 64, "far": 1} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(9, uint64(apart)))
			var g kernels.Gather
			for range rows {
				g.Begin = append(g.Begin, int64(len(g.Cols)))
				for range degree {
					g.Cols = append(g.Cols, apart*rng.Uint32N(sources/apart))
				}
				slices.Sort(g.Cols[len(g.Cols)-degree:])
				g.End = append(g.End, int64(len(g.Cols)))
			}
			together, met := copiedTogether(g, x, width)
			eachSet(t, func(t *testing.T, set string) {
				team := kernels.NewTeam(2)
				defer team.Close()
				use(t, team, set)
				gather := func(g kernels.Gather, x []float32) []byte {
					dst := make([]float32, rows*width)
					team.SpMM(kernels.HostMat(rows, width, dst), g.Edges(), kernels.HostMat(len(x)/width, width, x), false)
					return mapped.Bytes(dst)
				}
				same := slices.Equal(gather(g, x), gather(together, met))
				if served := apart > 1; same != served {
					t.Errorf("the bits of a gather without blocks: %v instead of %v", same, served)
				}
			})
		})
	}
}

// copiedTogether returns a copy of the rows of x that g reads, in their order, and g on the
// copy.
func copiedTogether(g kernels.Gather, x []float32, width int) (kernels.Gather, []float32) {
	sources := slices.Clone(g.Cols)
	slices.Sort(sources)
	sources = slices.Compact(sources)
	var met []float32
	for _, c := range sources {
		met = append(met, x[int(c)*width:][:width]...)
	}
	g.Cols = slices.Clone(g.Cols)
	for i, c := range g.Cols {
		at, _ := slices.BinarySearch(sources, c)
		g.Cols[i] = uint32(at)
	}
	return g, met
}

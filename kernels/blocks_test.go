package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// A gather from more rows than caches hold uses blocks. Its sums match a float64 reference,
// and have the same bits without rows of zeros. This includes hubs, and rows with edges in no
// or only some blocks.
func TestGatherInBlocks(t *testing.T) {
	const rows, sources, width = 20, 290000, 128
	rng := rand.New(rand.NewPCG(7, 8))
	var g kernels.Gather
	for r := range rows {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		degree, most := 2000, sources
		switch r {
		case 3:
			degree = 0
		case 4:
			most = 20000
		case 5:
			degree = 200000
		}
		cols := make([]uint32, degree)
		for i := range cols {
			cols[i] = rng.Uint32N(uint32(most))
		}
		slices.Sort(cols)
		g.Cols = append(g.Cols, cols...)
		g.End = append(g.End, int64(len(g.Cols)))
	}
	g.RowScale, g.ColScale, g.SelfLoops, g.First = kerneltest.Values(rows, 1), kerneltest.Values(sources, 2), true, 100
	x := kerneltest.Values(sources*width, 3)
	chosen, a := kernels.NewVertexMask(sources, func(v int) bool { return v%4 > 0 }), mapped.NewArena()
	defer a.Free()
	edges := kernels.NewEdgeMask(a, kernels.HostVector(g.Cols), chosen)
	for v := 0; v < sources; v += 4 {
		clear(x[v*width:][:width])
	}
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(2)
		defer team.Close()
		use(t, team, set)
		e := g.Edges()
		gather := func() []float32 {
			dst := kerneltest.Values(rows*width, 4)
			team.SpMM(kernels.HostMat(rows, width, dst), e, kernels.HostMat(sources, width, x), true)
			return dst
		}
		all := gather()
		e.ColumnMask = chosen
		for _, e.EdgeMask = range []kernels.EdgeMask{nil, edges} {
			if !slices.Equal(mapped.Bytes(gather()), mapped.Bytes(all)) {
				t.Errorf("without the rows of zeros, with bits of edges: %v: other bits", e.EdgeMask != nil)
			}
		}
		checkGathered(t, all, &g, x, width)
		heavy := g
		heavy.Weights = kerneltest.Values(len(g.Cols), 5)
		e = heavy.Edges()
		checkGathered(t, gather(), &heavy, x, width)
	})
}

// checkGathered compares values that were added to a matrix of fours with float64.
func checkGathered(t *testing.T, got []float32, g *kernels.Gather, x []float32, width int) {
	t.Helper()
	start := kerneltest.Values(len(got), 4)
	for r := range g.Rows() {
		for j := 0; j < width; j += 31 {
			sum, size := float64(start[r*width+j]), 1.0
			add := func(c uint32, weight float64) {
				v := weight * float64(g.RowScale[r]) * float64(g.ColScale[c]) * float64(x[int(c)*width+j])
				sum, size = sum+v, size+math.Abs(v)
			}
			add(g.First+uint32(r), 1)
			for at := g.Begin[r]; at < g.End[r]; at++ {
				weight := 1.0
				if g.Weights != nil {
					weight = float64(g.Weights[at])
				}
				add(g.Cols[at], weight)
			}
			// Some thousand roundings of such a sum partly cancel.
			if v := float64(got[r*width+j]); !(math.Abs(v-sum) < 1e-5*size) {
				t.Fatalf("row %d, column %d is %v instead of %v", r, j, v, sum)
			}
		}
	}
}

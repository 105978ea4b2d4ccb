package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Gathers of listed rows give the bits of dense rows: rows with no non-zeros, with part of a
// record or several records; masked columns, hubs, and adding to sums.
func TestListedRows(t *testing.T) {
	for _, set := range []string{"go", "avx2", "avx512"} {
		for _, workers := range []int{1, 3} {
			for _, width := range []int{1, 3, 16, 33, 128, 300} {
				t.Run(fmt.Sprintf("%s/workers=%d/width=%d", set, workers, width), func(t *testing.T) {
					team := kernels.NewTeam(workers)
					defer team.Close()
					use(t, team, set)
					for _, drop := range []*kernels.Dropout{nil, {Seed: 5, Epoch: 2, Layer: 1, P: 0.5}} {
						compareListed(t, team, width, drop)
					}
				})
			}
		}
	}
}

func compareListed(t *testing.T, team *kernels.Team, width int, drop *kernels.Dropout) {
	const rows, locals = 500, 530
	xs := listedRows(rows, width)
	x := kernels.HostMat(rows, width, make([]float32, rows*width))
	team.SparseToDense(x, xs, drop)
	l := kernels.NewLists(rows, width, slices.Repeat([]uint64{math.MaxUint64}, kernels.ListWords(rows, len(xs.Source.Vals))))
	for _, at := range [][2]int{{310, rows}, {0, 121}, {121, 310}} {
		part := xs.Part(at[0], at[1])
		if drop == nil {
			team.List(l, at[0], part, nil)
			continue
		}
		ids := make([]uint32, at[1]-at[0])
		for i := range ids {
			ids[i] = uint32(at[0] + i)
		}
		d := *drop
		d.IDs = kernels.HostVector(ids)
		team.List(l, at[0], part, &d)
	}
	g := packedEdges(rows, locals)
	chosen := g.Edges()
	chosen.ColumnMask = kernels.NewVertexMask(locals, func(v int) bool { return v%3 == 0 })
	byEdge, a := chosen, mapped.NewArena()
	defer a.Free()
	byEdge.EdgeMask = kernels.NewEdgeMask(a, kernels.HostVector(g.Cols), chosen.ColumnMask)
	ghosts := unscaled(g)
	ghosts.Base, ghosts.Cols = 7, slices.Clone(g.Cols)
	for i := range ghosts.Cols {
		ghosts.Cols[i] += 7
	}
	for i, e := range []kernels.Edges{g.Edges(), unscaled(g).Edges(), chosen, byEdge, ghosts.Edges()} {
		for _, add := range []bool{false, true} {
			want, got := kerneltest.Values(rows*width, 5), kerneltest.Values(rows*width, 5)
			team.SpMM(kernels.HostMat(rows, width, want), e, x, add)
			team.SpMMLists(kernels.HostMat(rows, width, got), e, l, add)
			if !slices.Equal(mapped.Bytes(got), mapped.Bytes(want)) {
				t.Errorf("edges %d, add %v: other bits", i, add)
			}
		}
	}
}

// listedRows makes rows of 0 to 13 non-zeros, or of all columns.
func listedRows(rows, width int) kernels.Sparse {
	rng := rand.New(rand.NewPCG(8, 9))
	x := graph.SparseRows{Offsets: []int64{0}}
	for r := range rows {
		cols := rng.Perm(width)[:min(r%14, width)]
		slices.Sort(cols)
		for _, c := range cols {
			x.Cols, x.Vals = append(x.Cols, uint32(c)), append(x.Vals, rng.Float32()-0.5)
		}
		x.Offsets = append(x.Offsets, int64(len(x.Cols)))
	}
	return kernels.Sparse{Offsets: kernels.HostVector(x.Offsets), Cols: kernels.HostVector(x.Cols),
		Vals: kernels.HostVector(x.Vals), Source: x}
}

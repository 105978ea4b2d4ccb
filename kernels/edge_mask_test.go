package kernels_test

import (
	"fmt"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Edges from selected columns give the bits of all edges if the other rows are zeros. Edges
// into selected rows give these rows the bits of all edges.
func TestMaskedEdges(t *testing.T) {
	const rows, width, hub = 500, 20, 77
	g := packedEdges(rows, rows+1)
	chosen := kernels.NewVertexMask(rows, func(v int) bool { return v%3 == 0 || v == hub })
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(2)
		defer team.Close()
		use(t, team, set)
		x := kerneltest.Values(rows*width, 3)
		for v := range rows {
			if v%3 != 0 && v != hub {
				clear(x[v*width:][:width])
			}
		}
		for _, part := range [][2]int{{0, rows}, {70, 311}} {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				gather := func(e kernels.Edges) []float32 {
					dst := make([]float32, e.Rows()*width)
					team.SpMM(kernels.HostMat(e.Rows(), width, dst), e, kernels.HostMat(rows, width, x), false)
					return dst
				}
				e := g.Edges()
				e.Begin, e.End, e.First = e.Begin.Part(part[0], part[1]), e.End.Part(part[0], part[1]), uint32(part[0])
				e.RowScale = e.RowScale.Part(part[0], part[1])
				all := gather(e)
				from := e
				from.ColumnMask = chosen
				if !slices.Equal(mapped.Bytes(gather(from)), mapped.Bytes(all)) {
					t.Error("from chosen columns: other bits")
				}
				to := e
				to.RowMask = chosen
				into := gather(to)
				e.End = e.Begin
				none := gather(e)
				for r := range all {
					want := none
					if v := part[0] + r/width; v%3 == 0 || v == hub {
						want = all
					}
					if into[r] != want[r] {
						t.Fatalf("element %d of row %d is %v instead of %v", r%width, r/width, into[r], want[r])
					}
				}
			})
		}
	})
}

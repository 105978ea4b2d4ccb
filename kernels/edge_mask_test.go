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

// An EdgeMask selects the columns that its VertexMask selects, from each edge on, in other memory and in place. It
// overwrites only the slack.
func TestEdgeMask(t *testing.T) {
	const vertices, edges, beyond, guard = 70, 1000, 50, math.MaxUint32
	rng, a := rand.New(rand.NewPCG(1, 2)), mapped.NewArena()
	defer a.Free()
	chosen := kernels.NewVertexMask(vertices, func(v int) bool { return v%3 > 0 })
	cols := make([]uint32, edges)
	for i := range cols {
		cols[i] = rng.Uint32N(vertices)
		if i < beyond { // edges from ghosts
			cols[i] += 2 * vertices
		}
	}
	mask := kernels.NewEdgeMask(a, kernels.HostVector(cols), chosen)
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(1)
		defer team.Close()
		use(t, team, set)
		for range 3000 {
			first := beyond + rng.IntN(edges-beyond+1)
			last := min(first+rng.IntN(70), edges)
			var want []uint32
			for _, c := range cols[first:last] {
				if c%3 > 0 {
					want = append(want, c)
				}
			}
			size := last - first + kernels.ChooseSlack
			dst, inPlace := slices.Repeat([]uint32{guard}, size+1), append(slices.Clone(cols[first:last]), make([]uint32, size)...)
			n := mask.Copy(team, dst[:size], cols[first:last:last], int64(first), chosen)
			if !slices.Equal(dst[:n], want) || dst[size] != guard {
				t.Fatalf("edges %d to %d: %v, want %v", first, last, dst, want)
			}
			if n = mask.Copy(team, inPlace, inPlace[:last-first], int64(first), chosen); !slices.Equal(inPlace[:n], want) {
				t.Fatalf("edges %d to %d in place: %v, want %v", first, last, inPlace[:n], want)
			}
		}
	})
}

func BenchmarkMaskedColumns(b *testing.B) {
	g, a := uniform(), mapped.NewArena()
	defer a.Free()
	chosen := kernels.NewVertexMask(benchRows, func(v int) bool { return v%5 < 3 })
	mask, dst := kernels.NewEdgeMask(a, kernels.HostVector(g.Cols), chosen), make([]uint32, benchDegree+kernels.ChooseSlack)
	for _, m := range []kernels.EdgeMask{nil, mask} {
		b.Run(fmt.Sprintf("bits=%t", m != nil), func(b *testing.B) {
			measure(b, benchRows*benchDegree, "edges/s", func(team *kernels.Team) {
				for r, first := range g.Begin {
					m.Copy(team, dst, g.Cols[first:g.End[r]], first, chosen)
				}
			})
		})
	}
}

// Edges from selected columns give the bits of all edges if the other rows are zeros. Edges
// into selected rows give these rows the bits of all edges.
func TestMaskedEdges(t *testing.T) {
	const rows, width, hub = 500, 20, 77
	g := packedEdges(rows, rows+1)
	chosen, a := kernels.NewVertexMask(rows, func(v int) bool { return v%3 == 0 || v == hub }), mapped.NewArena()
	defer a.Free()
	edges := kernels.NewEdgeMask(a, kernels.HostVector(g.Cols), chosen)
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
				for _, from.EdgeMask = range []kernels.EdgeMask{nil, edges} {
					if !slices.Equal(mapped.Bytes(gather(from)), mapped.Bytes(all)) {
						t.Errorf("from chosen columns, with their bits: %v: other bits", from.EdgeMask != nil)
					}
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

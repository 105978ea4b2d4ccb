package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// BenchmarkCodedColumns decodes columns with one worker, and gathers along plain and coded columns.
func BenchmarkCodedColumns(b *testing.B) {
	for _, degree := range []int{benchDegree, 20 * benchDegree} {
		rows, rng := benchRows*benchDegree/degree, rand.New(rand.NewPCG(1, 2))
		g := ring(rows, degree)
		for r := range rows {
			for i := g.Begin[r]; i < g.End[r]; i++ {
				g.Cols[i] = rng.Uint32N(benchRows)
			}
			slices.Sort(g.Cols[g.Begin[r]:g.End[r]])
		}
		team, a := kernels.NewTeam(1), mapped.NewArena()
		defer team.Close()
		defer a.Free()
		coded, edges := g, float64(rows*degree)
		coded.Cols, coded.Coded = nil, team.CodeColumns(a, g.Edges(), kernels.CodeOptions{})
		columns := make([]uint32, rows*degree+kernels.CodedGroup)
		name := fmt.Sprintf("degree=%d", degree)
		b.Run(name+"/encode", func(b *testing.B) {
			eachVariant(b, edges, "edges/s", func(team *kernels.Team) {
				other := mapped.NewArena()
				team.CodeColumns(other, g.Edges(), kernels.CodeOptions{})
				other.Free()
			})
		})
		b.Run(name+"/decode", func(b *testing.B) {
			eachVariant(b, edges, "edges/s", func(team *kernels.Team) {
				const batch = 64
				for r := 0; r < rows; r += batch {
					coded.Coded.Decode(team, columns, r, min(r+batch, rows))
				}
			})
		})
		const width = 64
		x, dst := kerneltest.Values(benchRows*width, 3), make([]float32, rows*width)
		for form, g := range map[string]kernels.Gather{"plain": g, "coded": coded} {
			b.Run(name+"/gather/"+form, func(b *testing.B) {
				eachVariant(b, edges, "edges/s", func(team *kernels.Team) { flat.SpMM(team, dst, width, g, x, false) })
			})
		}
	}
}

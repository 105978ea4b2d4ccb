package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// eachVariant runs a benchmark with every set of instructions, one worker.
func eachVariant(b *testing.B, work float64, unit string, kernel func(team *kernels.Team)) {
	for _, set := range []string{"avx512", "avx2", "go"} {
		b.Run(set, func(b *testing.B) {
			team := kernels.NewTeam(1)
			defer team.Close()
			if err := team.Use(set); err != nil {
				b.Skip(err)
			}
			for b.Loop() {
				kernel(team)
			}
			b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds(), unit)
		})
	}
}

func BenchmarkDropout(b *testing.B) {
	for _, width := range []int{7, 16, 41, 64, benchWidth} {
		rows := 1 << 17 / width
		x := kerneltest.Values(rows*width, 1)
		dst := make([]float32, len(x))
		b.Run(fmt.Sprintf("width=%d", width), func(b *testing.B) {
			eachVariant(b, float64(len(x))*1e-9, "Gelements/s", func(team *kernels.Team) {
				flat.DropoutRows(team, dst, rows, width, x, &kernels.Dropout{Seed: 1, P: 0.5})
			})
		})
	}
}

// The epilogue drops elements row by row.
func BenchmarkEpilogueDropout(b *testing.B) {
	for _, width := range []int{16, benchWidth} {
		rows := 1 << 17 / width
		z, bias := kerneltest.Values(rows*width, 1), kerneltest.Values(width, 2)
		dst := make([]float32, len(z))
		for _, p := range []float64{0, 0.5} {
			b.Run(fmt.Sprintf("width=%d/dropout=%v", width, p), func(b *testing.B) {
				eachVariant(b, float64(len(z))*1e-9, "Gelements/s", func(team *kernels.Team) {
					flat.BiasReLUDropout(team, dst, rows, width, z, bias, true, &kernels.Dropout{Seed: 1, P: p})
				})
			})
		}
	}
}

// bagOfWords makes rows of about perRow of cols words each, frequent ones first: word c is as
// frequent as 1/(c+8).
func bagOfWords(rows, cols, perRow int) graph.SparseRows {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.01, 8, uint64(cols-1))
	xs := graph.SparseRows{Offsets: make([]int64, 1, rows+1)}
	for range rows {
		row := make([]uint32, perRow)
		for i := range row {
			row[i] = uint32(zipf.Uint64())
		}
		slices.Sort(row)
		xs.Cols = append(xs.Cols, slices.Compact(row)...)
		xs.Offsets = append(xs.Offsets, int64(len(xs.Cols)))
	}
	xs.Vals = kerneltest.Values(len(xs.Cols), 1)
	return xs
}

func BenchmarkSparse(b *testing.B) {
	const rows, cols = 18000, 6800
	xs := bagOfWords(rows, cols, 70)
	arena := mapped.NewArena()
	defer arena.Free()
	xt := flat.TransposeSparse(xs, cols, arena)
	work := float64(len(xs.Cols)) * 1e-6
	for _, width := range []int{16, 64, benchWidth} {
		w, g := kerneltest.Values(cols*width, 2), kerneltest.Values(rows*width, 3)
		dst := make([]float32, max(rows, cols)*width)
		for _, p := range []float64{0, 0.5} {
			drop := &kernels.Dropout{Seed: 1, P: p}
			b.Run(fmt.Sprintf("XW/width=%d/dropout=%v", width, p), func(b *testing.B) {
				eachVariant(b, work, "Mnonzeros/s", func(team *kernels.Team) { flat.SparseMatMul(team, dst, width, xs, w, drop) })
			})
			b.Run(fmt.Sprintf("XᵀG/width=%d/dropout=%v", width, p), func(b *testing.B) {
				eachVariant(b, work, "Mnonzeros/s", func(team *kernels.Team) { flat.SparseMatMulTransA(team, dst, width, xt, g, drop) })
			})
		}
	}
}

func BenchmarkStep(b *testing.B) {
	const n = 1433 * 64
	for _, c := range []kernels.OptimizerConfig{{Name: "sgd", Momentum: 0.9, LR: 0.1}, {Name: "adam", LR: 0.1}} {
		for _, set := range []string{"avx512", "avx2", "go"} {
			b.Run(c.Name+"/"+set, func(b *testing.B) {
				o, err := kernels.NewOptimizer(c)
				if err != nil {
					b.Fatal(err)
				}
				if err := kernels.UseIn(o, set); err != nil {
					b.Skip(err)
				}
				w, g, state := kerneltest.Values(n, 1), kerneltest.Values(n, 2), newState(o, n)
				for b.Loop() {
					o.Step(1, w, g, state, true)
				}
				b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()*1e-9, "Gelements/s")
			})
		}
	}
}

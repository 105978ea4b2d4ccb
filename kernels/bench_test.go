package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// The sizes of a medium layer: vertices, in-edges per vertex, widths.
const (
	benchRows   = 100000
	benchDegree = 25
	benchWidth  = 128
)

// measure times kernel, which does the given amount of work, and reports it.
func measure(b *testing.B, work float64, unit string, kernel func(team *kernels.Team)) {
	team := kernels.NewTeam(runtime.GOMAXPROCS(0))
	defer team.Close()
	b.ReportAllocs()
	for b.Loop() {
		kernel(team)
	}
	b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds(), unit)
}

// uniform returns a graph with random edges and with scales.
func uniform() kernels.Gather {
	rng := rand.New(rand.NewPCG(1, 2))
	g := ring(benchRows, benchDegree)
	for i := range g.Cols {
		g.Cols[i] = rng.Uint32N(benchRows)
	}
	g.RowScale, g.ColScale = kerneltest.Values(benchRows, 1), kerneltest.Values(benchRows, 2)
	return g
}

func BenchmarkSpMM(b *testing.B) {
	g := uniform()
	for _, width := range []int{16, 64, benchWidth} {
		b.Run(fmt.Sprintf("width=%d", width), func(b *testing.B) {
			x, dst := kerneltest.Values(benchRows*width, 3), make([]float32, benchRows*width)
			measure(b, benchRows*benchDegree, "edges/s", func(team *kernels.Team) {
				flat.SpMM(team, dst, width, g, x, false)
			})
		})
	}
}

// Packed rows as after ReLU or dropout 0.5, and after both.
func BenchmarkSpMMPacked(b *testing.B) {
	g, rng := uniform(), rand.New(rand.NewPCG(1, 2))
	for _, full := range []float64{0.5, 0.25} {
		b.Run(fmt.Sprintf("full=%g", full), func(b *testing.B) {
			x := kernels.HostMat(benchRows, benchWidth, kerneltest.Values(benchRows*benchWidth, 3))
			for i := range x.Host() {
				if rng.Float64() >= full {
					x.Host()[i] = 0
				}
			}
			dst := kernels.HostMat(benchRows, benchWidth, make([]float32, benchRows*benchWidth))
			packed := kernels.NewPacked(x, make([]uint64, kernels.PackedWords*benchRows))
			var kept int64
			measure(b, benchRows*benchDegree, "edges/s", func(team *kernels.Team) {
				if !team.Packs(benchWidth) {
					b.Skip("rows are not packed by this kernel")
				}
				if kept == 0 {
					kept = int64(team.Pack(packed, 0, x))
				}
				team.SpMMPacked(dst, g.Edges(), packed, kept, false)
			})
		})
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, s := range [][2]int{{benchWidth, benchWidth}, {602, benchWidth}, {benchWidth, 41}} {
		k, n := s[0], s[1]
		h, g := kerneltest.Values(benchRows*k, 1), kerneltest.Values(benchRows*n, 2)
		w, dst := kerneltest.Values(k*n, 3), make([]float32, benchRows*max(n, k))
		flop := 2e-9 * benchRows * float64(n) * float64(k)
		for name, kernel := range map[string]func(team *kernels.Team){
			"HW":  func(team *kernels.Team) { flat.MatMul(team, dst, benchRows, n, k, h, w, false) },
			"GWᵀ": func(team *kernels.Team) { flat.MatMulTransB(team, dst, benchRows, k, n, g, w, false) },
			"HᵀG": func(team *kernels.Team) { flat.MatMulTransA(team, dst, k, n, benchRows, h, g, false) },
		} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, k, n), func(b *testing.B) { measure(b, flop, "GFLOP/s", kernel) })
		}
	}
}

func BenchmarkEpilogue(b *testing.B) {
	z, bias := kerneltest.Values(benchRows*benchWidth, 1), kerneltest.Values(benchWidth, 2)
	dst := make([]float32, len(z))
	for name, drop := range map[string]*kernels.Dropout{"plain": nil, "dropout": {Seed: 1, P: 0.5}} {
		b.Run(name, func(b *testing.B) {
			measure(b, benchRows*benchWidth*4*2e-9, "GB/s", func(team *kernels.Team) {
				flat.BiasReLUDropout(team, dst, benchRows, benchWidth, z, bias, true, drop)
			})
		})
	}
}

func BenchmarkEpilogueGrad(b *testing.B) {
	g, h := kerneltest.Values(benchRows*benchWidth, 1), kerneltest.Values(benchRows*benchWidth, 2)
	dst := make([]float32, len(g))
	measure(b, benchRows*benchWidth*4*3e-9, "GB/s", func(team *kernels.Team) {
		flat.BiasReLUDropoutGrad(team, dst, dst[:benchWidth], benchRows, benchWidth, g, h, true, nil)
	})
}

func BenchmarkSoftmaxCrossEntropy(b *testing.B) {
	for _, classes := range []int{2, 10, 41, 349} {
		rows := 1 << 17 / classes
		logits := kerneltest.Values(rows*classes, 1)
		grad := make([]float32, len(logits))
		labels, split := make([]int32, rows), make([]uint8, rows)
		for r := range labels {
			labels[r] = int32(r % classes)
		}
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			eachVariant(b, float64(len(logits))*1e-9, "Gexponentials/s", func(team *kernels.Team) {
				flat.SoftmaxCrossEntropy(team, grad, rows, classes, logits, labels, split, 0, 1)
			})
		})
	}
}

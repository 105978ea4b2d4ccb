package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// attentionBench is a layer of attention on a random symmetric graph.
type attentionBench struct {
	kernels.Attention
	g                    kernels.Gather
	vertices             int
	x, dst, out, stats   []float32
	r, lse, dr, dots, up []float32
}

func newAttentionBench(g kernels.Gather, heads, width int, p float64) *attentionBench {
	n := len(g.Begin)
	b := &attentionBench{
		Attention: kernels.Attention{Heads: heads, Width: width, Slope: 0.2}, g: g, vertices: n,
		r: kerneltest.Values(n*heads, 2), stats: make([]float32, 2*n*heads), lse: make([]float32, n*heads),
		dr: make([]float32, n*heads), dots: make([]float32, n*heads),
	}
	b.g.SelfLoops = true
	if p > 0 {
		b.Drop = &kernels.Dropout{Seed: 1, P: p}
	}
	b.x, b.dst = kerneltest.Values(n*b.Emitted(), 1), make([]float32, n*b.Emitted())
	b.out, b.up = make([]float32, n*b.Columns()), kerneltest.Values(n*b.Columns(), 3)
	return b
}

func (b *attentionBench) forward(team *kernels.Team) {
	flat.AttentionGather(team, b.Attention, b.out, b.stats, b.g, flat.AttentionRows{X: b.x}, b.r, false)
	flat.AttentionFinish(team, b.Attention, b.out, b.lse, b.vertices, b.stats)
}

func (b *attentionBench) back() flat.AttentionGrad {
	return flat.AttentionGrad{R: b.r, LSE: b.lse, Grad: b.up, Dots: b.dots}
}

func (b *attentionBench) toTargets(team *kernels.Team) {
	flat.RowDots(team, b.dots, b.vertices, b.Heads, b.Width, b.up, b.out)
	flat.AttentionGradDst(team, b.Attention, b.dr, nil, b.g, flat.AttentionRows{X: b.x}, b.back(), false)
}

func (b *attentionBench) toSources(team *kernels.Team) {
	flat.AttentionGradSrc(team, b.Attention, b.dst, b.g, 0, b.vertices, b.x, b.back())
}

func (b *attentionBench) spmm(team *kernels.Team) {
	flat.SpMM(team, b.out, b.Columns(), b.g, b.up, false)
}

// BenchmarkAttention also measures SpMM with the same number of columns.
func BenchmarkAttention(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	g := ring(benchRows, benchDegree)
	for i := range g.Cols {
		g.Cols[i] = rng.Uint32N(benchRows)
	}
	for _, s := range [][2]int{{1, 128}, {8, 16}, {8, 8}} {
		for _, p := range []float64{0, 0.5} {
			a := newAttentionBench(g, s[0], s[1], p)
			b.Run(fmt.Sprintf("heads=%d/width=%d/dropout=%v", s[0], s[1], p), func(b *testing.B) {
				for _, k := range []struct {
					name   string
					kernel func(team *kernels.Team)
				}{{"SpMM", a.spmm}, {"forward", a.forward}, {"targets", a.toTargets}, {"sources", a.toSources}} {
					b.Run(k.name, func(b *testing.B) { measure(b, benchRows*benchDegree, "edges/s", k.kernel) })
				}
			})
		}
	}
}

package kernels_test

import (
	"fmt"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

func TestELU(t *testing.T) {
	best.BiasELUDropout(t)
	best.BiasELUDropoutGrad(t)
	best.MeanHeads(t)
	best.MeanHeadsGrad(t)
}

// The gradient of an ELU is that of differences, with every instruction set.
func TestELUDifferences(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		kerneltest.ELUDifferences(t, func(team *kernels.Team) { use(t, team, set) })
	})
}

// Every instruction set gives the same bits for ELU and its gradient.
func TestELUBits(t *testing.T) {
	const rows, cols = 701, 45
	z, g, bias := kerneltest.Values(rows*cols, 1), kerneltest.Values(rows*cols, 2), kerneltest.Values(cols, 3)
	for i := range z {
		z[i] *= float32(i%50) - 10
	}
	drop := &kernels.Dropout{Seed: 9, P: 0.6}
	team := kernels.NewTeam(2)
	defer team.Close()
	use(t, team, "avx512")
	var first, firstGrad, h []float32
	for _, set := range []string{"avx512", "avx2", "go"} {
		use(t, team, set)
		got, grad := make([]float32, len(z)), make([]float32, len(z)+cols)
		flat.BiasELUDropout(team, got, rows, cols, z, bias, drop)
		if first == nil {
			first, h = got, slices.Clone(got)
		}
		flat.BiasELUDropoutGrad(team, grad, grad[len(z):], rows, cols, g, h, drop)
		if firstGrad == nil {
			firstGrad = grad
		}
		if !slices.Equal(mapped.Bytes(got), mapped.Bytes(first)) {
			t.Errorf("ELU differs between avx512 and %s", set)
		}
		if !slices.Equal(mapped.Bytes(grad), mapped.Bytes(firstGrad)) {
			t.Errorf("the gradient differs between avx512 and %s", set)
		}
	}
}

func TestELUAllocatesNothing(t *testing.T) {
	const rows, cols, heads = 3000, 24, 3
	team := kernels.NewTeam(2)
	defer team.Close()
	x, y, wide := kerneltest.Values(rows*cols, 1), make([]float32, rows*cols), make([]float32, rows*cols*heads)
	drop := &kernels.Dropout{Seed: 1, P: 0.5}
	for name, kernel := range map[string]func(){
		"BiasELUDropout":     func() { flat.BiasELUDropout(team, y, rows, cols, x, x, drop) },
		"BiasELUDropoutGrad": func() { flat.BiasELUDropoutGrad(team, y, wide, rows, cols, x, x, drop) },
		"MeanHeads":          func() { flat.MeanHeads(team, y, rows, heads, cols, wide, x) },
		"MeanHeadsGrad":      func() { flat.MeanHeadsGrad(team, wide, rows, heads, cols, x) },
	} {
		if n := kerneltest.Allocs(kernel); n != 0 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
}

func BenchmarkELU(b *testing.B) {
	z, bias := kerneltest.Values(benchRows*benchWidth, 1), kerneltest.Values(benchWidth, 2)
	dst := make([]float32, len(z))
	for _, drop := range []*kernels.Dropout{nil, {Seed: 1, P: 0.5}} {
		name := fmt.Sprintf("dropout=%t", drop != nil)
		b.Run(name, func(b *testing.B) {
			measure(b, benchRows*benchWidth*4*2e-9, "GB/s", func(team *kernels.Team) {
				flat.BiasELUDropout(team, dst, benchRows, benchWidth, z, bias, drop)
			})
		})
		b.Run("gradient/"+name, func(b *testing.B) {
			measure(b, benchRows*benchWidth*4*3e-9, "GB/s", func(team *kernels.Team) {
				flat.BiasELUDropoutGrad(team, dst, bias, benchRows, benchWidth, z, z, drop)
			})
		})
	}
}

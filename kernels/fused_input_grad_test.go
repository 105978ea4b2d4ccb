package kernels_test

import (
	"fmt"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// The fused gradient equals the two separate gradients to the bit.
func TestFusedInputGrad(t *testing.T) {
	for _, set := range []string{"go", "avx2", "avx512", "openblas"} {
		for _, workers := range []int{1, 3} {
			for _, shape := range [][4]int{{0, 5, 3, 0}, {1, 1, 1, 1}, {7, 33, 4, 0}, {500, 64, 10, 3}, {500, 128, 41, 128},
				{2100, 17, 130, 0}, {300, 20, 0, 6}, {150, 2100, 7, 3}} {
				for _, drop := range []*kernels.Dropout{nil, {Seed: 3, Epoch: 1, Layer: 2, P: 0.5}} {
					t.Run(fmt.Sprintf("%s/workers=%d/%v/dropout=%t", set, workers, shape, drop != nil), func(t *testing.T) {
						team := kernels.NewTeam(workers)
						defer team.Close()
						use(t, team, set)
						gradThrough(t, team, shape, drop)
					})
				}
			}
		}
	}
}

func gradThrough(t *testing.T, team *kernels.Team, shape [4]int, drop *kernels.Dropout) {
	rows, cols, k, second := shape[0], shape[1], shape[2], shape[3]
	mat := func(rows, cols int, seed uint64) kernels.Mat {
		return kernels.HostMat(rows, cols, kerneltest.Values(rows*cols, seed))
	}
	a, b, a2, b2 := mat(rows, k, 1), mat(cols, k, 2), kernels.Mat{}, kernels.Mat{}
	if drop != nil {
		for i := range a.Host() { // sparse enough for a product that skips zeros
			a.Host()[i] *= float32(max(i%5-3, 0))
		}
	}
	h := mat(rows, cols, 5)
	team.BiasReLUDropout(h, h, mat(1, cols, 6), true, drop)
	want := kernels.HostMat(rows, cols, make([]float32, rows*cols))
	team.MatMulTransB(want, a, b, false)
	if second > 0 {
		a2, b2 = mat(rows, second, 3), mat(cols, second, 4)
		team.MatMulTransB(want, a2, b2, true)
	}
	team.BiasReLUDropoutGrad(want, kernels.Mat{}, want, h, true, drop)
	team.GradThrough(h, a, b, a2, b2, drop)
	if !slices.Equal(mapped.Bytes(h.Host()), mapped.Bytes(want.Host())) {
		t.Error("other bits")
	}
}

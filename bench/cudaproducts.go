package bench

import (
	"siafu/bench/yardstick"
	"siafu/cuda"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// products returns the dense products of layers on the given number of vertices, siafu's and
// cuBLAS's.
func (r *gpuRig) products(rows int) []gpuCase {
	var cases []gpuCase
	for _, c := range productCases(rows) {
		cases = append(cases, gpuCase{kernel: c.kernel, shape: c.shape, flops: c.flops, bytes: c.bytes, prepare: func(a *mapped.Arena) (gpuWork, error) {
			return r.product(a, c.product), nil
		}})
	}
	return cases
}

// product prepares a product with each available Ops.
func (r *gpuRig) product(a *mapped.Arena, p product) gpuWork {
	m, n, k := p.m, p.n, p.k
	x, y := r.positive(a, m, k, 1), r.positive(a, k, n, 2)
	switch p.form {
	case yardstick.TransA:
		x = x.Reshape(k, m)
	case yardstick.TransB:
		y = y.Reshape(n, k)
	}
	work := gpuWork{terms: func(int) int { return k }}
	for _, side := range []struct {
		name string
		ops  *cuda.Ops
	}{{"siafu", r.own}, {"cuBLAS", r.blas}} {
		if side.ops == nil {
			continue
		}
		dst := kernels.NewMat(r.own, a, m, n)
		call := map[yardstick.Form]func(dst, a, b kernels.Mat, add bool){
			yardstick.Plain: side.ops.MatMul, yardstick.TransB: side.ops.MatMulTransB, yardstick.TransA: side.ops.MatMulTransA,
		}[p.form]
		work.sides = append(work.sides, gpuSide{side.name, side.ops.Stream(), func() error { call(dst, x, y, false); return nil }})
		work.results = append(work.results, dst)
	}
	return work
}

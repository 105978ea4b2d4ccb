package kerneltest

import (
	"fmt"
	"testing"

	"siafu/kernels"
)

// products returns shapes m, n, k of dense products: empty, vectors, sizes around a tile, and a
// long k.
func products() [][3]int {
	return [][3]int{
		{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 17, 5}, {17, 1, 5},
		{7, 5, 3}, {64, 128, 16}, {65, 129, 33}, {130, 40, size(300, 40)}, {3, 260, 9},
		{size(33, 9), 7, size(2111, 1031)}, {66, 130, size(150, 20)}, {3, 129, size(1025, 65)},
	}
}

// MatMul tests kernels.Ops.MatMul.
func (s Suite) MatMul(t *testing.T) {
	s.eachProduct(t, func(p product) {
		p.at = func(i, j, l int) (int, int) { return i*p.k + l, l*p.n + j }
		p.run(func(l *fixture, dst kernels.Mat, add bool) {
			l.MatMul(dst, l.in(p.m, p.k, p.a), l.in(p.k, p.n, p.b), add)
		})
	})
}

// MatMulTransB tests kernels.Ops.MatMulTransB.
func (s Suite) MatMulTransB(t *testing.T) {
	s.eachProduct(t, func(p product) {
		p.at = func(i, j, l int) (int, int) { return i*p.k + l, j*p.k + l }
		p.run(func(l *fixture, dst kernels.Mat, add bool) {
			l.MatMulTransB(dst, l.in(p.m, p.k, p.a), l.in(p.n, p.k, p.b), add)
		})
	})
}

// MatMulTransA tests kernels.Ops.MatMulTransA.
func (s Suite) MatMulTransA(t *testing.T) {
	s.eachProduct(t, func(p product) {
		p.at = func(i, j, l int) (int, int) { return l*p.m + i, l*p.n + j }
		p.run(func(l *fixture, dst kernels.Mat, add bool) {
			l.MatMulTransA(dst, l.in(p.k, p.m, p.a), l.in(p.k, p.n, p.b), add)
		})
	})
}

// product is one case. at returns the indices in a and b of the operands of dst[i][j] at inner
// index l.
type product struct {
	s       Suite
	t       *testing.T
	m, n, k int
	a, b    []float32
	at      func(i, j, l int) (inA, inB int)
}

func (s Suite) eachProduct(t *testing.T, run func(p product)) {
	for _, shape := range products() {
		m, n, k := shape[0], shape[1], shape[2]
		t.Run(fmt.Sprintf("m=%d/n=%d/k=%d", m, n, k), func(t *testing.T) {
			run(product{s: s, t: t, m: m, n: n, k: k, a: Values(m*k, 1), b: Values(k*n, 2)})
		})
	}
}

// run compares results with and without add. No operand is zero, so that non-finite values
// always reach the result.
func (p product) run(mul func(l *fixture, dst kernels.Mat, add bool)) {
	p.t.Helper()
	for range 2 {
		p.compare(poison(p.m*p.n), false, mul)
		p.compare(Values(p.m*p.n, 3), true, mul)
		insertNonFinite(p.a)
		insertNonFinite(p.b)
	}
}

func (p product) compare(start []float32, add bool, mul func(l *fixture, dst kernels.Mat, add bool)) {
	p.t.Helper()
	compareSums(p.t, p.s.outcome(p.t, start, func(l *fixture, dst []float32) {
		mul(l, l.out(p.m, p.n, dst), add)
	}), p.verify(start, add))
}

// verify computes the product by definition: three loops, the sum innermost.
func (p product) verify(start []float32, add bool) []sum {
	dst := make([]sum, p.m*p.n)
	for i := range p.m {
		for j := range p.n {
			d := &dst[i*p.n+j]
			if add {
				d.add(float64(start[i*p.n+j]))
			}
			for l := range p.k {
				inA, inB := p.at(i, j, l)
				d.add(float64(p.a[inA]) * float64(p.b[inB]))
			}
		}
	}
	return dst
}

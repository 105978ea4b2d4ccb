package level3

import (
	"siafu/kernels/internal/avx"
	"siafu/kernels/internal/fma"
)

// Block sizes of K in package avx: of a plain and of a transposed A.
const (
	blockK  = 768
	packedK = 256
)

// tileColumns is the number of columns whose sums are on the stack.
const tileColumns = 256

// Multiply computes p in plain Go, with the bits of package avx: an element of C is the sum over
// blocks of K, each in ascending order. With skipZeros it skips the zeros of A. Pack is not
// used.
func Multiply(p avx.Product, skipZeros bool) {
	block := blockK
	if p.ColStride != 1 {
		block = packedK
	}
	var sums [tileColumns]float32
	for k := 0; k < p.K; k += block {
		for i := range p.M {
			for j := 0; j < p.N; j += tileColumns {
				sum := sums[:min(tileColumns, p.N-j)]
				clear(sum)
				addRows(sum, &p, i, j, k, min(k+block, p.K), skipZeros)
				store(p.C[i*p.LDC+j:], sum, p.Add || k > 0)
			}
		}
	}
}

// addRows adds the products of the elements [from, to) of row i of A and columns of B from j on.
func addRows(sum []float32, p *avx.Product, i, j, from, to int, skipZeros bool) {
	for k := from; k < to; k++ {
		a := p.A[i*p.RowStride+k*p.ColStride]
		if a != 0 || !skipZeros {
			fma.Add(sum, p.B[k*p.LDB+j:][:len(sum)], a)
		}
	}
}

// store sets a row of C to sum or, with add, adds it.
func store(c, sum []float32, add bool) {
	if !add {
		copy(c, sum)
		return
	}
	c = c[:len(sum)]
	for j, v := range sum {
		c[j] += v
	}
}

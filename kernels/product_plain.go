package kernels

import (
	"sync"

	"siafu/kernels/internal/avx"
)

// Block sizes of K in package avx: of a plain and of a transposed A.
const (
	blockK  = 768
	packedK = 256
)

// tileColumns is the number of columns that are computed at once.
const tileColumns = 64

// panel has the columns of a tile of a block of B, as float64.
type panel [blockK * tileColumns]float64

var panels = sync.Pool{New: func() any { return new(panel) }}

// multiplyPlain computes p in plain Go, with the bits of package avx: an element of C is the sum over
// blocks of K, each in ascending order. With skipZeros it skips the zeros of A. Pack is not
// used.
func multiplyPlain(p avx.Product, skipZeros bool) {
	b := panels.Get().(*panel)
	defer panels.Put(b)
	block := blockK
	if p.ColStride != 1 {
		block = packedK
	}
	for k := 0; k < p.K; k += block {
		rows := min(block, p.K-k)
		for j := 0; j < p.N; j += tileColumns {
			width := min(tileColumns, p.N-j)
			b.fill(&p, k, rows, j, width)
			for i := range p.M {
				b.multiply(p.C[i*p.LDC+j:][:width], p.A[i*p.RowStride+k*p.ColStride:], p.ColStride, rows, skipZeros, p.Add || k > 0)
			}
		}
	}
}

// fill reads columns [j, j+width) of rows of B from row k on.
func (b *panel) fill(p *avx.Product, k, rows, j, width int) {
	for r := range rows {
		to := b[r*width:][:width]
		for i, v := range p.B[(k+r)*p.LDB+j:][:width] {
			to[i] = float64(v)
		}
	}
}

// multiply sets c to the product of rows elements of a, stride apart, and the panel or, with add, adds it.
func (b *panel) multiply(c, a []float32, stride, rows int, skipZeros, add bool) {
	var sums [tileColumns]float64
	sum := sums[:len(c)]
	for k := range rows {
		if v := a[k*stride]; v != 0 || !skipZeros {
			avx.AddScaledWide(sum, b[k*len(c):][:len(c)], float64(v))
		}
	}
	for j, v := range sum {
		if add {
			c[j] += float32(v)
		} else {
			c[j] = float32(v)
		}
	}
}

package kernels

import (
	"sync"

	"siafu/kernels/internal/avx"
)

// Dense products that skip zeros. After ReLU half of an activation are zeros, after ReLU and
// dropout three quarters. The same holds for gradients that pass through both. A tiled product
// multiplies by them.
//
// Variant: package avx scans a bit per element and adds a row of the other operand for each
// bit that is set, in the order of the tiles. The bits are the same, so that either may be
// used. The choice follows an estimate of time from the fraction of zeros in a few rows.

// sampledRows is the number of rows in the estimate of an operand's fraction of zeros. Below
// fewElements there is no estimate.
const (
	sampledRows = 8
	fewElements = 1 << 15
)

// density returns the fraction of non-zeros in a sample of x [rows x cols].
func density(x []float32, rows, cols int) float64 {
	n := 0
	for i := range sampledRows {
		for _, v := range rowOf(x, (2*i+1)*rows/(2*sampledRows), cols) {
			if v != 0 {
				n++
			}
		}
	}
	return float64(n) / float64(sampledRows*cols)
}

// Cost of a product per element of the operand with zeros, in cycles of 16 lanes. Tiles keep
// the multipliers busy most of the time. When skipping zeros, there is a bit to compute per
// element and, per non-zero, a broadcast and dependent sums.
const (
	tilesBusy = 0.85
	perBit    = 0.6
	perLeft   = 1.5
	leastLeft = 4
)

// A vector costs more if the reused rows fill the first-level cache, and still more if they
// exceed a few times that.
const (
	nearBytes, far     = 32 << 10, 1.5
	farBytes, farthest = 96 << 10, 2.2
)

// gain returns the time, in the same cycles per element, that skipping zeros of x [rows x
// cols] saves in a product with rows of the given width, of which again are reused. It is at
// most 0 if it saves none. Tiles of pairs take half the time.
func (t *Team) gain(x []float32, rows, cols, width, again int, pairs bool) float64 {
	if !t.product.builtin || rows*cols < fewElements || cols < floatsOfLine {
		return 0
	}
	left := float64((width + floatsOfLine - 1) / floatsOfLine)
	switch bytes := again * min(width, avx.MostSummed) * bytesOfFloat; {
	case bytes > farBytes:
		left *= farthest
	case bytes >= nearBytes:
		left *= far
	}
	dense := denseCost(width)
	if pairs {
		dense /= 2
	}
	return dense - perBit - float64(density(x, rows, cols)*max(leastLeft, left+perLeft))
}

// denseCost returns the cost of an element with rows of the given width, in the same cycles.
func denseCost(width int) float64 {
	return float64((width+floatsOfLine-1)/floatsOfLine) / tilesBusy
}

// scratches has the scratch memory of package avx.
var scratches = sync.Pool{New: func() any { return new(avx.Scratch) }}

// multiply computes p, of pairs or with the zeros of A skipped.
func multiply(set avx.Set, p avx.Product) {
	switch {
	case p.Pairs:
		level3{set: set}.multiply(p)
	case set == avx.None:
		multiplyPlain(p, true)
	default:
		scratch := scratches.Get().(*avx.Scratch)
		set.MultiplySparse(p, scratch)
		scratches.Put(scratch)
	}
}

// transposeTask sets or adds to dst [cols x rows] the transpose of x.
type transposeTask struct {
	dst, x     []float32
	rows, cols int
	add        bool
}

func (k *transposeTask) chunk(lo, hi int) {
	clearUnless(k.add, k.dst[lo*k.rows:hi*k.rows])
	for r := range k.rows {
		for c, v := range k.x[r*k.cols+lo : r*k.cols+hi] {
			k.dst[(lo+c)*k.rows+r] += v
		}
	}
}

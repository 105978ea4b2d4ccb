package kernels

import (
	"sync"

	"siafu/kernels/internal/avx"
)

// Dense products whose zeros are left out. After ReLU half of an activation are zeros,
// after ReLU and dropout three quarters, and so are the gradients that go back through
// both; a product of tiles multiplies by them.
//
// Variant: package avx goes through a bit for each element and adds a row of the
// other operand for each one that is set, in the order of the tiles: the same bits, so
// that the choice is free. It falls on what should take less time by the share of zeros in
// a few rows.

// sampledRows are the rows that an operand's share of zeros is taken from, and
// fewElements are too few to look.
const (
	sampledRows = 8
	fewElements = 1 << 15
)

// density is the share of elements of x [rows x cols] that are not zero, in a sample.
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

// What a product takes for an element of the operand with zeros, in cycles of 16 lanes:
// tiles keep the multipliers busy for most of the time; without the zeros there is a bit
// to make for each element and, for each one that is left, an element to spread, and sums
// that wait for each other.
const (
	tilesBusy = 0.85
	perBit    = 0.6
	perLeft   = 1.5
	leastLeft = 4
)

// A vector takes longer where those that are met again and again are more bytes than the
// first-level cache has, and more still where they are more than a few times that.
const (
	nearBytes, far     = 32 << 10, 1.5
	farBytes, farthest = 96 << 10, 2.2
)

// gain is the time that leaving out zeros of x [rows x cols] saves in a product with rows
// of the given width, so many of which are met again and again; in those cycles an
// element, not above 0 where it saves none.
func (t *Team) gain(x []float32, rows, cols, width, again int) float64 {
	if !t.product.isBuiltin() || rows*cols < fewElements || cols < floatsOfLine {
		return 0
	}
	left := float64((width + floatsOfLine - 1) / floatsOfLine)
	switch met := again * min(width, avx.MostSummed) * bytesOfFloat; {
	case met > farBytes:
		left *= farthest
	case met > nearBytes:
		left *= far
	}
	return denseCost(width) - perBit - density(x, rows, cols)*max(leastLeft, left+perLeft)
}

// denseCost is what an element takes beside rows of the given width, in those cycles.
func denseCost(width int) float64 {
	return float64((width+floatsOfLine-1)/floatsOfLine) / tilesBusy
}

// scratches are what the routines of package avx need.
var scratches = sync.Pool{New: func() any { return new(avx.Scratch) }}

func multiplySparse(set avx.Set, p avx.Product) {
	scratch := scratches.Get().(*avx.Scratch)
	set.MultiplySparse(p, scratch)
	scratches.Put(scratch)
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

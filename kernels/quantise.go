package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// Rows rounded stochastically to a few bits an element.
//
//	code[c] = floor((x[c] - offset)/step + u[c]),  u[c] uniform in [0, 1)
//	x'[c]   = offset + step·code[c]
//
// so that the mean of x' is x and its error is less than a step (Gupta et al., "Deep learning
// with limited numerical precision", ICML'15, section 3).
//
// Variant: u has 16 bits, half a word of Philox, so that a draw serves eight columns.
// (x-offset)/step is rounded to 16 fractional bits, so that floor(…+u) is an integer addition
// and a shift.
//
// Design note: offset and step are bfloat16, not float32. A row of 128 in four bits then has
// 68 bytes instead of 72. Rounding the offset down loses no range, because the step is chosen
// to span from the rounded offset to the largest element.

// Grid has the values that rows are rounded to: Offset + k·Step for codes k from 0 on. The
// zero Grid is the grid of a row of zeros.
type Grid struct{ Offset, Step BF16 }

// Rows share a Grid if they have at most gridElements in total, so that its four bytes cost
// half a bit per element or more; at most mostGridRows rows share one.
const (
	gridElements = 64
	mostGridRows = 16
)

// GridRows returns the number of consecutive rows of cols columns that share a Grid in
// messages. It is a power of two, so that parts cut at multiples of 16 rows share grids like
// the whole; 1 for more than 32 columns.
func GridRows(cols int) int {
	rows := 1
	for rows < mostGridRows && 2*rows*cols <= gridElements {
		rows *= 2
	}
	return rows
}

// leastStep keeps 2¹⁶ divided by a step finite.
const leastStep = 1.0 / (1 << 110)

// NewGrid returns a grid that spans [lo, hi] with codes of 8, 4 or 2 bits. ok is false if the
// numbers are too large, beyond about 10³⁸.
func NewGrid(lo, hi float32, bits int) (g Grid, ok bool) {
	g.Offset = narrowDown(lo)
	span, top := float64(hi)-float64(g.Offset.Float32()), float32(topCode(bits))
	if span == 0 {
		return g, true
	}
	g.Step = narrowUp(max(float32(span)/top, leastStep))
	// The quotient may have been rounded down to a BF16. A branch on the direction of rounding
	// would be mispredicted every other time.
	if float64(g.Step.Float32())*float64(top) < span {
		g.Step++
	}
	return g, span < math.MaxFloat32/2
}

// topCode returns the largest code of the given bits.
func topCode(bits int) uint32 { return 1<<bits - 1 }

// narrowDown returns the largest BF16 <= v, with -0 taken as 0.
func narrowDown(v float32) BF16 {
	b := math.Float32bits(v)
	if v == 0 {
		return 0
	}
	if v < 0 {
		b += 0xffff // away from zero
	}
	return BF16(b >> 16)
}

// narrowUp returns the smallest BF16 >= v, which is positive.
func narrowUp(v float32) BF16 { return BF16((math.Float32bits(v) + 0xffff) >> 16) }

// Extent returns the smallest and the largest element of x, 0 if it is empty, and whether all
// are finite. Otherwise lo and hi are undefined.
func Extent(x []float32) (lo, hi float32, finite bool) {
	if len(x) == 0 {
		return 0, 0, true
	}
	if set := avx.Best(); set != avx.None {
		return set.Extent(x)
	}
	return extent(x)
}

func extent(x []float32) (lo, hi float32, finite bool) {
	lo, hi = x[0], x[0]
	poison := float32(0)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
		poison += v * 0 // NaN from the first element on that is not finite
	}
	return lo, hi, poison == 0
}

// Rounding computes the random numbers of stochastic rounding as a function of (seed, epoch,
// layer, direction, dataset id, column). Every rank and every order gives the same codes.
type Rounding struct {
	key          [2]uint32
	epoch, layer uint32
	draw         avx.Draw
	set          avx.Set
}

// backwardBit separates the random numbers of both directions.
const backwardBit = 1 << 23

// NewRounding returns the rounding of one exchange.
func NewRounding(seed uint64, epoch, layer int, backward bool) Rounding {
	r := Rounding{key: philoxKey(seed), epoch: uint32(epoch), layer: uint32(layer) | streamRounding, set: avx.Best()}
	if backward {
		r.layer |= backwardBit
	}
	r.draw = newDraw(r.key, r.epoch, r.layer)
	return r
}

// OfSums returns the rounding of sums that a rank computes. Sums for one vertex from several
// ranks are added, so each rank has its own random numbers.
func (r Rounding) OfSums(rank int) Rounding {
	r.layer += streamSums - streamRounding
	r.key[1] ^= uint32(rank)
	r.draw = newDraw(r.key, r.epoch, r.layer)
	return r
}

// Counters returns the key and counter words of r: the words of a row's columns from 8·block
// on are Philox({id, block, epoch, layer}, key).
func (r *Rounding) Counters() (key [2]uint32, epoch, layer uint32) { return r.key, r.epoch, r.layer }

// CodeSlack is the number of bytes after a row's codes that Codes may overwrite and
// Values may read.
const CodeSlack = avx.CodeSlack

// CodeBytes returns the size of the codes of cols elements in bytes.
func CodeBytes(cols, bits int) int { return (cols*bits + 7) / 8 }

// Codes rounds x, the row of a dataset id, to g, which must span it. It writes codes of 8, 4
// or 2 bits, lower columns in lower bits, to dst, which must have CodeSlack extra bytes.
func (r *Rounding) Codes(dst []byte, x []float32, g Grid, bits int, id uint32) {
	if len(dst) < CodeBytes(len(x), bits)+CodeSlack {
		panic(shortDst)
	}
	offset, inverse := g.Offset.Float32(), float32(0)
	if g.Step != 0 {
		inverse = (1 << 16) / g.Step.Float32()
	}
	if r.set != avx.None {
		r.set.Codes(&r.draw, dst, x, offset, inverse, bits, id)
		return
	}
	r.codes(dst, x, offset, inverse, bits, id)
}

func (r *Rounding) codes(dst []byte, x []float32, offset, inverse float32, bits int, id uint32) {
	clear(dst[:CodeBytes(len(x), bits)])
	var words [roundGroup / 2]uint32
	for c, v := range x {
		if c%roundGroup == 0 {
			words = r.words(id, uint32(c/8))
		}
		u := words[c%16] >> (c % roundGroup / 16 * 16) & 0xffff
		fixed := int32(math.RoundToEven(float64((v - offset) * inverse)))
		code := min((uint32(fixed)+u)>>16, topCode(bits))
		dst[c*bits/8] |= byte(code << (c * bits % 8))
	}
}

// roundGroup is the number of columns whose random numbers are drawn together.
const roundGroup = 32

// words returns the random words of the 32 columns from 8·block on. The low half of word i
// belongs to column i, the high half to column 16+i.
//
// Design note: pairs of words have the layout of vectors, so that no word has to be moved to its
// column.
func (r *Rounding) words(id, block uint32) (words [roundGroup / 2]uint32) {
	for k := range uint32(4) {
		w0, w1, w2, w3 := philox(id, block+k, r.epoch, r.layer, r.key[0], r.key[1])
		words[2*k], words[2*k+1], words[2*k+8], words[2*k+9] = w0, w1, w2, w3
	}
	return words
}

// Values sets dst to the values of codes or, with add, adds them. codes must have CodeSlack
// extra bytes.
func (g Grid) Values(dst []float32, codes []byte, bits int, add bool) {
	if len(codes) < CodeBytes(len(dst), bits)+CodeSlack {
		panic(shortInput)
	}
	g.values(avx.Best(), dst, codes, bits, add)
}

func (g Grid) values(set avx.Set, dst []float32, codes []byte, bits int, add bool) {
	offset, step := g.Offset.Float32(), g.Step.Float32()
	if set != avx.None {
		set.Values(dst, codes, offset, step, bits, add)
		return
	}
	for c := range dst {
		code := codes[c*bits/8] >> (c * bits % 8) & byte(topCode(bits))
		v := float32(float32(code)*step) + offset // the product is exact
		if add {
			v += dst[c]
		}
		dst[c] = v
	}
}

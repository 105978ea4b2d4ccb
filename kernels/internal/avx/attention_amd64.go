package avx

import "math/bits"

// Scale multiplies x by factor.
func (s Set) Scale(x []float32, factor float32) {
	if len(x) == 0 {
		return
	}
	full, lanes := s.split(len(x))
	if s == AVX512 {
		scaleRow512(&x[0], factor, full, lanes)
		return
	}
	scaleRow256(&x[0], factor, full, lanes)
}

// Rebase sets ids[i] to cols[i]-base. Both have the same length.
func (s Set) Rebase(ids, cols []uint32, base uint32) {
	if len(cols) == 0 {
		return
	}
	full, lanes := AVX2.split(len(cols))
	less256(&ids[0], &cols[0], base, full, lanes)
}

// orders are the lanes of Repeat, by the logarithm of its step.
var orders = [4][Heads]uint32{{}, {0, 1, 0, 1, 0, 1, 0, 1}, {0, 1, 2, 3, 0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}}

// Repeat fills to with repetitions of from, of at most step values, every step lanes. step is 1, 2, 4 or 8.
func (s Set) Repeat(to *Near, from []float32, step int) {
	repeat256(&to[0], &from[0], &orders[bits.TrailingZeros(uint(step))][0], len(from))
}

// Scores sets the scores of a block to near + far[id], times slope if that is negative, and raises
// top to them, except NaNs. slope is in [0, 1]. far has heads floats every stride floats. The
// ScoresAhead elements after ids are read for prefetching.
func (s Set) Scores(scores []float32, step, heads int, near *Near, far []float32, stride int, ids []uint32, slope float32, top *Near) {
	if len(ids) == 0 {
		return
	}
	if step == 1 {
		full, lanes := AVX2.split(len(ids))
		scoresOfOne256(&scores[0], &near[0], &far[0], stride, &ids[0], slope, &top[0], full, lanes)
		return
	}
	scores256(&scores[0], 4*step, &near[0], &far[0], 4*stride, &ids[0], len(ids), heads, slope, &top[0])
}

// Ends sets the scores of a block to near + far[id], times slope if that is negative, and lse and
// dots to the values heads and 2·heads floats after far[id]. slope is in [0, 1]. The ScoresAhead
// elements after ids are read for prefetching.
func (s Set) Ends(scores, lse, dots []float32, step, heads int, near *Near, far []float32, ids []uint32, slope float32) {
	if len(ids) == 0 {
		return
	}
	if step == 1 {
		full, lanes := AVX2.split(len(ids))
		endsOfOne256(&scores[0], &lse[0], &dots[0], &near[0], &far[0], &ids[0], slope, full, lanes)
		return
	}
	ends256(&scores[0], &lse[0], &dots[0], 4*step, &near[0], &far[0], 12*heads, &ids[0], len(ids), heads, slope)
}

// Lookup sets dst[i] to table[ids[i]].
func (s Set) Lookup(dst, ids, table []uint32) {
	if len(ids) == 0 {
		return
	}
	look(&dst[0], &ids[0], &table[0], len(ids))
}

// Weights replaces the n scores by keep·e^(score-top), and adds the exponentials to sum. The
// relative error of an exponential is at most 2e-7; below e^-86 it is 0.
//
// With signed, it sets the sign bit of each weight unless its score was positive, and also adds the
// exponentials with these signs to signed.
func (s Set) Weights(scores []float32, n int, keep PerEdge, top, sum, signed *Near) {
	if n == 0 {
		return
	}
	full, lanes := AVX2.split(n)
	if signed == nil {
		weights256(&scores[0], &keep.Vals[0], 4*keep.Step, &top[0], &sum[0], full, lanes)
		return
	}
	signedWeights256(&scores[0], &keep.Vals[0], 4*keep.Step, &top[0], &sum[0], &signed[0], full, lanes)
}

// Slopes replaces the n scores by keep·p, p = e^(score-lse), and adds to sum
//
//	p · (dq·keep - dots), times slope unless the score is positive
func (s Set) Slopes(scores, dq []float32, n int, keep, lse, dots PerEdge, slope float32, sum *Near) {
	if n == 0 {
		return
	}
	full, lanes := AVX2.split(n)
	slopes256(&scores[0], &dq[0], &keep.Vals[0], 4*keep.Step, &lse.Vals[0], &dots.Vals[0], 4*lse.Step, slope, &sum[0], full, lanes)
}

// EdgeMask sets four heads of n edges to Scale or 0, by the random words of source and target. The
// one of length Heads has the same id for all edges. The other one has ids up to a multiple of
// Heads.
func (s Set) EdgeMask(d *Draw, dst []float32, step int, sources, targets []uint32, n int) {
	if n == 0 {
		return
	}
	edges := s.lanes() / 2
	sourceStep, targetStep := 4*edges, 4*edges
	if len(sources) == Heads {
		sourceStep = 0
	}
	if len(targets) == Heads {
		targetStep = 0
	}
	turns := (n + edges - 1) / edges
	if s == AVX512 {
		edgeMask512(&d.Keys[0][0], &dst[0], 4*step, &sources[0], sourceStep, &targets[0], targetStep, turns)
		return
	}
	edgeMask256(&d.Keys[0][0], &dst[0], 4*step, &sources[0], sourceStep, &targets[0], targetStep, turns)
}

// columnsOfHead returns the columns of a head, the full groups of 16 before the last one, and the
// columns of the last one.
func columnsOfHead(row []float32, heads int) (width, full, last int) {
	width = len(row) / heads
	full = (width - 1) / 16
	return width, full, width - 16*full
}

// Dots sets the scores of the first n edges to the dot products of row and the edge's row of x, for
// each of heads heads. Rows of x are stride floats apart. Further ids are read for prefetching.
func (s Set) Dots(dst []float32, step, heads int, row, x []float32, stride int, ids []uint32, n int) {
	if n == 0 || len(row) == 0 {
		return
	}
	width, full, last := columnsOfHead(row, heads)
	prefetching := min(n, max(len(ids)-ahead, 0))
	switch {
	case s == AVX512 && heads == 8 && width == 8:
		dotsOfEight512(&dst[0], 4*step, &row[0], &x[0], 4*stride, &ids[0], n, prefetching)
		return
	case s == AVX512:
		dots512(&dst[0], 4*step, &row[0], &x[0], 4*stride, &ids[0], n, prefetching, heads, full, last, 0, 4*last)
		return
	}
	dots256(&dst[0], 4*step, &row[0], &x[0], 4*stride, &ids[0], n, prefetching, heads, full, min(last, 8), max(last-8, 0), 4*last)
}

// Weigh adds to dst the rows of x of the first n edges, times the first weight of the edge. With
// heads, column j is multiplied by weight heads[j]. The width is that of dst. Further ids are read
// for prefetching.
//
// With signed, which is as long as dst, it adds the rows times the weights to signed, and times the
// absolute weights to dst.
func (s Set) Weigh(dst, signed, x []float32, stride int, ids []uint32, weights []float32, step, n int, heads []uint32) {
	if n == 0 {
		return
	}
	prefetching := min(n, max(len(ids)-ahead, 0))
	rest := n - prefetching
	tile := 8 * s.lanes()
	if s == AVX2 && heads != nil {
		tile /= 2
	}
	if s == AVX2 && signed != nil {
		tile /= 2
	}
	for j := 0; j < len(dst); j += tile {
		full, lanes := s.split(min(tile, len(dst)-j))
		head, sum := optional(heads, j), optional(signed, j)
		if s == AVX512 {
			weigh512(&dst[j], &x[j], 4*stride, &ids[0], &weights[0], 4*step, prefetching, rest, full+1, lanes, head, sum)
		} else {
			weigh256(&dst[j], &x[j], 4*stride, &ids[0], &weights[0], 4*step, prefetching, rest, full+1, lanes, head, sum)
		}
	}
}

// optional returns the place of element j, and nil for a nil slice.
func optional[E any](x []E, j int) *E {
	if x == nil {
		return nil
	}
	return &x[j]
}

// SlopesOfEdges replaces scores like Slopes, but stores the addends in dq instead of adding them up.
func (s Set) SlopesOfEdges(scores, dq []float32, n int, keep, lse, dots PerEdge, slope float32) {
	if n == 0 {
		return
	}
	full, lanes := AVX2.split(n)
	var none Near
	slopesOfEdges256(&scores[0], &dq[0], &keep.Vals[0], 4*keep.Step, &lse.Vals[0], &dots.Vals[0], 4*lse.Step, slope, &none[0], full, lanes)
}

// Tops raises top to the n scores, except NaNs.
func (s Set) Tops(scores []float32, n int, top *Near) {
	if n == 0 {
		return
	}
	full, lanes := AVX2.split(n)
	tops256(&scores[0], &top[0], full, lanes)
}

// LeakyDots sets the scores like Dots, to the products of vector, as long as row, and the leaky sums
// of row and rows of x.
func (s Set) LeakyDots(dst []float32, step, heads int, row, vector, x []float32, stride int, ids []uint32, n int, slope float32) {
	if n == 0 || len(row) == 0 {
		return
	}
	width, full, last := columnsOfHead(row, heads)
	prefetching := min(n, max(len(ids)-ahead, 0))
	switch {
	case s == AVX512 && heads == 8 && width == 8:
		bentDotsOfEight512(&dst[0], 4*step, &row[0], &vector[0], &x[0], 4*stride, &ids[0], n, prefetching, slope)
	case s == AVX512:
		bentDots512(&dst[0], 4*step, &row[0], &vector[0], &x[0], 4*stride, &ids[0], n, prefetching, heads, full, last, 0, 4*last, slope)
	default:
		bentDots256(&dst[0], 4*step, &row[0], &vector[0], &x[0], 4*stride, &ids[0], n, prefetching, heads, full, min(last, 8),
			max(last-8, 0), 4*last, slope)
	}
}

// firstHead is the list of heads if there is one head.
var firstHead [64]uint32

// LeakyGradient adds to dst the columns of vector times the sum over n edges of ds·s. s is slope if t, the
// sum of near and the edge's row of x, is not positive, else 1. It adds the sums of ds·s·t to along,
// unless along is nil. Column j uses ds of head heads[j], or of the first head without heads; ds of
// two edges are step floats apart.
func (s Set) LeakyGradient(dst, along, near, vector, x []float32, stride int, ids []uint32, ds []float32, step, n int,
	slope float32, heads []uint32) {
	if n == 0 {
		return
	}
	tile := s.lanes() / 4 * s.lanes()
	for j := 0; j < len(dst); j += tile {
		full, lanes := s.split(min(tile, len(dst)-j))
		head := &firstHead[0]
		if heads != nil {
			head = &heads[j]
		}
		sum := optional(along, j)
		if s == AVX512 {
			bend512(&dst[j], sum, &near[j], &vector[j], &x[j], 4*stride, &ids[0], &ds[0], 4*step, n, slope, full+1, lanes, head)
		} else {
			bend256(&dst[j], sum, &near[j], &vector[j], &x[j], 4*stride, &ids[0], &ds[0], 4*step, n, slope, full+1, lanes, head)
		}
	}
}

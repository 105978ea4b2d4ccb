package avx

import "unsafe"

type tileFunc func(c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, k int, add bool, lanes int, next *float32, step int)

// tiles has the routines by instruction set, number of rows, and one or two vectors.
var tiles = [...][][3]tileFunc{
	AVX2: {
		1: {nil, tile256x1x1, tile256x1x2},
		2: {nil, tile256x2x1, tile256x2x2},
		3: {nil, tile256x3x1, tile256x3x2},
		4: {nil, tile256x4x1, tile256x4x2},
		5: {nil, tile256x5x1, tile256x5x2},
		6: {nil, tile256x6x1, tile256x6x2},
	},
	AVX512: {
		1:  {nil, tile512x1x1, tile512x1x2},
		2:  {nil, tile512x2x1, tile512x2x2},
		3:  {nil, tile512x3x1, tile512x3x2},
		4:  {nil, tile512x4x1, tile512x4x2},
		5:  {nil, tile512x5x1, tile512x5x2},
		6:  {nil, tile512x6x1, tile512x6x2},
		7:  {nil, tile512x7x1, tile512x7x2},
		8:  {nil, tile512x8x1, tile512x8x2},
		9:  {nil, tile512x9x1, tile512x9x2},
		10: {nil, tile512x10x1, tile512x10x2},
		11: {nil, tile512x11x1, tile512x11x2},
		12: {nil, tile512x12x1, tile512x12x2},
	},
}

// Block sizes of K. The rows of A of a tile must fit into the first-level cache, and the rows of B
// into the second-level cache, while all rows of A are multiplied with them. A transposed A is
// packed first.
const (
	blockK     = 768
	packedK    = 256
	packedRows = 12 // of the tallest tile
)

// PackSize is the length of Product.Pack: pairs of the rows of a tile, whole blocks of 32 elements.
const PackSize = packedRows * (blockK + pairBlock) / 2

// Multiply computes p. An element of C is the sum over blocks of K, each in ascending order,
// independent of its position in a tile. K must be at least 1.
//
// A tile of rows of A, which is in the first-level cache, is multiplied with all of B before the
// next tile, whose rows are prefetched meanwhile.
func (s Set) Multiply(p Product) { s.multiplyBlocks(p, nil) }

// multiplyBlocks computes p by blocks of K. With scratch it skips the zeros of A.
func (s Set) multiplyBlocks(p Product, scratch *Scratch) {
	block := blockK
	if p.ColStride != 1 {
		block = packedK
	}
	for k := 0; k < p.K; k += block {
		part := p
		if part.B = p.B[p.rowsOfB(k)*p.LDB:]; p.Half != nil {
			part.Half = p.Half[k*p.ColStride:]
		} else {
			part.A = p.A[k*p.ColStride:]
		}
		part.K = min(block, p.K-k)
		part.Add = p.Add || k > 0
		switch packed := p.ColStride != 1; {
		case scratch != nil && packed:
			s.sumColumns(&part, scratch)
		case scratch != nil:
			s.multiplyRowsOf(&part, scratch)
		case packed && p.Pairs:
			s.multiplyPairs(&part)
		case packed:
			s.multiplyPacked(&part)
		default:
			s.multiply(&part)
		}
	}
}

// tile returns the number of rows and the routines for the next rows of M. Rows are divided evenly,
// because in a tile with few sums each addition waits for the one before.
func (s Set) tile(rows int, pairs bool) (height int, f *[3]tileFunc) {
	highest := len(tiles[s]) - 1
	count := (rows + highest - 1) / highest
	height = (rows + count - 1) / count
	if pairs {
		return height, &pairTiles[height]
	}
	return height, &tiles[s][height]
}

// Cost returns the time of Multiply for a row of a transposed A [K x m] and of B [K x n]. The
// unit is half a cycle of a processor that starts two multiply-adds or loads per cycle.
func (s Set) Cost(m, n int) (cost int) {
	const (
		wait = 8 // of an addition for the one before
		pack = 7
	)
	for lanes := s.lanes(); m > 0; {
		height, _ := s.tile(m, false)
		cost += pack
		for j := 0; j < n; j += 2 * lanes {
			vectors := min(2, (n-j+lanes-1)/lanes)
			cost += max(height*vectors, height+vectors+1, wait)
		}
		m -= height
	}
	return cost
}

// multiply computes p and prefetches the next rows of A and C.
func (s Set) multiply(p *Product) {
	for i := 0; i < p.M; {
		h, f := s.tile(p.M-i, p.Pairs)
		next, a, stride := prefetch{p.stretchOfA((i+h)*p.RowStride, h*p.K)}, unsafe.SliceData(p.Pack), p.RowStride
		if p.Pairs {
			stride = pairRows(p, i, h)
			next[1] = stretch{p.C[min((i+h)*p.LDC, len(p.C)-1):], h * p.N}
		} else {
			a = &p.A[i*p.RowStride]
		}
		s.multiplyRows(p, f, i, a, 4*stride, 4, &next)
		i += h
	}
}

// multiplyPacked packs A and computes p. It prefetches the next block of K: A while it packs,
// because A's rows are far apart, and B line by line.
func (s Set) multiplyPacked(p *Product) {
	ahead := p.K * p.ColStride
	if 2*ahead > len(p.A) {
		ahead = 0
	}
	next := prefetch{{rest: p.B[min(p.K*p.LDB, len(p.B)-1):]}}
	for i := 0; i < p.M; {
		h, f := s.tile(p.M-i, false)
		s.pack(&p.Pack[0], &p.A[i], 4*p.ColStride, p.K, h, 4*ahead)
		next[0].left = h * p.K * p.N / p.M
		s.multiplyRows(p, f, i, &p.Pack[0], 4, 4*h, &next)
		i += h
	}
}

// line is the size of a cache line in bytes.
const line = 64

// stretch is memory to prefetch: the first left elements of rest, which has at least one.
type stretch struct {
	rest []float32
	left int
}

// prefetch has two stretches, one after the other.
type prefetch [2]stretch

// take returns the place of the next lines, step bytes apart, and removes them.
func (f *prefetch) take(lines, step int) *float32 {
	s := &f[0]
	if s.left <= 0 && f[1].left > 0 {
		s = &f[1]
	}
	at := &s.rest[0]
	s.left -= lines * step / 4
	s.rest = s.rest[min(lines*step/4, len(s.rest)-1):]
	return at
}

// multiplyRows computes one tile of rows of C, from i on, for all columns. Pairs need less time than memory, so
// that lines are prefetched as early as possible.
func (s Set) multiplyRows(p *Product, f *[3]tileFunc, i int, a *float32, rowStride, colStride int, next *prefetch) {
	lanes, k, step := s.lanes(), p.rowsOfB(p.K), line
	if !p.Pairs {
		calls := (p.N + 2*lanes - 1) / (2 * lanes)
		step = min((4*next[0].left+calls*k-1)/(calls*k), line)
	}
	for j := 0; j < p.N; j += 2 * lanes {
		w := min(2*lanes, p.N-j)
		vectors := (w + lanes - 1) / lanes
		f[vectors](&p.C[i*p.LDC+j], 4*p.LDC, a, rowStride, colStride,
			&p.B[j], 4*p.LDB, k, p.Add, w-(vectors-1)*lanes, next.take(k, step), step)
	}
}

func (s Set) pack(dst, a *float32, stride, k, lanes, ahead int) {
	if s == AVX512 {
		pack512(dst, a, stride, k, lanes, ahead)
		return
	}
	pack256(dst, a, stride, k, lanes, ahead)
}

package avx

type tileFunc func(c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, k int, add bool, lanes int)

// tiles are the routines for a number of rows, highest first, and one or two
// vectors, by instruction set.
var tiles = [...][]struct {
	height int
	f      [3]tileFunc
}{
	AVX2: {
		{6, [3]tileFunc{nil, tile256x6x1, tile256x6x2}},
		{4, [3]tileFunc{nil, tile256x4x1, tile256x4x2}},
		{2, [3]tileFunc{nil, tile256x2x1, tile256x2x2}},
		{1, [3]tileFunc{nil, tile256x1x1, tile256x1x2}},
	},
	AVX512: {
		{12, [3]tileFunc{nil, tile512x12x1, tile512x12x2}},
		{8, [3]tileFunc{nil, tile512x8x1, tile512x8x2}},
		{4, [3]tileFunc{nil, tile512x4x1, tile512x4x2}},
		{2, [3]tileFunc{nil, tile512x2x1, tile512x2x2}},
		{1, [3]tileFunc{nil, tile512x1x1, tile512x1x2}},
	},
}

// Multiply computes p. An element of C is the sum over K in ascending order,
// wherever it lies in a tile. K must be at least 1.
//
// A block of rows of A, which the first-level cache holds, meets all of B
// before the next block: B comes from the second level.
func (s Set) Multiply(p Product) {
	lanes := s.lanes()
	heights := tiles[s]
	for i := 0; i < p.M; {
		for p.M-i < heights[0].height {
			heights = heights[1:]
		}
		h := heights[0]
		for j := 0; j < p.N; j += 2 * lanes {
			w := min(2*lanes, p.N-j)
			vectors := (w + lanes - 1) / lanes
			h.f[vectors](&p.C[i*p.LDC+j], 4*p.LDC, &p.A[i*p.RowStride], 4*p.RowStride, 4*p.ColStride,
				&p.B[j], 4*p.LDB, p.K, p.Add, w-(vectors-1)*lanes)
		}
		i += h.height
	}
}

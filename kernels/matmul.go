package kernels

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"siafu/kernels/internal/avx"
)

// Dense times dense, the products of a layer's apply (AV and ∇AV).
//
//	MatMul        dst[m x n] (+)= a[m x k] b[k x n]       H W
//	MatMulTransB  dst[m x n]   =  a[m x k] b[n x k]ᵀ      G Wᵀ
//	MatMulTransA  dst[m x n] (+)= a[k x m]ᵀ b[k x n]      Hᵀ G, k long
//
// Variant: where package avx has routines for this machine, blocks of rows with
// sums in registers over all of k; W of G Wᵀ is transposed first, which is
// little work beside the product. Elsewhere tiles of the registered blas32
// implementation, each computed by one worker: a tile is below the size at which gonum's own Sgemm starts
// goroutines of its own, which costs allocations and, on a Team, time. In
// MatMulTransA, k is cut into blocks by a rule that looks at shapes alone;
// their products are summed in order of blocks.
//
// As in BLAS, a NaN or an infinity in one operand that meets a zero in the
// other may or may not reach dst.

// A tile of dst: it fits into a 48 KB first-level cache with what it is made
// of, and counts two of the four 64 x 64 blocks from which gonum goes parallel.
const (
	tileRows = 64
	tileCols = 128
)

// avxRows is a block of rows for one worker: a multiple of what the routines
// take at a time (12 and 6).
const avxRows = 96

// MatMul computes dst[m x n] = a[m x k] b[k x n], or adds it to dst. dst must
// not overlap a or b.
func MatMul(t *Team, dst []float32, m, n, k int, a, b []float32, add bool) {
	matMul(t, dst, m, n, k, a, b, blas.NoTrans, add)
}

// MatMulTransB computes dst[m x n] = a[m x k] b[n x k]ᵀ. dst must not overlap
// a or b.
func MatMulTransB(t *Team, dst []float32, m, n, k int, a, b []float32) {
	matMul(t, dst, m, n, k, a, b, blas.Trans, false)
}

func matMul(t *Team, dst []float32, m, n, k int, a, b []float32, transB blas.Transpose, add bool) {
	checkMatrix(dst, m, n, shortDst)
	checkMatrix(a, m, k, shortInput)
	checkMatrix(b, k, n, shortInput)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		clearUnless(add, dst[:m*n])
		return
	}
	grain := tileRows
	if t.set != avx.None {
		grain = avxRows
		if transB == blas.Trans {
			b = transpose(scratch(&t.floats, k*n), b, n, k)
		}
	}
	do(t, &t.slots.gemm, gemmTask{dst, a, b, n, k, transB, add, t.set}, m, grain)
}

// transpose sets dst[cols x rows] to the transpose of x[rows x cols].
func transpose(dst, x []float32, rows, cols int) []float32 {
	for r := range rows {
		for c, v := range rowOf(x, r, cols) {
			dst[c*rows+r] = v
		}
	}
	return dst
}

func clearUnless(add bool, dst []float32) {
	if !add {
		clear(dst)
	}
}

type gemmTask struct {
	dst, a, b []float32
	n, k      int
	transB    blas.Transpose
	add       bool
	set       avx.Set
}

func (g *gemmTask) chunk(lo, hi int) {
	if g.set != avx.None {
		g.set.Multiply(avx.Product{
			C: g.dst[lo*g.n:], LDC: g.n, A: g.a[lo*g.k:], RowStride: g.k, ColStride: 1,
			B: g.b, LDB: g.n, M: hi - lo, N: g.n, K: g.k, Add: g.add,
		})
		return
	}
	a := general(g.a[lo*g.k:], hi-lo, g.k, g.k)
	for j := 0; j < g.n; j += tileCols {
		w := min(tileCols, g.n-j)
		var b blas32.General
		if g.transB == blas.Trans {
			b = general(g.b[j*g.k:], w, g.k, g.k)
		} else {
			b = general(g.b[j:], g.k, w, g.n)
		}
		c := general(g.dst[lo*g.n+j:], hi-lo, w, g.n)
		blas32.Gemm(blas.NoTrans, g.transB, 1, a, b, beta(g.add), c)
	}
}

func general(v []float32, rows, cols, stride int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: stride, Data: v}
}

func beta(add bool) float32 {
	if add {
		return 1
	}
	return 0
}

// transARows is how many rows of dst one worker computes in MatMulTransA: as
// avxRows, and enough to use what it reads of b more than once.
const transARows = 192

// Blocks of k in MatMulTransA: enough to share among many workers, not so many
// that their sums, each of the size of dst, outweigh the products.
const (
	minBlockRows   = 512
	maxBlocks      = 64
	maxPartsFloats = 1 << 20
)

// blocksOf is the number of blocks that rows are cut into when each leaves a
// part of the given size.
func blocksOf(rows, part int) int {
	return max(1, min(rows/minBlockRows, maxBlocks, maxPartsFloats/max(part, 1)))
}

// MatMulTransA computes dst[m x n] = a[k x m]ᵀ b[k x n], or adds it to dst.
// dst must not overlap a or b.
func MatMulTransA(t *Team, dst []float32, m, n, k int, a, b []float32, add bool) {
	checkMatrix(dst, m, n, shortDst)
	checkMatrix(a, k, m, shortInput)
	checkMatrix(b, k, n, shortInput)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		clearUnless(add, dst[:m*n])
		return
	}
	blocks := blocksOf(k, m*n)
	tiles := (m + transARows - 1) / transARows
	room := scratch(&t.floats, blocks*m*n+blocks*tiles*avx.PackSize)
	args := transATask{dst, a, b, room[blocks*m*n:], m, n, k, blocks, tiles, add, t.set}
	if blocks > 1 {
		args.dst, args.add = room, false
	}
	do(t, &t.slots.transA, args, blocks*tiles, 1)
	if blocks > 1 {
		sumParts(t, dst[:m*n], blocks, add)
	}
}

type transATask struct {
	dst, a, b, packs       []float32
	m, n, k, blocks, tiles int
	add                    bool
	set                    avx.Set
}

// chunk computes the tiles [lo, hi), counted block by block.
func (g *transATask) chunk(lo, hi int) {
	for c := lo; c < hi; c++ {
		block, i := c/g.tiles, c%g.tiles*transARows
		from, to := block*g.k/g.blocks, (block+1)*g.k/g.blocks
		rows := min(transARows, g.m-i)
		dst := g.dst[block*g.m*g.n:]
		if g.set != avx.None {
			g.set.Multiply(avx.Product{
				C: dst[i*g.n:], LDC: g.n, A: g.a[from*g.m+i:], RowStride: 1, ColStride: g.m,
				B: g.b[from*g.n:], LDB: g.n, M: rows, N: g.n, K: to - from, Add: g.add,
				Pack: g.packs[c*avx.PackSize:],
			})
			continue
		}
		a := general(g.a[from*g.m+i:], to-from, rows, g.m)
		for j := 0; j < g.n; j += tileCols {
			w := min(tileCols, g.n-j)
			blas32.Gemm(blas.Trans, blas.NoTrans, 1, a, general(g.b[from*g.n+j:], to-from, w, g.n),
				beta(g.add), general(dst[i*g.n+j:], rows, w, g.n))
		}
	}
}

// sumParts sums the parts in t.floats, each of the size of dst, in order.
func sumParts(t *Team, dst []float32, parts int, add bool) {
	args := sumPartsTask{dst, t.floats, parts, add}
	do(t, &t.slots.sumParts, args, len(dst), max(chunkElements/parts, 16))
}

type sumPartsTask struct {
	dst, parts []float32
	n          int
	add        bool
}

func (s *sumPartsTask) chunk(lo, hi int) {
	dst := s.dst[lo:hi]
	clearUnless(s.add, dst)
	for p := range s.n {
		part := s.parts[p*len(s.dst)+lo:][:len(dst)]
		for j := range dst {
			dst[j] += part[j]
		}
	}
}

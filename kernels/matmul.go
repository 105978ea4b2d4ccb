package kernels

import (
	"sync"

	"gonum.org/v1/gonum/blas"

	"siafu/kernels/internal/avx"
)

// Dense products of a layer's apply step (AV and ∇AV).
//
//	MatMul        dst[m x n] (+)= a[m x k] b[k x n]       H W
//	MatMulTransB  dst[m x n] (+)= a[m x k] b[n x k]ᵀ      G Wᵀ
//	MatMulTransA  dst[m x n] (+)= a[k x m]ᵀ b[k x n]      Hᵀ G, k long
//
// Variant: blocks of rows; for each block a worker calls an implementation of gonum's BLAS
// interface, which the Team selects (level3). W of G Wᵀ is transposed first, which is
// little work compared with the product. In MatMulTransA, k is cut into blocks by a rule that
// depends only on shapes; the blocks' products are summed in order.
//
// With RoundOperands, products are those of operands rounded to bfloat16 (rounding).
//
// As in BLAS, a NaN or an infinity times a zero of the other operand may or may not reach dst.

// product is an implementation, and the size of its calls.
type product struct {
	blas.Float32Level3
	rows    int  // of dst in MatMul
	tall    int  // rows of dst in MatMulTransA
	builtin bool // by level3, which can skip the zeros of an operand with the same bits
}

// A call of level3 gets a multiple of the 12 and 6 rows that its routines take at a
// time. OpenBLAS packs both operands in each call, which more rows amortize.
const (
	avxRows      = 96
	avxTall      = 192
	pairsTall    = 768 // each call rounds b
	openblasRows = 1024
)

// MatMul implements Ops. dst must not overlap a or b.
func (t *Team) MatMul(dst, a, b Mat, add bool) {
	mustFit(dst.Rows == a.Rows && a.Cols == b.Rows && dst.Cols == b.Cols)
	g := gemmTask{dst: dst.Host(), b: b.Host(), n: dst.Cols, k: a.Cols, add: add}
	g.a, g.half = floatsOrHalves(a)
	matMul(t, g, dst.Rows, blas.NoTrans)
}

// MatMulTransB implements Ops. dst must not overlap a or b.
func (t *Team) MatMulTransB(dst, a, b Mat, add bool) {
	mustFit(dst.Rows == a.Rows && a.Cols == b.Cols && dst.Cols == b.Rows)
	matMul(t, gemmTask{dst: dst.Host(), a: a.Host(), b: b.Host(), n: dst.Cols, k: a.Cols, add: add}, dst.Rows, blas.Trans)
}

// floatsOrHalves returns the elements of a matrix of either type.
func floatsOrHalves(m Mat) ([]float32, []uint16) {
	if m.half {
		return nil, bitsOf(m.HostHalf(0))
	}
	return m.Host(), nil
}

func matMul(t *Team, g gemmTask, m int, transB blas.Transpose) {
	if m == 0 || g.n == 0 {
		return
	}
	if g.k == 0 {
		clearUnless(g.add, g.dst[:m*g.n])
		return
	}
	if transB == blas.Trans {
		g.b = transpose(scratch(&t.floats, g.k*g.n), g.b, g.n, g.k)
	}
	g.run(t, m, 0)
	do(t, g, m, t.product.rows)
}

// run selects how t computes the product, of m rows. which is its number among the products of a task.
func (g *gemmTask) run(t *Team, m, which int) {
	g.product, g.set = t.product, t.set
	g.skips = g.half == nil && t.gain(g.a, m, g.k, g.n, max(g.k, avx.RowsOfBits), t.pairs()) > 0
	g.rounding = t.rounding(g.skips)
	if g.rounds {
		g.b = g.roundB(&t.rounded[which], g.set, g.b, g.k, g.n)
	}
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
	product
	rounding
	dst, a []float32
	half   []uint16 // in the place of a
	b      []float32
	n, k   int
	add    bool
	skips  bool // the zeros of a
	set    avx.Set
}

func (g *gemmTask) chunk(lo, hi int) { g.into(g.dst[lo*g.n:], lo, hi, 0, g.n) }

// into computes columns [col, col+w) of rows [lo, hi); dst has only these rows.
func (g *gemmTask) into(dst []float32, lo, hi, col, w int) {
	if g.half != nil && g.pairs {
		multiply(g.set, avx.Product{C: dst, LDC: w, Half: g.half[lo*g.k:], RowStride: g.k, ColStride: 1,
			B: g.b[col:], LDB: g.n, M: hi - lo, N: w, K: g.k, Add: g.add, Pairs: true})
		return
	}
	buffer, a := widenPool.Get().(*[]float32), []float32(nil)
	if g.half != nil {
		a = widenRows(g.set, buffer, g.half[lo*g.k:], g.k, hi-lo, 0, g.k)
	} else {
		a = g.a[lo*g.k:]
	}
	g.columns(dst, g.roundA(buffer, g.set, a, g.k, hi-lo, g.k), hi-lo, col, w, w)
	widenPool.Put(buffer)
}

// columns computes columns [col, col+w) of rows that are stride elements apart, from the rows
// of a.
func (g *gemmTask) columns(dst, a []float32, rows, col, w, stride int) {
	if g.skips || g.pairs {
		multiply(g.set, avx.Product{C: dst, LDC: stride, A: a, RowStride: g.k, ColStride: 1,
			B: g.b[col:], LDB: g.n, M: rows, N: w, K: g.k, Add: g.add, Pairs: g.pairs})
		return
	}
	g.Sgemm(blas.NoTrans, blas.NoTrans, rows, w, g.k, 1, a, g.k, g.b[col:], g.n, beta(g.add), dst, stride)
}

func beta(add bool) float32 {
	if add {
		return 1
	}
	return 0
}

// Blocks of k in MatMulTransA: enough for many workers, few enough that adding their results,
// each of the size of dst, costs less than the products.
const (
	minBlockRows   = 512
	maxBlocks      = 64
	maxPartsFloats = 1 << 20
)

// blocksOf returns the number of blocks of rows, if each block has a result of size part.
func blocksOf(rows, part int) int {
	return max(1, min(rows/minBlockRows, maxBlocks, maxPartsFloats/max(part, 1)))
}

// MatMulTransA implements Ops. dst must not overlap a or b.
func (t *Team) MatMulTransA(to, a, b Mat, add bool) {
	mustFit(to.Rows == a.Cols && a.Rows == b.Rows && to.Cols == b.Cols)
	g := transATask{dst: to.Host(), b: b.Host(), m: to.Rows, n: to.Cols, k: a.Rows, add: add, product: t.product, set: t.set}
	g.a, g.half = floatsOrHalves(a)
	switch {
	case g.m == 0 || g.n == 0:
	case g.k == 0:
		clearUnless(add, g.dst[:g.m*g.n])
	default:
		if turn, skips := g.choose(t); turn {
			mulTransposed(t, g, skips)
			return
		}
		sumBlocks(t, g)
	}
}

// choose decides whether zeros of a are skipped, and reports whether to compute bᵀ a instead,
// without the zeros of b if skips is set. The bits are the same, except when adding to dst.
func (g *transATask) choose(t *Team) (turn, skips bool) {
	if g.half != nil {
		return false, false
	}
	if g.add { // an older estimate, which keeps the bits
		turn, _ = g.compare(t, avx.RowsOfBits-1)
		_, skips = g.compare(t, avx.RowsOfBits)
		return turn, skips
	}
	return g.compare(t, avx.RowsOfBits)
}

// compare is choose by an estimate for a number of reused rows.
func (g *transATask) compare(t *Team, again int) (turn, skips bool) {
	pairs := t.pairs() && !g.add
	ofA, ofB := t.gain(g.a, g.k, g.m, g.n, again, pairs)*float64(g.m), t.gain(g.b, g.k, g.n, g.m, again, pairs)*float64(g.n)
	turned := g.narrow() + max(ofB, 0)
	g.skips = ofA > 0 && ofA >= turned
	return turned > 0 && !g.skips, ofB > 0
}

// narrow returns the time that bᵀ a with all zeros saves, in the units of gain; 0 if less than
// a tenth. It saves time if b has a few columns more than a multiple of the tile width; plain Go has
// no tiles.
func (g *transATask) narrow() float64 {
	if !g.product.builtin || g.set == avx.None || g.add || g.k < minBlockRows {
		return 0
	}
	share := 1 - float64(g.set.Cost(g.n, g.m))/float64(g.set.Cost(g.m, g.n))
	if share < 0.1 {
		return 0
	}
	return share * float64(g.m) * denseCost(g.n)
}

// mulTransposed computes bᵀ a [n x m], with or without the zeros of b, and transposes it.
func mulTransposed(t *Team, g transATask, skips bool) {
	size := g.m * g.n
	dst, add := g.dst, g.add
	g.a, g.b, g.m, g.n, g.add, g.skips = g.b, g.a, g.n, g.m, false, skips
	g.inPieces = g.m == 1 // which is not transposed for package avx: its blocks of k would be longer
	g.dst = scratch(&t.turned, size)
	sumBlocks(t, g)
	do(t, transposeTask{dst, t.turned, g.m, g.n, add}, g.n, floatsOfLine)
}

// sumBlocks computes the products of blocks, and sums them.
func sumBlocks(t *Team, g transATask) {
	size := g.m * g.n
	if g.rounding = t.rounding(g.skips); g.pairs {
		g.tall = pairsTall
	}
	g.blocks, g.tiles = blocksOf(g.k, size), (g.m+g.tall-1)/g.tall
	dst, add := g.dst, g.add
	if g.blocks > 1 {
		g.dst, g.add = scratch(&t.floats, g.blocks*size), false
	}
	do(t, g, g.blocks*g.tiles, 1)
	if g.blocks > 1 {
		sumParts(t, dst[:size], g.blocks, add)
	}
}

type transATask struct {
	product
	rounding
	dst, a                 []float32
	half                   []uint16 // in the place of a
	b                      []float32
	m, n, k, blocks, tiles int
	add, skips             bool // the zeros of a
	inPieces               bool // of halfRows
	set                    avx.Set
}

// chunk computes tiles [lo, hi), numbered by block.
func (g *transATask) chunk(lo, hi int) {
	for c := lo; c < hi; c++ {
		block, i := c/g.tiles, c%g.tiles*g.tall
		from, to := block*g.k/g.blocks, (block+1)*g.k/g.blocks
		rows := min(g.tall, g.m-i)
		dst := g.dst[(block*g.m+i)*g.n:]
		if g.half != nil || g.rounds || g.inPieces {
			g.sumPieces(dst, i, rows, from, to)
		} else {
			g.sum(dst, g.a[from*g.m+i:], nil, g.m, g.b[from*g.n:], rows, to-from, g.add, nil, nil)
		}
	}
}

// sum adds the products of k rows of a, or for pairs of half, and b.
func (g *transATask) sum(dst, a []float32, half []uint16, stride int, b []float32, rows, k int, add bool, pack, next []float32) {
	if g.skips || g.pairs {
		multiply(g.set, avx.Product{C: dst, LDC: g.n, A: a, Half: half, RowStride: 1, ColStride: stride, B: b, LDB: g.n,
			M: rows, N: g.n, K: k, Add: add, Pairs: g.pairs, Next: next, Pack: pack})
		return
	}
	g.Sgemm(blas.Trans, blas.NoTrans, rows, g.n, k, 1, a, stride, b, g.n, beta(add), dst, g.n)
}

// halfRows is the number of rows of a piece, equal to package avx's packing, so that sums have the same order.
const halfRows = 256

// sumPieces is sum by pieces, whose operands may have to be converted.
func (g *transATask) sumPieces(dst []float32, i, rows, from, to int) {
	x := piecesPool.Get().(*pieces)
	defer piecesPool.Put(x)
	for r := from; r < to; r += halfRows {
		k, a, half, stride := min(halfRows, to-r), []float32(nil), []uint16(nil), g.m
		switch {
		case g.half != nil && g.pairs:
			half = g.half[r*g.m+i:]
		case g.half != nil:
			a, stride = widenRows(g.set, &x.a, g.half[r*g.m:], g.m, k, i, rows), rows
		default:
			a = g.a[r*g.m+i:]
		}
		if g.copies() {
			a, stride = g.roundA(&x.a, g.set, a, stride, k, rows), rows
		}
		b, pack := g.b[r*g.n:], []float32(nil)
		if g.rounds {
			b, pack = g.roundB(&x.b, g.set, b, k, g.n), scratch(&x.pack, avx.PairsSize(rows))
		}
		g.sum(dst, a, half, stride, b, rows, k, g.add || r > from, pack, g.b[min((r+k)*g.n, len(g.b)-1):])
	}
}

// pieces is scratch memory of one worker for converted operands.
type pieces struct{ a, b, pack []float32 }

var piecesPool = sync.Pool{New: func() any { return new(pieces) }}

// sumParts adds the parts in t.floats, each of the size of dst, in order.
func sumParts(t *Team, dst []float32, parts int, add bool) {
	args := sumPartsTask{dst, t.floats, parts, add, t.set}
	do(t, args, len(dst), max(chunkElements/parts, 16))
}

type sumPartsTask struct {
	dst, parts []float32
	n          int
	add        bool
	set        avx.Set
}

func (s *sumPartsTask) chunk(lo, hi int) {
	dst := s.dst[lo:hi]
	clearUnless(s.add, dst)
	for p := range s.n {
		addRow(s.set, dst, s.parts[p*len(s.dst)+lo:][:len(dst)])
	}
}

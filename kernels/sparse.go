package kernels

import "siafu/graph"

// Products with a sparse feature matrix X [rows x m], for the first layer of
// bag-of-words data.
//
//	SparseMatMul        dst[rows x n]  =  D(X) W[m x n]
//	SparseMatMulTransA  dst[m x n]     =  D(X)ᵀ G[rows x n]
//	SparseToDense       dst[rows x m]  =  D(X)
//
// D is dropout of the non-zeros (a dropped zero is a zero). Variant: pull, row
// by row of dst, in the order of the non-zeros, four at a time. TransA pulls through a transpose built once, because pushing would need atomics or
// a copy of dst for each worker, and would not fix the order of the sums.

func sparseRows(xs graph.SparseRows) int { return max(len(xs.Offsets)-1, 0) }

// SparseMatMul computes dst [rows x n] = X w, w [m x n]. A range of rows of X
// is xs with Offsets cut (and drop with IDs cut alike).
func SparseMatMul(t *Team, dst []float32, n int, xs graph.SparseRows, w []float32, drop *Dropout) {
	rows := sparseRows(xs)
	checkMatrix(dst, rows, n, shortDst)
	args := sparseTask{dst: dst, x: w, width: n, offsets: xs.Offsets, index: xs.Cols, vals: xs.Vals}
	runSparse(t, args, rows, rows, drop)
}

// SparseMatMulTransA computes dst [m x n] = Xᵀ g, m being the columns of X; g
// is [rows x n] and xt the transpose of X. drop must be that of SparseMatMul.
func SparseMatMulTransA(t *Team, dst []float32, n int, xt *SparseTransposed, g []float32, drop *Dropout) {
	m := len(xt.Offsets) - 1
	checkMatrix(dst, m, n, shortDst)
	checkMatrix(g, xt.count, n, shortInput)
	args := sparseTask{dst: dst, x: g, width: n, offsets: xt.Offsets, index: xt.Rows, vals: xt.Vals,
		transposed: true}
	runSparse(t, args, m, xt.count, drop)
}

// SparseToDense writes X [rows x cols] with its zeros to dst, dropout applied.
func SparseToDense(t *Team, dst []float32, cols int, xs graph.SparseRows, drop *Dropout) {
	rows := sparseRows(xs)
	checkMatrix(dst, rows, cols, shortDst)
	args := sparseTask{dst: dst, width: cols, offsets: xs.Offsets, index: xs.Cols, vals: xs.Vals, scatter: true}
	runSparse(t, args, rows, rows, drop)
}

func runSparse(t *Team, args sparseTask, rows, vertices int, drop *Dropout) {
	if rows == 0 || args.width == 0 {
		return
	}
	if args.drop = drop.active(); args.drop {
		args.mask = drop.prepare(vertices)
	}
	doWeighted(t, &t.slots.sparse, args, args.offsets[:rows], args.offsets[rows])
}

// sparseTask is dst[r] = Σ_e vals[e]·x[index[e]] over the non-zeros of row r.
// transposed says that r is a column of X and index a vertex, for the mask;
// scatter that dst[r][index[e]] = vals[e] is wanted instead.
type sparseTask struct {
	dst, x                    []float32
	width                     int
	offsets                   []int64
	index                     []uint32
	vals                      []float32
	transposed, scatter, drop bool
	mask                      mask
}

func (k *sparseTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst := rowOf(k.dst, r, k.width)
		clear(dst)
		if k.scatter {
			k.spread(dst, r, k.offsets[r], k.offsets[r+1])
		} else {
			k.gather(dst, r, k.offsets[r], k.offsets[r+1])
		}
	}
}

// gather adds the kept non-zeros [from, to) of row r, four at a time.
func (k *sparseTask) gather(dst []float32, r int, from, to int64) {
	var x [4][]float32
	var s [4]float32
	n := 0
	for e := from; e < to; e++ {
		v, kept := k.value(e, r)
		if !kept {
			continue
		}
		x[n], s[n] = rowOf(k.x, int(k.index[e]), k.width), v
		if n++; n == 4 {
			axpy4(dst, x[0], x[1], x[2], x[3], s[0], s[1], s[2], s[3])
			n = 0
		}
	}
	for i := range n {
		axpy1(dst, x[i], s[i])
	}
}

func (k *sparseTask) spread(dst []float32, r int, from, to int64) {
	for e := from; e < to; e++ {
		if v, kept := k.value(e, r); kept {
			dst[k.index[e]] = v
		}
	}
}

// value is non-zero e, of row r, after dropout; false where it was dropped.
func (k *sparseTask) value(e int64, r int) (float32, bool) {
	if !k.drop {
		return k.vals[e], true
	}
	vertex, col := r, k.index[e]
	if k.transposed {
		vertex, col = int(col), uint32(r)
	}
	if !k.mask.keep(k.mask.id(vertex), col) {
		return 0, false
	}
	return k.vals[e] * k.mask.scale, true
}

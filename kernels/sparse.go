package kernels

import (
	"slices"

	"siafu/graph"
	"siafu/kernels/internal/avx"
)

// Products with a sparse feature matrix X [rows x m], for the first layer of
// bag-of-words data.
//
//	SparseMatMul        dst[rows x n]  =  D(X) W[m x n]
//	SparseMatMulTransA  dst[m x n]     =  D(X)ᵀ G[rows x n]
//	SparseToDense       dst[rows x m]  =  D(X)
//	List                the same, as lists (lists.go)
//
// D is dropout of the non-zeros (a dropped zero is a zero). Variant: pull, row by row of dst,
// in the order of the non-zeros, in registers if package avx has a routine for this machine. TransA pulls
// through a transpose built once, because pushing would need
// atomics or a copy of dst per worker, and would not fix the order of sums. A long row (a
// frequent word in TransA) is cut into pieces like a hub in SpMM.

func sparseRows(xs graph.SparseRows) int { return max(len(xs.Offsets)-1, 0) }

// SparseMatMul implements Ops.
func (t *Team) SparseMatMul(dst Mat, xs Sparse, w Mat, drop *Dropout) {
	rows, x := xs.Rows(), xs.rows()
	mustFit(dst.Rows == rows && dst.Cols == w.Cols)
	args := sparseTask{dst: dst.Host(), x: w.Host(), width: dst.Cols, offsets: x.Offsets, index: x.Cols, vals: x.Vals}
	runSparse(t, args, rows, rows, drop)
}

// SparseMatMulTransA implements Ops. drop must come from SparseMatMul.
func (t *Team) SparseMatMulTransA(dst Mat, xt *Transposed, g Mat, drop *Dropout) {
	mustFit(dst.Rows == xt.Offsets.Len()-1 && g.Rows == xt.Count && dst.Cols == g.Cols)
	args := sparseTask{dst: dst.Host(), x: g.Host(), width: dst.Cols,
		offsets: xt.Offsets.Host(), index: xt.Rows.Host(), vals: xt.Vals.Host(), transposed: true}
	runSparse(t, args, dst.Rows, xt.Count, drop)
}

// SparseToDense implements Ops.
func (t *Team) SparseToDense(dst Mat, xs Sparse, drop *Dropout) {
	rows, x := xs.Rows(), xs.rows()
	mustFit(dst.Rows == rows)
	args := sparseTask{dst: dst.Host(), width: dst.Cols, offsets: x.Offsets, index: x.Cols, vals: x.Vals, scatter: true}
	runSparse(t, args, rows, rows, drop)
}

func runSparse(t *Team, args sparseTask, rows, vertices int, drop *Dropout) {
	if rows == 0 || args.width == 0 {
		return
	}
	if args.drop = drop.active(); args.drop {
		args.mask = drop.prepare(vertices).on(t.set)
	}
	t.hubs.rows = t.hubs.rows[:0]
	args.set, args.hubs, args.hub = t.set, &t.hubs, -1
	doWeighted(t, args, args.offsets[:rows], args.offsets[rows])
	slices.Sort(t.hubs.rows)
	for _, r := range t.hubs.rows {
		sparseHub(t, args, r)
	}
}

// sparseHub computes row r in pieces of a fixed number of non-zeros, whose sums
// are added in order.
func sparseHub(t *Team, args sparseTask, r int) {
	pieces := int((args.offsets[r+1] - args.offsets[r] + pieceEdges - 1) / pieceEdges)
	dst := rowOf(args.dst, r, args.width)
	args.dst, args.hub = scratch(&t.floats, pieces*args.width), r
	do(t, args, pieces, 1)
	sumParts(t, dst, pieces, false)
}

// sparseTask is dst[r] = Σ_e vals[e]·x[index[e]] over the non-zeros of row r. transposed: r is
// a column of X and index a vertex, for the mask. scatter: compute dst[r][index[e]] = vals[e]
// instead. hub >= 0: the rows of dst are the pieces of that row.
type sparseTask struct {
	dst, x                    []float32
	width                     int
	offsets                   []int64
	index                     []uint32
	vals                      []float32
	transposed, scatter, drop bool
	lists                     Lists // destination instead of dst, from row first on
	first                     int
	mask                      mask
	set                       avx.Set
	hubs                      *hubs
	hub                       int
}

func (k *sparseTask) chunk(lo, hi int) {
	var s keptNonZeros
	if k.hub >= 0 {
		k.pieces(&s, lo, hi)
		return
	}
	for r := lo; r < hi; r++ {
		from, to := k.offsets[r], k.offsets[r+1]
		if to-from > hubEdges && !k.scatter && k.lists.IsNil() {
			k.hubs.leave(r)
			continue
		}
		if !k.lists.IsNil() {
			s.list.begin(k.lists, k.first+r, from)
			k.values(&s, nil, r, from, to, k.offsets[hi])
			continue
		}
		k.row(&s, rowOf(k.dst, r, k.width), r, from, to, k.offsets[hi])
	}
}

func (k *sparseTask) pieces(s *keptNonZeros, lo, hi int) {
	end := k.offsets[k.hub+1]
	for p := lo; p < hi; p++ {
		from := k.offsets[k.hub] + int64(p)*pieceEdges
		to := min(from+pieceEdges, end)
		k.row(s, rowOf(k.dst, p, k.width), k.hub, from, to, to)
	}
}

// row sets dst to the sum over non-zeros [from, to) of row r. The chunk's non-zeros end at
// last.
func (k *sparseTask) row(s *keptNonZeros, dst []float32, r int, from, to, last int64) {
	clear(dst)
	k.values(s, dst, r, from, to, last)
}

// values adds the kept non-zeros.
func (k *sparseTask) values(s *keptNonZeros, dst []float32, r int, from, to, last int64) {
	if !k.drop {
		k.put(s, dst, k.index[from:], k.vals[from:to])
		return
	}
	for from < to {
		if from >= s.end {
			s.draw(k, r, from, last)
		}
		stop := min(to, s.end)
		cols, vals := s.kept(from, stop)
		k.put(s, dst, cols, vals)
		from = stop
	}
}

// put adds the rows cols of x times vals to dst; cols may be longer than vals. The sum does
// not depend on how non-zeros are divided among calls.
func (k *sparseTask) put(s *keptNonZeros, dst []float32, cols []uint32, vals []float32) {
	switch {
	case !k.lists.IsNil():
		s.list.put(cols, vals)
	case k.scatter:
		for i, v := range vals {
			dst[cols[i]] = v
		}
	case k.set != avx.None:
		k.set.GatherValues(dst, k.x, cols, vals)
	default:
		k.gather(dst, cols, vals)
	}
}

func (k *sparseTask) gather(dst []float32, cols []uint32, vals []float32) {
	for i, v := range vals {
		avx.AddScaled(dst, rowOf(k.x, int(cols[i]), k.width), v)
	}
}

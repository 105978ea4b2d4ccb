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
	s := keptNonZerosPool.Get().(*keptNonZeros)
	defer keptNonZerosPool.Put(s)
	if k.hub >= 0 {
		k.pieces(s, lo, hi)
		return
	}
	for r := lo; r < hi; {
		if k.isHub(r) {
			k.hubs.leave(r)
			r++
			continue
		}
		end := k.together(r, hi)
		if k.drop {
			s.draw(k, r, end, k.offsets[r], k.offsets[end])
			k.put(s, r, s.ends, s.index, s.vals)
		} else {
			k.put(s, r, k.offsets[r:end+1], k.index, k.vals)
		}
		r = end
	}
}

func (k *sparseTask) isHub(r int) bool {
	return k.offsets[r+1]-k.offsets[r] > hubEdges && !k.scatter && k.lists.IsNil()
}

// together returns the end of the rows from r on that are computed at once: those before the next
// hub and, with dropout, whose non-zeros are at most filterBlock.
func (k *sparseTask) together(r, hi int) int {
	end := r + 1
	for end < hi && !k.isHub(end) && (!k.drop || k.offsets[end+1]-k.offsets[r] <= filterBlock) {
		end++
	}
	return end
}

func (k *sparseTask) pieces(s *keptNonZeros, lo, hi int) {
	for p := lo; p < hi; p++ {
		from := k.offsets[k.hub] + int64(p)*pieceEdges
		to := min(from+pieceEdges, k.offsets[k.hub+1])
		if k.drop {
			s.draw(k, k.hub, k.hub+1, from, to)
			k.put(s, p, s.ends, s.index, s.vals)
		} else {
			s.ends = append(s.ends[:0], from, to)
			k.put(s, p, s.ends, k.index, k.vals)
		}
	}
}

// put sets the rows of dst from r on. Row r+i has the non-zeros [ends[i], ends[i+1]) of cols and vals.
func (k *sparseTask) put(s *keptNonZeros, r int, ends []int64, cols []uint32, vals []float32) {
	rows := len(ends) - 1
	if k.lists.IsNil() && !k.scatter && k.set != avx.None {
		k.set.Gather(k.dst[r*k.width:], &avx.Rows[float32]{Begin: ends[:rows], End: ends[1:], Cols: cols, Weights: vals,
			X: k.x, Stride: k.width}, 0, rows, false)
		return
	}
	for i := range rows {
		cols, vals := cols[ends[i]:ends[i+1]], vals[ends[i]:ends[i+1]]
		if !k.lists.IsNil() {
			s.list.begin(k.lists, k.first+r+i, k.offsets[r+i])
			s.list.put(cols, vals)
			continue
		}
		dst := rowOf(k.dst, r+i, k.width)
		clear(dst)
		for at, v := range vals {
			if k.scatter {
				dst[cols[at]] = v
			} else {
				avx.AddScaled(dst, rowOf(k.x, int(cols[at]), k.width), v)
			}
		}
	}
}

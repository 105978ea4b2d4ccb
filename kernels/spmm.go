package kernels

import (
	"slices"
	"sync"

	"siafu/kernels/internal/avx"
)

// Sparse times dense, the gather of a graph layer (GA and ∇GA).
//
//	dst[r] (+)= Σ_{e in [Begin[r],End[r])} RowScale[r]·ColScale[c]·x[c-Base],  c = Cols[e]
//
// and with SelfLoops also RowScale[r]·ColScale[r]·x[r-Base].
//
// Variant: pull, row by row; the edges of a row are added in their order, in
// registers where package avx has a routine for this machine, else four at a
// time into the row of dst itself. Rows are shared out by numbers of edges; the
// row of a hub is cut into pieces of a fixed size, whose sums are added in
// order. Pull needs no atomics and fixes every sum's order; push would save
// nothing, because all rows are computed.

// Gather is the sparse operand of SpMM: rows of column ids, without values
// but with a scale for each row and column. It may be a part of a larger
// matrix: the own columns of a shard (Base 0, End = InOwnEnd) and its ghost
// columns (Begin = InOwnEnd, Base = n_own) are two Gathers over the same Cols.
type Gather struct {
	Begin, End []int64   // row r is Cols[Begin[r]:End[r]]; both ascending
	Cols       []uint32  // local ids
	Base       uint32    // the local id of row 0 of x
	RowScale   []float32 // of row r; nil: 1
	ColScale   []float32 // of a local id, whatever Base is; nil: 1
	SelfLoops  bool      // row r has the column r too, before all others
}

// Rows is the number of rows.
func (g *Gather) Rows() int { return len(g.Begin) }

// SpMM gathers: dst [g.Rows() x width], x [local ids from g.Base on x width].
// With add it adds to dst, otherwise it overwrites dst. dst must not overlap x.
func SpMM(t *Team, dst []float32, width int, g Gather, x []float32, add bool) {
	runSpMM(t, spmmTask{dst: dst, x: x, g: g, width: width, add: add,
		rows: avx.Rows[float32]{Cols: g.Cols, Base: g.Base, ColScale: g.ColScale, X: x, Stride: width}})
}

// SpMMHalf is SpMM of bfloat16 rows, summed in float32. x has HalfSlack
// elements behind its rows, of any value.
func SpMMHalf(t *Team, dst []float32, width int, g Gather, x []BF16, add bool) {
	bits := bitsOf(x)
	runSpMM(t, spmmTask{dst: dst, half: bits, g: g, width: width, add: add,
		halfRows: avx.Rows[uint16]{Cols: g.Cols, Base: g.Base, ColScale: g.ColScale, X: bits, Stride: width}})
}

func runSpMM(t *Team, args spmmTask) {
	g, rows := &args.g, args.g.Rows()
	checkMatrix(args.dst, rows, args.width, shortDst)
	if len(g.End) < rows || (g.RowScale != nil && len(g.RowScale) < rows) {
		panic(shortVector)
	}
	if rows == 0 || args.width == 0 {
		return
	}
	t.hubs.rows = t.hubs.rows[:0]
	args.set, args.hubs = t.set, &t.hubs
	doWeighted(t, &t.slots.spmm, args, g.Begin, g.End[rows-1])
	slices.Sort(t.hubs.rows)
	for _, r := range t.hubs.rows {
		gatherHub(t, args, r)
	}
}

// A row with more edges than hubEdges is a hub. Its pieces are as much work as
// the chunks that other rows come in.
const (
	hubEdges   = 4 * pieceEdges
	pieceEdges = chunkWeight
)

// hubs are rows that were left for later.
type hubs struct {
	mu   sync.Mutex
	rows []int
}

func (h *hubs) leave(r int) {
	h.mu.Lock()
	h.rows = append(h.rows, r)
	h.mu.Unlock()
}

// spmmTask gathers rows of x or, where that is nil, of half.
type spmmTask struct {
	dst, x   []float32
	half     []uint16
	g        Gather
	width    int
	add      bool
	set      avx.Set
	rows     avx.Rows[float32] // the same operands, for package avx
	halfRows avx.Rows[uint16]
	hubs     *hubs
}

func (k *spmmTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		from, to := k.g.Begin[r], k.g.End[r]
		if to-from > hubEdges {
			k.hubs.leave(r)
			continue
		}
		k.sum(rowOf(k.dst, r, k.width), r, k.self(r), from, to, k.add)
	}
}

// self is the column of row r's self loop, -1 for none.
func (k *spmmTask) self(r int) int {
	if k.g.SelfLoops {
		return r
	}
	return -1
}

// sum sets dst to, or adds to it, what column self and the edges [from, to) of
// row r make.
func (k *spmmTask) sum(dst []float32, r, self int, from, to int64, add bool) {
	scale := float32(1)
	if k.g.RowScale != nil {
		scale = k.g.RowScale[r]
	}
	// Package avx multiplies by the row's scale after the sum, plain Go does it
	// for each edge; the difference is a rounding.
	switch {
	case k.set != avx.None && k.x == nil:
		k.set.GatherHalf(dst, &k.halfRows, self, int(from), int(to), scale, add)
	case k.set != avx.None:
		k.set.Gather(dst, &k.rows, self, int(from), int(to), scale, add)
	default:
		clearUnless(add, dst)
		if self >= 0 {
			k.addEdge(dst, uint32(self), scale)
		}
		k.gather(dst, k.g.Cols[from:to], scale)
	}
}

// gatherHub computes row r.
func gatherHub(t *Team, args spmmTask, r int) {
	pieces := int((args.g.End[r] - args.g.Begin[r] + pieceEdges - 1) / pieceEdges)
	parts := scratch(&t.floats, pieces*args.width)
	do(t, &t.slots.hub, hubTask{args, parts, r}, pieces, 1)
	sumParts(t, rowOf(args.dst, r, args.width), pieces, args.add)
}

type hubTask struct {
	spmmTask
	parts []float32
	hub   int
}

func (k *hubTask) chunk(lo, hi int) {
	end := k.g.End[k.hub]
	for p := lo; p < hi; p++ {
		from := k.g.Begin[k.hub] + int64(p)*pieceEdges
		self := -1
		if p == 0 {
			self = k.self(k.hub)
		}
		k.sum(rowOf(k.parts, p, k.width), k.hub, self, from, min(from+pieceEdges, end), false)
	}
}

func (k *spmmTask) gather(dst []float32, cols []uint32, scale float32) {
	for k.x != nil && len(cols) >= 4 {
		a, b, c, d := cols[0], cols[1], cols[2], cols[3]
		axpy4(dst, k.row(a), k.row(b), k.row(c), k.row(d),
			k.edge(a, scale), k.edge(b, scale), k.edge(c, scale), k.edge(d, scale))
		cols = cols[4:]
	}
	for _, c := range cols {
		k.addEdge(dst, c, scale)
	}
}

func (k *spmmTask) addEdge(dst []float32, c uint32, scale float32) {
	if k.x != nil {
		axpy1(dst, k.row(c), k.edge(c, scale))
		return
	}
	s := k.edge(c, scale)
	for j, h := range k.half[int(c-k.g.Base)*k.width:][:k.width] {
		dst[j] += s * BF16(h).Float32()
	}
}

func (k *spmmTask) row(c uint32) []float32 { return rowOf(k.x, int(c-k.g.Base), k.width) }

func (k *spmmTask) edge(c uint32, scale float32) float32 {
	if k.g.ColScale == nil {
		return scale
	}
	return scale * k.g.ColScale[c]
}

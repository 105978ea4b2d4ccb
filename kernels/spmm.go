package kernels

import (
	"slices"
	"sync"

	"siafu/kernels/internal/avx"
)

// Sparse times dense, the gather of a graph layer (GA and ∇GA).
//
//	dst[r] (+)= Σ_{e in [Begin[r],End[r])} RowScale[r]·Weights[e]·ColScale[c]·x[c-Base],  c = Cols[e]
//
// and with SelfLoops the same for c = First+r, with weight 1.
//
// Variant: pull, row by row; the edges of a row are added in their order, and the sum is multiplied
// by the row's scale. Rows are divided by
// numbers of edges; a hub's row is cut into pieces of a fixed size, whose sums are added in
// order. Pull needs no atomics and fixes every sum's order; push would save nothing, because
// all rows are computed. If x is larger than caches and its rows are read often, sources are
// divided into blocks (blocks.go).

// Gather is the sparse operand of SpMM: rows of column ids, with optional scales of rows and
// columns and optional weights. It may be a part of a larger matrix: the own columns of a
// shard (Base 0, End = InOwnEnd) and its ghost columns (Begin = InOwnEnd, Base = n_own) are
// two Gathers over the same Cols.
type Gather struct {
	Begin, End []int64   // row r is Cols[Begin[r]:End[r]]; both ascending
	Cols       []uint32  // local ids; empty with Coded
	Weights    []float32 // of Cols; nil: 1
	Base       uint32    // the local id of row 0 of x
	RowScale   []float32 // of row r; nil: 1
	ColScale   []float32 // of a local id, whatever Base is; nil: 1
	SelfLoops  bool      // row r has the column First+r too, before all others
	First      uint32    // the local id of row 0
	// Edge features, only for attention, with as many columns as its Edge has rows. Cols[i]
	// has the row At[i], or row i without At; Self has the features of self loops, by row.
	Features, Self []float32
	At             []int64
	// Coded has Cols in coded form, only for SpMM; nil: Cols is used. Row r is its row CodedFirst+r.
	Coded      *CodedColumns
	CodedFirst int
}

// Rows returns the number of rows.
func (g *Gather) Rows() int { return len(g.Begin) }

// Edges returns g as Edges in this process's memory.
func (g *Gather) Edges() Edges {
	return Edges{
		Begin: HostVector(g.Begin), End: HostVector(g.End), Cols: HostVector(g.Cols), Weights: HostVector(g.Weights), Base: g.Base,
		RowScale: HostVector(g.RowScale), ColScale: HostVector(g.ColScale), SelfLoops: g.SelfLoops, First: g.First,
		Features: HostVector(g.Features), Self: HostVector(g.Self), At: HostVector(g.At),
		Coded: g.Coded, CodedFirst: g.CodedFirst,
	}
}

// SpMM implements Ops. dst must not overlap x.
func (t *Team) SpMM(dst Mat, e Edges, x Mat, add bool) { t.gather(t.newSpMM(dst, e, x, add)) }

func (t *Team) newSpMM(dst Mat, e Edges, x Mat, add bool) spmmTask {
	mustFit(dst.Rows == e.Rows() && dst.Cols == x.Cols)
	k := spmmTask{dst: dst.Host(), Gather: t.edgesOf(e), width: dst.Cols, add: add, sources: x.Rows, whole: e.Whole}
	if e.Weights.Len() == 0 { // they are indexed by column
		k.columnMask, k.edgeMask = e.ColumnMask, e.EdgeMask
	}
	if x.half {
		k.half = bitsOf(x.HostHalf(HalfSlack))
	} else {
		k.x = x.Host()
	}
	return k
}

func (t *Team) gather(k spmmTask) {
	rows := k.Rows()
	mustFit(len(k.End) >= rows && (k.RowScale == nil || len(k.RowScale) >= rows))
	if rows == 0 || k.width == 0 {
		return
	}
	k.set, k.hubs = t.set, &t.hubs
	if step := k.block(&t.blocks); step > 0 {
		t.gatherBlocks(k, step)
		return
	}
	t.hubs.rows = t.hubs.rows[:0]
	doWeighted(t, k, k.Begin, k.End[rows-1])
	t.gatherHubs(k)
}

// gatherHubs computes the deferred rows.
func (t *Team) gatherHubs(k spmmTask) {
	slices.Sort(t.hubs.rows)
	for _, r := range t.hubs.rows {
		gatherHub(t, k, r)
	}
}

// A row with more than hubEdges edges, a chunk's weight, is a hub. It is cut into pieces.
const (
	hubEdges   = 4 * pieceEdges
	pieceEdges = 1 << 13
)

// hubs has the deferred rows, and the pieces of the current one.
type hubs struct {
	mu         sync.Mutex
	rows       []int
	begin, end []int64
	scale      []float32
	cols       []uint32 // of coded columns
}

func (h *hubs) leave(r int) {
	h.mu.Lock()
	h.rows = append(h.rows, r)
	h.mu.Unlock()
}

// spmmTask gathers rows of x or, if that is nil, of lists or of half. With bits, rows of x are
// packed, and lines lines of each are prefetched.
type spmmTask struct {
	Gather
	dst, x []float32
	half   []uint16
	lists  []uint64
	bits   []uint64
	lines  int
	width  int
	add    bool
	set    avx.Set
	hubs   *hubs

	sources    int        // rows of x
	whole      int        // columns of the rows of which x is a slice, or 0
	columnMask VertexMask // of the columns; nil: all
	edgeMask   EdgeMask   // bits of columnMask; nil: they are looked up
	last       []int64    // of a block of sources: the ends of rows, once found
	bound      uint32     // the first column that is not of the block
	coded      codedBlocks
}

// chunk computes rows [lo, hi) except hubs.
func (k *spmmTask) chunk(lo, hi int) {
	if k.Coded != nil {
		k.codedChunk(lo, hi)
		return
	}
	var kept *keptEdges // nil: along all edges
	if k.columnMask != nil || k.last != nil {
		kept = keptPool.Get().(*keptEdges)
		defer keptPool.Put(kept)
	}
	for from := lo; from < hi; from++ {
		to := from
		for to < hi && !k.isHub(to) {
			to++
		}
		if kept == nil {
			k.rows(from, to)
		} else if from < to {
			k.maskEdges(kept, from, to)
		}
		if to < hi {
			k.hubs.leave(to)
		}
		from = to
	}
}

// rows computes rows [lo, hi).
func (k *spmmTask) rows(lo, hi int) {
	switch {
	case k.lists != nil:
		k.gatherLists(lo, hi)
	case k.set != avx.None && k.x == nil:
		rows := rowsFor(k, k.half)
		k.set.GatherHalf(k.dst, &rows, lo, hi, k.add)
	case k.bits != nil:
		rows := rowsFor(k, k.x)
		k.set.GatherPacked(k.dst, &rows, k.bits, k.lines, lo, hi, k.add)
	case k.set != avx.None:
		rows := rowsFor(k, k.x)
		k.set.Gather(k.dst, &rows, lo, hi, k.add)
	default:
		k.plainRows(lo, hi)
	}
}

// rowsFor returns the operands for package avx.
func rowsFor[E float32 | uint16 | uint64](k *spmmTask, x []E) avx.Rows[E] {
	return avx.Rows[E]{
		Begin: k.Begin, End: k.End, Cols: k.Cols, Weights: k.Weights, Base: k.Base,
		RowScale: k.RowScale, ColScale: k.ColScale, SelfLoops: k.SelfLoops, First: k.First, X: x, Stride: k.width,
	}
}

// gatherHub computes row r from its pieces, which are rows of another matrix.
// The self loop is added last.
func gatherHub(t *Team, k spmmTask, r int) {
	h := k.hubs
	h.begin, h.end, h.scale = h.begin[:0], h.end[:0], h.scale[:0]
	from, end := k.Begin[r], k.End[r]
	if k.Coded != nil {
		from, end = k.decodeHub(t, r)
	}
	for ; from < end; from += pieceEdges {
		h.begin, h.end = append(h.begin, from), append(h.end, min(from+pieceEdges, end))
		h.scale = append(h.scale, k.rowScale(r))
	}
	pieces := k
	pieces.dst = scratch(&t.floats, len(h.begin)*k.width)
	pieces.Begin, pieces.End, pieces.RowScale = h.begin, h.end, h.scale
	pieces.SelfLoops, pieces.add, pieces.last, pieces.columnMask = false, false, nil, nil
	do(t, pieces, len(h.begin), 1)
	dst := rowOf(k.dst, r, k.width)
	sumParts(t, dst, len(h.begin), k.add)
	if k.SelfLoops {
		k.addEdge(dst, k.First+uint32(r), k.rowScale(r))
	}
}

func (k *spmmTask) rowScale(r int) float32 {
	if k.RowScale == nil {
		return 1
	}
	return k.RowScale[r]
}

// addEdge adds scale times the row of column c, with two roundings, to a row of a hub.
func (k *spmmTask) addEdge(dst []float32, c uint32, scale float32) {
	switch {
	case k.lists != nil:
		k.addListed(dst, c, scale)
		return
	case k.bits != nil:
		k.addPacked(dst, c, scale)
		return
	case k.x != nil:
		addScaled(dst, k.source(c), k.edge(c, scale))
		return
	}
	s := k.edge(c, scale)
	for j, h := range k.half[int(c-k.Base)*k.width:][:k.width] {
		dst[j] += float32(s * BF16(h).Float32())
	}
}

func (k *spmmTask) source(c uint32) []float32 { return rowOf(k.x, int(c-k.Base), k.width) }

func (k *spmmTask) edge(c uint32, scale float32) float32 {
	if k.ColScale == nil {
		return scale
	}
	return scale * k.ColScale[c]
}

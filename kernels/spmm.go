package kernels

import "siafu/kernels/internal/avx"

// Sparse times dense, the gather of a graph layer (GA and ∇GA).
//
//	dst[r] (+)= Σ_{e in [Begin[r],End[r])} RowScale[r]·ColScale[c]·x[c-Base],  c = Cols[e]
//
// Variant: pull, row by row; the edges of a row are added in their order, in
// registers where package avx has a routine for this machine, else four at a
// time into the row of dst itself. Rows are shared out by numbers of
// edges. Pull needs no atomics and fixes every sum's order; push would save
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
}

// Rows is the number of rows.
func (g *Gather) Rows() int { return len(g.Begin) }

// SpMM gathers: dst [g.Rows() x width], x [local ids from g.Base on x width].
// With add it adds to dst, otherwise it overwrites dst. dst must not overlap x.
func SpMM(t *Team, dst []float32, width int, g Gather, x []float32, add bool) {
	rows := g.Rows()
	checkMatrix(dst, rows, width, shortDst)
	if len(g.End) < rows || (g.RowScale != nil && len(g.RowScale) < rows) {
		panic(shortVector)
	}
	if rows == 0 || width == 0 {
		return
	}
	doWeighted(t, &t.slots.spmm, spmmTask{dst, x, g, width, add, t.set}, g.Begin, g.End[rows-1])
}

type spmmTask struct {
	dst, x []float32
	g      Gather
	width  int
	add    bool
	set    avx.Set
}

func (k *spmmTask) chunk(lo, hi int) {
	if k.set != avx.None {
		k.chunkAVX(lo, hi)
		return
	}
	for r := lo; r < hi; r++ {
		dst := rowOf(k.dst, r, k.width)
		if !k.add {
			clear(dst)
		}
		scale := float32(1)
		if k.g.RowScale != nil {
			scale = k.g.RowScale[r]
		}
		k.gather(dst, k.g.Cols[k.g.Begin[r]:k.g.End[r]], scale)
	}
}

// chunkAVX multiplies by the scale of a row after its sum, which plain Go does
// for each edge; the difference is a rounding.
func (k *spmmTask) chunkAVX(lo, hi int) {
	rows := avx.Rows{Cols: k.g.Cols, Base: k.g.Base, ColScale: k.g.ColScale, X: k.x, Width: k.width}
	for r := lo; r < hi; r++ {
		scale := float32(1)
		if k.g.RowScale != nil {
			scale = k.g.RowScale[r]
		}
		k.set.Gather(rowOf(k.dst, r, k.width), &rows, int(k.g.Begin[r]), int(k.g.End[r]), scale, k.add)
	}
}

func (k *spmmTask) gather(dst []float32, cols []uint32, scale float32) {
	for len(cols) >= 4 {
		a, b, c, d := cols[0], cols[1], cols[2], cols[3]
		axpy4(dst, k.row(a), k.row(b), k.row(c), k.row(d),
			k.edge(a, scale), k.edge(b, scale), k.edge(c, scale), k.edge(d, scale))
		cols = cols[4:]
	}
	for _, c := range cols {
		axpy1(dst, k.row(c), k.edge(c, scale))
	}
}

func (k *spmmTask) row(c uint32) []float32 { return rowOf(k.x, int(c-k.g.Base), k.width) }

func (k *spmmTask) edge(c uint32, scale float32) float32 {
	if k.g.ColScale == nil {
		return scale
	}
	return scale * k.g.ColScale[c]
}

package kernels

import "siafu/kernels/internal/avx"

// Sums of columns, the gradient of a bias.
//
//	dst[c] (+)= Σ_r g[r][c]
//
// Variant: rows are cut into blocks by a rule that depends only on shapes; each block is
// summed in order of rows, the blocks' sums in order of blocks.

// ColumnSums implements Ops.
func (t *Team) ColumnSums(dst, g Mat, add bool) {
	mustFit(dst.Rows == 1 && dst.Cols == g.Cols)
	if g.Cols > 0 {
		columnSums(t, dst.Host(), g, add)
	}
}

// columnSums implements ColumnSums for at least one column.
func columnSums(t *Team, dst []float32, g Mat, add bool) {
	args := newColumnSums(t, g.Rows, g.Cols, g.Host())
	do(t, args, args.blocks, 1)
	sumParts(t, dst[:g.Cols], args.blocks, add)
}

type columnSumsTask struct {
	parts, g           []float32
	rows, cols, blocks int
	set                avx.Set
}

func newColumnSums(t *Team, rows, cols int, g []float32) columnSumsTask {
	blocks := blocksOf(rows, cols)
	return columnSumsTask{scratch(&t.floats, blocks*cols), g, rows, cols, blocks, t.set}
}

// rowsOf returns the rows of block b.
func (k *columnSumsTask) rowsOf(b int) (first, last int) {
	return b * k.rows / k.blocks, (b + 1) * k.rows / k.blocks
}

func (k *columnSumsTask) chunk(lo, hi int) {
	for b := lo; b < hi; b++ {
		clear(rowOf(k.parts, b, k.cols))
		first, last := k.rowsOf(b)
		k.sum(b, first, last)
	}
}

// sum adds rows [first, last) to the sum of block b.
func (k *columnSumsTask) sum(b, first, last int) {
	part, g := rowOf(k.parts, b, k.cols), k.g[first*k.cols:last*k.cols]
	if k.set != avx.None {
		k.set.AddRows(part, g)
		return
	}
	for ; len(g) > 0; g = g[k.cols:] {
		addRow(k.set, part, g[:k.cols])
	}
}

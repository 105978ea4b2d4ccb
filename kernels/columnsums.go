package kernels

import "siafu/kernels/internal/avx"

// Sums of columns, the gradient of a bias.
//
//	dst[c] (+)= Σ_r g[r][c]
//
// Variant: rows are cut into blocks by a rule that looks at shapes alone; each
// block is summed in order of rows, the blocks' sums in order of blocks.

// ColumnSums sums the columns of g [rows x cols] into dst [cols], or adds
// them to dst.
func ColumnSums(t *Team, dst []float32, rows, cols int, g []float32, add bool) {
	checkMatrix(dst, 1, cols, shortDst)
	checkMatrix(g, rows, cols, shortInput)
	if cols == 0 {
		return
	}
	blocks := blocksOf(rows, cols)
	parts := scratch(&t.floats, blocks*cols)
	do(t, &t.slots.columns, columnSumsTask{parts, g, rows, cols, blocks, t.set}, blocks, 1)
	sumParts(t, dst[:cols], blocks, add)
}

type columnSumsTask struct {
	parts, g           []float32
	rows, cols, blocks int
	set                avx.Set
}

func (k *columnSumsTask) chunk(lo, hi int) {
	for b := lo; b < hi; b++ {
		part := rowOf(k.parts, b, k.cols)
		clear(part)
		for r := b * k.rows / k.blocks; r < (b+1)*k.rows/k.blocks; r++ {
			if row := rowOf(k.g, r, k.cols); k.set != avx.None {
				k.set.AddRow(part, row)
			} else {
				axpy1(part, row, 1)
			}
		}
	}
}

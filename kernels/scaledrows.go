package kernels

// The self loops of a graph layer.
//
//	dst[r] += rowScale[r]·x[r]
//
// Variant: one pass over both matrices, rows independent.

// AddScaledRows adds to dst [len(dst)/width x width] the rows of x (same
// shape), each times its scale; rowScale nil means 1.
func AddScaledRows(t *Team, dst []float32, width int, rowScale, x []float32) {
	if width <= 0 || len(dst) == 0 {
		return
	}
	rows := len(dst) / width
	checkMatrix(x, rows, width, shortInput)
	if rowScale != nil && len(rowScale) < rows {
		panic(shortVector)
	}
	do(t, &t.slots.scaledRows, scaledRowsTask{dst, rowScale, x, width}, rows, rowGrain(width))
}

type scaledRowsTask struct {
	dst, scale, x []float32
	width         int
}

func (k *scaledRowsTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		s := float32(1)
		if k.scale != nil {
			s = k.scale[r]
		}
		axpy1(rowOf(k.dst, r, k.width), rowOf(k.x, r, k.width), s)
	}
}

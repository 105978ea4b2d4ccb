package kerneltest

import (
	"fmt"
	"testing"

	"siafu/kernels"
)

// keeps reports whether dropout retains an element by definition: the random word of (id,
// column) is below (1-P)·2³².
func keeps(d *kernels.Dropout, row, col int) bool {
	id := uint32(row)
	if ids := d.IDs.Host(); ids != nil {
		id = ids[row]
	}
	words := kernels.Philox([4]uint32{id, uint32(col / 4), uint32(d.Epoch), uint32(d.Layer)},
		[2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)})
	return float64(words[col%4]) < (1-d.P)*(1<<32)
}

// drop returns element (row, col) with value x after dropout; a nil d has no effect. The product
// is rounded like the kernel's, so that results are equal.
func drop(d *kernels.Dropout, x float32, row, col int) float32 {
	switch {
	case d == nil || d.P == 0:
		return x
	case keeps(d, row, col):
		return x * float32(1/(1-d.P))
	}
	return 0
}

// dropouts returns the dropouts to test with a number of rows.
func dropouts(rows int) []*kernels.Dropout {
	ids := make([]uint32, rows)
	for r := range ids {
		ids[r] = uint32(r)*2654435761 + 5
	}
	return []*kernels.Dropout{
		nil,
		{Seed: 1},
		{Seed: 1<<40 + 7, Epoch: 3, Layer: 1, P: 0.5},
		{Seed: 2, Epoch: 199, P: 0.9, IDs: kernels.HostVector(ids)},
		{Seed: 2, Epoch: 199, Layer: 2, P: 0.1, IDs: kernels.HostVector(ids)},
	}
}

// eachMatrix runs f over shapes and dropouts.
func eachMatrix(t *testing.T, f func(t *testing.T, rows, cols int, d *kernels.Dropout)) {
	for _, rows := range []int{0, 1, 6, size(1031, 79)} {
		for _, cols := range []int{0, 1, 4, 7, 33} {
			for i, d := range dropouts(rows) {
				if brief && i%2 == 1 {
					continue
				}
				t.Run(fmt.Sprintf("rows=%d/cols=%d/dropout=%d", rows, cols, i), func(t *testing.T) {
					f(t, rows, cols, d)
				})
			}
		}
	}
}

// DropoutRows tests kernels.Ops.DropoutRows.
func (s Suite) DropoutRows(t *testing.T) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		x := Values(rows*cols, 1)
		insertNonFinite(x)
		want := make([]float32, rows*cols)
		for i := range want {
			want[i] = drop(d, x[i], i/cols, i%cols)
		}
		s.both(t, rows, cols, x, want, func(l *fixture, dst, x kernels.Mat) { l.DropoutRows(dst, x, l.drop(d)) })
	})
}

package kernels

import "siafu/kernels/internal/avx"

// Sums of matrices.
//
//	dst[i] += x[i]

// Add adds x to dst, both of the length of dst.
func Add(t *Team, dst, x []float32) {
	checkMatrix(x, 1, len(dst), shortInput)
	do(t, &t.slots.add, addTask{dst, x, t.set}, len(dst), chunkElements)
}

type addTask struct {
	dst, x []float32
	set    avx.Set
}

func (k *addTask) chunk(lo, hi int) {
	if k.set != avx.None {
		k.set.AddRow(k.dst[lo:hi], k.x[lo:hi])
		return
	}
	axpy1(k.dst[lo:hi], k.x[lo:hi], 1)
}

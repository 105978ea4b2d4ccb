package kernels

// axpy1 computes dst[j] += s·x[j].
func axpy1(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for j := range dst {
		dst[j] += s * x[j]
	}
}

// axpy4 runs four axpy1 in order: dst[j] = (((dst[j]+s0·x0[j])+s1·x1[j])+…). One pass reads
// and writes dst once instead of four times, with the same sums.
func axpy4(dst, x0, x1, x2, x3 []float32, s0, s1, s2, s3 float32) {
	x0, x1, x2, x3 = x0[:len(dst)], x1[:len(dst)], x2[:len(dst)], x3[:len(dst)]
	for j := range dst {
		d := dst[j] + s0*x0[j]
		d += s1 * x1[j]
		d += s2 * x2[j]
		dst[j] = d + s3*x3[j]
	}
}

// rowOf returns row r of the matrix x of the given width.
func rowOf(x []float32, r, width int) []float32 { return x[r*width : (r+1)*width] }

package kernels

// addScaled computes dst[j] += s·x[j] with two roundings.
func addScaled(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for j := range dst {
		dst[j] += float32(s * x[j])
	}
}

// rowOf returns row r of the matrix x of the given width.
func rowOf(x []float32, r, width int) []float32 { return x[r*width : (r+1)*width] }

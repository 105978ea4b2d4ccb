package avx

import "math"

// split returns the number of full vectors before the last one of a row of n elements, and the lanes
// of the last one.
func (s Set) split(n int) (full, lanes int) {
	full = (n - 1) / s.lanes()
	return full, n - full*s.lanes()
}

// Activate sets dst to z + bias, with ReLU to max(z + bias, 0). NaNs remain. All slices have the same
// length.
func (s Set) Activate(dst, z, bias []float32, relu bool) {
	if len(dst) == 0 {
		return
	}
	floor := float32(math.Inf(-1))
	if relu {
		floor = 0
	}
	full, lanes := s.split(len(dst))
	if s == AVX512 {
		activate512(&dst[0], &z[0], &bias[0], floor, full, lanes)
		return
	}
	activate256(&dst[0], &z[0], &bias[0], floor, full, lanes)
}

// Gradient sets dst to scale·g if h is positive, else to 0.
func (s Set) Gradient(dst, g, h []float32, scale float32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	if s == AVX512 {
		gradient512(&dst[0], &g[0], &h[0], scale, full, lanes)
		return
	}
	gradient256(&dst[0], &g[0], &h[0], scale, full, lanes)
}

// AddRow adds x to dst.
func (s Set) AddRow(dst, x []float32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	if s == AVX512 {
		addRow512(&dst[0], &x[0], full, lanes)
		return
	}
	addRow256(&dst[0], &x[0], full, lanes)
}

// AddRows adds the rows of x, which are as long as dst, to dst in order.
func (s Set) AddRows(dst, x []float32) {
	const most = 8 // vectors of a call
	for j := 0; j < len(dst) && len(x) > 0; j += most * s.lanes() {
		full, lanes := s.split(min(len(dst)-j, most*s.lanes()))
		if s == AVX512 {
			addRows512(&dst[j], &x[j], 4*len(dst), len(x)/len(dst), full+1, lanes)
		} else {
			addRows256(&dst[j], &x[j], 4*len(dst), len(x)/len(dst), full+1, lanes)
		}
	}
}

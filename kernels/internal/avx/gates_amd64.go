package avx

// Tanh sets dst to outer·tanh(inner·x) + add, with an absolute error of tanh of at most 2e-7. Both
// slices have the same length.
func (s Set) Tanh(dst, x []float32, inner, outer, add float32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	if s == AVX512 {
		tanh512(&dst[0], &x[0], inner, outer, add, full, lanes)
		return
	}
	tanh256(&dst[0], &x[0], inner, outer, add, full, lanes)
}

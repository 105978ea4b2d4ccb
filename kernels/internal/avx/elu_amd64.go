package avx

// ELU sets dst to x if x = z + bias is positive, else to e^x - 1 with a relative error of at most
// 1e-7. Zeros become -0. All slices have the same length.
func (s Set) ELU(dst, z, bias []float32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	if s == AVX512 {
		elu512(&dst[0], &z[0], &bias[0], full, lanes)
		return
	}
	elu256(&dst[0], &z[0], &bias[0], full, lanes)
}

// ELUGradient sets dst to scale·g, times kept·h + 1 if h is negative, or to 0 if h is +0. The bits
// are those of plain Go.
func (s Set) ELUGradient(dst, g, h []float32, scale, kept float32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	if s == AVX512 {
		eluGradient512(&dst[0], &g[0], &h[0], scale, kept, full, lanes)
		return
	}
	eluGradient256(&dst[0], &g[0], &h[0], scale, kept, full, lanes)
}

// MeanOf sets dst to bias plus scale times the sum of the heads of x, each as wide as dst.
func (s Set) MeanOf(dst, x, bias []float32, heads int, scale float32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	if s == AVX512 {
		meanOf512(&dst[0], &x[0], &bias[0], 4*len(dst), heads, scale, full, lanes)
		return
	}
	meanOf256(&dst[0], &x[0], &bias[0], 4*len(dst), heads, scale, full, lanes)
}

// Spread sets each head of dst to scale·g. Each head is as wide as g.
func (s Set) Spread(dst, g []float32, heads int, scale float32) {
	if len(g) == 0 {
		return
	}
	full, lanes := s.split(len(g))
	if s == AVX512 {
		spread512(&dst[0], &g[0], 4*len(g), heads, scale, full, lanes)
		return
	}
	spread256(&dst[0], &g[0], 4*len(g), heads, scale, full, lanes)
}

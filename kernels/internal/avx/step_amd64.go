package avx

// SGD makes one step of param. If buf is nil, there is no momentum. All slices have the same length.
// The bits of SGD and Adam are those of plain Go.
func (s Set) SGD(k *SGD, param, grad, buf []float32) {
	if len(param) == 0 {
		return
	}
	full, lanes := s.split(len(param))
	switch {
	case buf == nil && s == AVX512:
		sgd512(&param[0], &grad[0], &k.LR, full, lanes)
	case buf == nil:
		sgd256(&param[0], &grad[0], &k.LR, full, lanes)
	case s == AVX512:
		momentum512(&param[0], &grad[0], &buf[0], &k.LR, full, lanes)
	default:
		momentum256(&param[0], &grad[0], &buf[0], &k.LR, full, lanes)
	}
}

// Adam makes one step of param, with the state m and v.
func (s Set) Adam(k *Adam, param, grad, m, v []float32) {
	if len(param) == 0 {
		return
	}
	full, lanes := s.split(len(param))
	if s == AVX512 {
		adam512(&param[0], &grad[0], &m[0], &v[0], &k.Shrink, full, lanes)
		return
	}
	adam256(&param[0], &grad[0], &m[0], &v[0], &k.Shrink, full, lanes)
}

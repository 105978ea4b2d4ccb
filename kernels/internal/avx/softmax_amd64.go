package avx

import "unsafe"

// Largest sets the tops of k to the largest elements of the rows of z [any x cols], except NaNs.
func (s Set) Largest(k *Softmax, z []float32, cols int) {
	group := s.lanes() / 2
	for i := k.Count; i%group > 0; i++ {
		k.Rows[i] = k.Rows[k.Count-1] // again, for a whole group
	}
	for i := 0; i < k.Count; i += group {
		if s == AVX512 {
			largest512(&k.Tops[i], unsafe.SliceData(z), 4*cols, &k.Rows[i], cols/4, cols%4)
		} else {
			largest256(&k.Tops[i], unsafe.SliceData(z), 4*cols, &k.Rows[i], cols/4, cols%4)
		}
	}
}

// Softmax sets the rows of dst [any x cols], unless it is nil, to scale times the softmax of the same rows of z. dst
// may be z. cols must be positive.
func (s Set) Softmax(k *Softmax, dst, z []float32, cols int, scale float64) {
	s.Largest(k, z, cols)
	group, to, from := s.lanes()/2, unsafe.SliceData(dst), unsafe.SliceData(z)
	for i := 0; i < k.Count; i += group {
		rows, tops, sums, factors := &k.Rows[i], &k.Tops[i], &k.Logs[i], &k.factors[i]
		if s == AVX512 {
			exponentials512(to, from, 4*cols, rows, tops, sums, factors, scale, cols/4, cols%4)
		} else {
			exponentials256(to, from, 4*cols, rows, tops, sums, factors, scale, cols/4, cols%4)
		}
	}
	groups := (k.Count + group - 1) / group
	if s == AVX512 {
		logarithms512(&k.Logs[0], groups)
	} else {
		logarithms256(&k.Logs[0], groups)
	}
	switch {
	case dst == nil:
	case s == AVX512:
		scaleRows512(to, 4*cols, &k.Rows[0], &k.factors[0], k.Count, cols/8, cols%8)
	default:
		scaleRows256(to, 4*cols, &k.Rows[0], &k.factors[0], k.Count, cols/8, cols%8)
	}
}

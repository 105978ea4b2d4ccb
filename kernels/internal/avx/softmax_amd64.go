package avx

import "unsafe"

// Softmax sets the rows of dst [any x cols], unless it is nil, to scale times the softmax of the same rows of z. dst
// may be z. cols must be positive.
func (s Set) Softmax(k *Softmax, dst, z []float32, cols int, scale float64) {
	if k.Count == 0 {
		return
	}
	group, stride, to, from := s.lanes()/2, 4*cols, unsafe.SliceData(dst), unsafe.SliceData(z)
	groups := (k.Count + group - 1) / group
	for i := k.Count; i < groups*group; i++ {
		k.Rows[i] = k.Rows[k.Count-1] // again
	}
	if s != AVX512 {
		for i := 0; i < k.Count; i += group {
			largest256(&k.Tops[i], from, stride, &k.Rows[i], cols/4, cols%4)
		}
		for i := 0; i < k.Count; i += group {
			exponentials256(to, from, stride, &k.Rows[i], &k.Tops[i], &k.Logs[i], &k.factors[i], scale, cols/4, cols%4)
		}
		logarithms256(&k.Logs[0], groups)
		if dst != nil {
			scaleRows256(to, stride, &k.Rows[0], &k.factors[0], k.Count, cols/8, cols%8)
		}
		return
	}
	for i := 0; i < k.Count; i += group {
		largest512(&k.Tops[i], from, stride, &k.Rows[i], cols/4, cols%4)
	}
	for i := 0; i < k.Count; i += group {
		exponentials512(to, from, stride, &k.Rows[i], &k.Tops[i], &k.Logs[i], &k.factors[i], scale, cols/4, cols%4)
	}
	logarithms512(&k.Logs[0], groups)
	if dst != nil {
		scaleRows512(to, stride, &k.Rows[0], &k.factors[0], k.Count, cols/8, cols%8)
	}
}

package avx

import "unsafe"

// pairs returns the number n of pairs of rows, i and n+i, that are computed together.
func (k *Softmax) pairs() int {
	if k.Count%2 > 0 {
		k.Rows[k.Count] = k.Rows[k.Count/2] // twice in its pair
	}
	return (k.Count + 1) / 2
}

// Largest sets the tops of k to the largest elements of the rows of z [any x cols], except NaNs.
func (s Set) Largest(k *Softmax, z []float32, cols int) {
	largest256(&k.Tops[0], unsafe.SliceData(z), 4*cols, &k.Rows[0], k.pairs(), cols/4, cols%4)
}

// Softmax sets the rows of dst [any x cols], unless it is nil, to scale times the softmax of the same rows of z. dst
// may be z. cols must be positive.
func (s Set) Softmax(k *Softmax, dst, z []float32, cols int, scale float64) {
	s.Largest(k, z, cols)
	to, from, rows, sums, n := unsafe.SliceData(dst), unsafe.SliceData(z), &k.Rows[0], &k.Logs[0], k.pairs()
	if s == AVX512 {
		exponentials512(to, from, 4*cols, rows, &k.Tops[0], sums, n, cols/4, cols%4)
	} else {
		exponentials256(to, from, 4*cols, rows, &k.Tops[0], sums, n, cols/4, cols%4)
	}
	if dst != nil {
		scaleRows256(to, to, 4*cols, rows, sums, scale, n, cols/4, cols%4)
	}
	if s == AVX512 {
		logarithms512(sums, (n+3)/4)
	} else {
		logarithms256(sums, (n+1)/2)
	}
}

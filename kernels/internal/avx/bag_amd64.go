package avx

// GatherValues adds to dst
//
//	Σ_i vals[i] · x[cols[i]],  x being rows of len(dst)
//
// in the order of i. cols may be longer than vals: further ones are read for prefetching.
func (s Set) GatherValues(dst, x []float32, cols []uint32, vals []float32) {
	n := len(vals)
	if n == 0 {
		return
	}
	prefetching := min(n, max(len(cols)-ahead, 0))
	width, tile := len(dst), 8*s.lanes()
	for j := 0; j < width; j += tile {
		full, lanes := s.split(min(tile, width-j))
		if s == AVX512 {
			gatherValues512(&dst[j], &x[j], 4*width, &cols[0], &vals[0], prefetching, n-prefetching, full+1, lanes)
		} else {
			gatherValues256(&dst[j], &x[j], 4*width, &cols[0], &vals[0], prefetching, n-prefetching, full+1, lanes)
		}
	}
}

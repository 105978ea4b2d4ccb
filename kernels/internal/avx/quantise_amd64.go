package avx

// Extent returns the least and the largest element of x and whether all elements are finite. If not,
// lo and hi are undefined. x must not be empty.
func (s Set) Extent(x []float32) (lo, hi float32, finite bool) {
	full, lanes := s.split(len(x))
	var poison float32
	if s == AVX512 {
		lo, hi, poison = extent512(&x[0], full, lanes)
	} else {
		lo, hi, poison = extent256(&x[0], full, lanes)
	}
	return lo, hi, poison == 0
}

// Codes writes the codes of x, each of 8, 4 or 2 bits, and up to CodeSlack
// bytes after them.
func (s Set) Codes(d *Draw, dst []byte, x []float32, offset, inverse float32, bits int, id uint32) {
	if len(x) == 0 {
		return
	}
	// A table of routines would let d escape.
	switch {
	case s == AVX512 && bits == 8:
		codes512x8(&d.Keys[0][0], &dst[0], &x[0], offset, inverse, id, len(x))
	case s == AVX512 && bits == 4:
		codes512x4(&d.Keys[0][0], &dst[0], &x[0], offset, inverse, id, len(x))
	case s == AVX512:
		codes512x2(&d.Keys[0][0], &dst[0], &x[0], offset, inverse, id, len(x))
	case bits == 8:
		codes256x8(&d.Keys[0][0], &dst[0], &x[0], offset, inverse, id, len(x))
	case bits == 4:
		codes256x4(&d.Keys[0][0], &dst[0], &x[0], offset, inverse, id, len(x))
	default:
		codes256x2(&d.Keys[0][0], &dst[0], &x[0], offset, inverse, id, len(x))
	}
}

// values has the routines that set and that add, for 2, 4 and 8 bits.
var values = [...][3][2]func(dst *float32, codes *byte, offset, step float32, full, lanes int){
	AVX2:   {{values256x2, addValues256x2}, {values256x4, addValues256x4}, {values256x8, addValues256x8}},
	AVX512: {{values512x2, addValues512x2}, {values512x4, addValues512x4}, {values512x8, addValues512x8}},
}

// Values sets dst to the values of codes or, with add, adds them to dst. CodeSlack bytes after the
// codes may be read.
func (s Set) Values(dst []float32, codes []byte, offset, step float32, bits int, add bool) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	which := 0
	if add {
		which = 1
	}
	values[s][bits/4][which](&dst[0], &codes[0], offset, step, full, lanes)
}

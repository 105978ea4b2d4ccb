package avx

import "unsafe"

// Dropout sets dst to the row x after dropout, with the masks of the id. dst and x have the same
// length and may be the same slice. The row is computed as two halves.
func (s Set) Dropout(d *Draw, dst, x []float32, id uint32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst))
	// The last vector of the first half is empty if the number of vectors is odd.
	second, lanesA := (full+1)/2, s.lanes()
	if full%2 == 0 {
		second, lanesA = full/2, 0
	}
	s.dropout(d, dst, x, second*s.lanes(), id, id, second*s.lanes()/4, full/2, lanesA, lanes)
}

// DropoutPair applies Dropout to two consecutive rows, which dst and x contain.
func (s Set) DropoutPair(d *Draw, dst, x []float32, idA, idB uint32) {
	if len(dst) == 0 {
		return
	}
	full, lanes := s.split(len(dst) / 2)
	s.dropout(d, dst, x, len(dst)/2, idA, idB, 0, full, lanes, lanes)
}

func (s Set) dropout(d *Draw, dst, x []float32, second int, idA, idB uint32, blockB, full, lanesA, lanesB int) {
	if s == AVX512 {
		dropout512(&d.Keys[0][0], &dst[0], &x[0], 4*second, idA, idB, uint32(blockB), full, lanesA, lanesB)
		return
	}
	dropout256(&d.Keys[0][0], &dst[0], &x[0], 4*second, idA, idB, uint32(blockB), full, lanesA, lanesB)
}

// Sift moves the non-zeros that dropout retains to the front of keptIndex and keptVals and sets a
// bit of bits for each. Word cols[i]%4 of block cols[i]/4 of ids[i] decides about non-zero i. The
// results must have space for all non-zeros and one more vector.
func (s Set) Sift(d *Draw, keptIndex []uint32, keptVals []float32, bits []uint64, ids, cols, index []uint32, vals []float32) {
	if len(vals) == 0 {
		return
	}
	full, lanes := s.split(len(vals))
	first := (*uint8)(unsafe.Pointer(&bits[0]))
	if s == AVX512 {
		sift512(&d.Keys[0][0], &ids[0], &cols[0], &index[0], &vals[0], &keptIndex[0], &keptVals[0], first, full, lanes)
		return
	}
	sift256(&d.Keys[0][0], &ids[0], &cols[0], &index[0], &vals[0], &keptIndex[0], &keptVals[0], first, full, lanes)
}

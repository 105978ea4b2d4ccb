package avx

// DecodeRows decodes the columns of n rows, whose numbers start at near, and returns the length of their
// code. Row i has end[i]-begin[i] columns. dst has CodedGroup elements more than columns.
func (s Set) DecodeRows(dst []uint32, code []byte, begin, end []int64, n int, near uint32) int {
	return decodeRows(&dst[0], &code[0], &begin[0], &end[0], n, near)
}

// DecodeBelow decodes the columns below bound of n gaps, which start at code after the column previous,
// except those of the first lane gaps. It returns the number of columns, and sets previous and used to the
// group with the first column that is not below bound. dst has CodedGroup elements more than columns. The
// memory at next is prefetched.
func (s Set) DecodeBelow(dst []uint32, code []byte, previous *uint32, lane, n int, bound uint32, next *byte) (count, used int) {
	return decodeBelow(&dst[0], &code[0], previous, lane, n, bound, next)
}

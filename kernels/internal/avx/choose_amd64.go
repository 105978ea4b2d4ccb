package avx

// Choose copies the ids whose bit is set to dst and returns their number. dst is as long as ids.
func (s Set) Choose(dst, ids, bits []uint32) int {
	if len(ids) == 0 {
		return 0
	}
	return choose(&dst[0], &ids[0], len(ids), &bits[0])
}

// ChooseAt copies the ids whose bit is set to dst and returns their number. The bit of ids[0] is bit first of bits.
// ChooseSlack ids after the copied ones may be overwritten, and as many bytes after the bits may be read.
func (s Set) ChooseAt(dst, ids []uint32, bits []uint8, first int64) int {
	if len(ids) == 0 {
		return 0
	}
	if s == AVX512 {
		return chooseAt512(&dst[0], &ids[0], len(ids), &bits[first/8], int(first%8))
	}
	return chooseAt256(&dst[0], &ids[0], len(ids), &bits[first/8], int(first%8))
}

// Below copies the ids below bound to dst and returns their number. ids are ascending, and dst is
// as long. The memory at next is prefetched.
func (s Set) Below(dst, ids []uint32, bound uint32, next *uint32) int {
	if len(ids) == 0 {
		return 0
	}
	return below(&dst[0], &ids[0], len(ids), bound, next)
}

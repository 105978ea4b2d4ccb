package avx

// Choose copies the ids whose bit is set to dst and returns their number. dst is as long as ids.
func (s Set) Choose(dst, ids, bits []uint32) int {
	if len(ids) == 0 {
		return 0
	}
	return choose(&dst[0], &ids[0], len(ids), &bits[0])
}

// Below copies the ids below bound to dst and returns their number. ids are ascending, and dst is
// as long. The memory at next is prefetched.
func (s Set) Below(dst, ids []uint32, bound uint32, next *uint32) int {
	if len(ids) == 0 {
		return 0
	}
	return below(&dst[0], &ids[0], len(ids), bound, next)
}

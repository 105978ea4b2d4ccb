package avx

// Choose copies those ids to dst whose bit is set and returns their number; dst is as
// long as ids.
func (s Set) Choose(dst, ids, bits []uint32) int {
	if len(ids) == 0 {
		return 0
	}
	return choose(&dst[0], &ids[0], len(ids), &bits[0])
}

// Below copies those of ascending ids that are below bound to dst, which is as long as ids,
// and returns their number. What lies at next is prefetched.
func (s Set) Below(dst, ids []uint32, bound uint32, next *uint32) int {
	if len(ids) == 0 {
		return 0
	}
	return below(&dst[0], &ids[0], len(ids), bound, next)
}

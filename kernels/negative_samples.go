package kernels

import "math/bits"

// SampleNegative returns the k-th negative partner of v in an epoch: a vertex other than v, of
// n > 1. The probability of each is uniform up to a relative error of 2^-64 n. All ranks get
// the same result:
//
//	(v + 1 + ⌊(n-1)·x/2^64⌋) mod n,  x = words 0 and 1 of Philox({v, k, epoch, pairs}, seed)
func SampleNegative(seed uint64, epoch int, v, k uint32, n int64) uint32 {
	c := Philox([4]uint32{v, k, uint32(epoch), streamPairs}, philoxKey(seed))
	step, _ := bits.Mul64(uint64(n-1), uint64(c[1])<<32|uint64(c[0]))
	return uint32((uint64(v) + 1 + step) % uint64(n))
}

// SampleCorrupted replaces one end of the triple (src, relation, dst), either with probability 1/2, by another vertex of
// its kind. A kind has the vertices [0] to [0]+[1]-1; an end whose kind has one vertex is not replaced. Samples k differ,
// and all ranks get the same result:
//
//	x = Philox({src, dst, epoch, triples}, {low half of seed, high half + (relation 2^16 + k)}): the end is word 2 modulo 2,
//	and the vertex is sampled by words 0 and 1 as in SampleNegative
func SampleCorrupted(seed uint64, epoch int, src, dst uint32, relation, k uint16, srcs, dsts [2]int64) (uint32, uint32) {
	key := philoxKey(seed)
	key[1] += uint32(relation)<<16 | uint32(k)
	c := Philox([4]uint32{src, dst, uint32(epoch), streamTriples}, key)
	end, kind := &src, srcs
	if c[2]&1 == 1 && dsts[1] > 1 || srcs[1] < 2 {
		end, kind = &dst, dsts
	}
	if kind[1] < 2 {
		return src, dst
	}
	step, _ := bits.Mul64(uint64(kind[1]-1), uint64(c[1])<<32|uint64(c[0]))
	*end = uint32(kind[0] + (int64(*end)-kind[0]+1+int64(step))%kind[1])
	return src, dst
}

// Share returns the first item of vertex v if total items are divided among n vertices as
// evenly as possible: ⌊v·total/n⌋. Vertex v has items Share(v)..Share(v+1)-1.
func Share(v, total, n int64) int64 {
	hi, lo := bits.Mul64(uint64(v), uint64(total))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return int64(q)
}

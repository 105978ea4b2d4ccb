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

// Share returns the first item of vertex v if total items are divided among n vertices as
// evenly as possible: ⌊v·total/n⌋. Vertex v has items Share(v)..Share(v+1)-1.
func Share(v, total, n int64) int64 {
	hi, lo := bits.Mul64(uint64(v), uint64(total))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return int64(q)
}

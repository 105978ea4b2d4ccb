package kernels

import "math/bits"

// SampleNegative is another vertex than v of n > 1, each as likely as any other but for 2^-64 n of
// its probability: the k-th that v is paired with in an epoch. It is the same whoever
// draws it:
//
//	(v + 1 + ⌊(n-1)·x/2^64⌋) mod n,  x = words 0 and 1 of Philox({v, k, epoch, pairs}, seed)
func SampleNegative(seed uint64, epoch int, v, k uint32, n int64) uint32 {
	c := Philox([4]uint32{v, k, uint32(epoch), streamPairs}, philoxKey(seed))
	step, _ := bits.Mul64(uint64(n-1), uint64(c[1])<<32|uint64(c[0]))
	return uint32((uint64(v) + 1 + step) % uint64(n))
}

// Share is where the things of vertex v begin if total things are dealt out to n vertices
// as evenly as can be: ⌊v·total/n⌋. Those of v are Share(v)..Share(v+1)-1.
func Share(v, total, n int64) int64 {
	hi, lo := bits.Mul64(uint64(v), uint64(total))
	q, _ := bits.Div64(hi, lo, uint64(n))
	return int64(q)
}

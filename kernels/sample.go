package kernels

import "slices"

// Sample selects random neighbours of a vertex, for a layer in a training step. It depends
// only on its fields and arguments.
type Sample struct {
	Seed        uint64
	Step, Layer int
}

// Draw appends min(k, n) different numbers below n to dst, ascending, for the vertex with a
// dataset id. Sets are uniform up to a relative error of 2^-32 n in a number's probability.
// Word j of the vertex is
//
//	Philox({id, j/4, Step, Layer}, Seed)[j%4]
//
// Variant: Floyd's algorithm (Bentley and Floyd, "A sample of brilliance", CACM 30(9), 1987),
// which needs k words and no list of n.
func (s Sample) Draw(dst []uint32, id uint32, k, n int) []uint32 {
	first := len(dst)
	if k >= n {
		for i := range n {
			dst = append(dst, uint32(i))
		}
		return dst
	}
	var words [4]uint32
	key := philoxKey(s.Seed)
	for j := range k {
		if j%4 == 0 {
			words = Philox([4]uint32{id, uint32(j / 4), uint32(s.Step), uint32(s.Layer) | streamSample}, key)
		}
		last := uint32(n - k + j)
		x := uint32(uint64(words[j%4]) * uint64(last+1) >> 32)
		at, taken := slices.BinarySearch(dst[first:], x)
		if taken {
			x, at = last, len(dst)-first
		}
		dst = slices.Insert(dst, first+at, x)
	}
	return dst
}

package kernels

import "slices"

// Sample is a draw of some of a vertex's neighbours for a layer of a step of training,
// the same whoever draws it, and whenever.
type Sample struct {
	Seed        uint64
	Step, Layer int
}

// Draw appends min(k, n) different numbers below n to dst, ascending, for the vertex with
// a dataset id: each set of so many is as likely as any other, but for 2^-32 n of a
// number's probability. Word j of the vertex is
//
//	Philox({id, j/4, Step, Layer}, Seed)[j%4]
//
// Variant: Floyd's draw (Bentley and Floyd, "A sample of brilliance", CACM 30(9), 1987),
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

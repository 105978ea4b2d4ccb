package generate

import (
	"math/bits"
	"slices"

	"siafu/internal/elementary"
)

// stream is a sequence of random numbers with random access: number i is number i of SplitMix64
// seeded with the stream.
type stream uint64

func newStream(seed, purpose uint64) stream {
	return stream(elementary.Mix(elementary.Mix(seed+elementary.Golden) + purpose*elementary.Golden))
}

func (s stream) at(i uint64) uint64 { return elementary.Mix(uint64(s) + (i+1)*elementary.Golden) }

// normal maps x to a nearly normal number with mean 0 and variance 1: the sum of the four
// 16-bit words of x (Irwin–Hall), within ±3.5.
//
// Design note: Box–Muller is ten times slower. It needs logarithms and sines, and their last bit
// differs between processors.
func normal(x uint64) float32 {
	const mean, scale = 4 * 65535 / 2.0, 1 / 37837.2 // 65536/√3
	sum := x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48
	return (float32(sum) - mean) * scale
}

// shuffle is a random permutation of 0..n-1 without a table. It is a Feistel network over the
// next power of two, applied until the image is below n (Black & Rogaway 2002, cycle walking).
type shuffle struct {
	n         uint64
	low, high uint // bits of the two halves
	keys      [4]uint64
	lowM, hiM uint64 // masks
}

func newShuffle(n uint64, s stream) shuffle {
	width := max(uint(bits.Len64(n-1)), 2)
	p := shuffle{n: n, low: width / 2, high: width - width/2}
	p.lowM, p.hiM = 1<<p.low-1, 1<<p.high-1
	for i := range p.keys {
		p.keys[i] = s.at(uint64(i))
	}
	return p
}

// at returns the image of x. x must be below n.
func (p *shuffle) at(x uint64) uint64 {
	for x = p.step(x); x >= p.n; {
		x = p.step(x)
	}
	return x
}

// step returns the image of x after one pass through the network.
func (p *shuffle) step(x uint64) uint64 {
	l, h := x&p.lowM, x>>(p.low&63)
	l ^= elementary.Mix(h^p.keys[0]) & p.lowM
	h ^= elementary.Mix(l^p.keys[1]) & p.hiM
	l ^= elementary.Mix(h^p.keys[2]) & p.lowM
	h ^= elementary.Mix(l^p.keys[3]) & p.hiM
	return h<<(p.low&63) | l
}

// inverse returns the x with at(x) = y.
func (p *shuffle) inverse(y uint64) uint64 {
	for {
		l, h := y&p.lowM, y>>p.low
		for i := len(p.keys) - 2; i >= 0; i -= 2 {
			h ^= elementary.Mix(l^p.keys[i+1]) & p.hiM
			l ^= elementary.Mix(h^p.keys[i]) & p.lowM
		}
		if y = h<<p.low | l; y < p.n {
			return y
		}
	}
}

// all replaces each x by its image. walk is a buffer for the positions of images that are not
// yet below n. all returns the buffer for reuse.
//
// Design note: without a branch that depends on an image, the processor computes several images
// at a time.
func (p *shuffle) all(xs, walk []uint32) []uint32 {
	walk = slices.Grow(walk[:0], len(xs))[:len(xs)]
	left := 0
	for i, x := range xs {
		y := p.step(uint64(x))
		xs[i] = uint32(y)
		walk[left] = uint32(i)
		if y >= p.n {
			left++
		}
	}
	for left > 0 {
		rest := walk[:left]
		left = 0
		for _, i := range rest {
			y := p.step(uint64(xs[i]))
			xs[i] = uint32(y)
			walk[left] = i
			if y >= p.n {
				left++
			}
		}
	}
	return walk
}

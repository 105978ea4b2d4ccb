package generate

import "math/bits"

// golden is 2⁶⁴ divided by the golden ratio, odd.
const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection
// whose output bits each depend on all input bits.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stream is a sequence of random numbers that is read at any position: number
// i of SplitMix64 seeded with the stream.
type stream uint64

// newStream is the stream of a seed for one purpose.
func newStream(seed, purpose uint64) stream { return stream(mix(mix(seed+golden) + purpose*golden)) }

func (s stream) at(i uint64) uint64 { return mix(uint64(s) + (i+1)*golden) }

// normal turns x into a number of mean 0 and variance 1, nearly normal: the sum
// of the four 16-bit words of x (Irwin–Hall), within ±3.5.
//
// Design note: Box–Muller needs logarithms and sines, whose last bit differs
// between processors, and is ten times slower.
func normal(x uint64) float32 {
	const mean, scale = 4 * 65535 / 2.0, 1 / 37837.2 // 65536/√3
	sum := x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48
	return (float32(sum) - mean) * scale
}

// shuffle is a random permutation of 0..n-1 that takes no memory: a Feistel
// network over the next power of two, walked until it falls below n (Black &
// Rogaway 2002, cycle walking).
type shuffle struct {
	n         uint64
	low, high uint // bits of the halves
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

// at is the image of x, which is below n.
func (p *shuffle) at(x uint64) uint64 {
	for {
		l, h := x&p.lowM, x>>p.low
		for i := 0; i < len(p.keys); i += 2 {
			l ^= mix(h^p.keys[i]) & p.lowM
			h ^= mix(l^p.keys[i+1]) & p.hiM
		}
		if x = h<<p.low | l; x < p.n {
			return x
		}
	}
}

package kernels

import (
	"math/bits"

	"siafu/kernels/internal/avx"
)

// Philox computes Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw
// ("Parallel random numbers: as easy as 1, 2, 3", SC'11, section 5.2). It returns four random
// words that depend only on counter and key, so that every rank gets the same words for a
// vertex.
func Philox(ctr [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := philox(ctr[0], ctr[1], ctr[2], ctr[3], key[0], key[1])
	return [4]uint32{c0, c1, c2, c3}
}

// philox computes Philox on scalars, because Go does not pass arrays in registers.
func philox(c0, c1, c2, c3, k0, k1 uint32) (uint32, uint32, uint32, uint32) {
	for range philoxRounds {
		hi0, lo0 := bits.Mul32(philoxM0, c0)
		hi1, lo1 := bits.Mul32(philoxM1, c2)
		c0, c1, c2, c3 = hi1^c1^k0, lo1, hi0^c3^k1, lo0
		k0 += philoxW0
		k1 += philoxW1
	}
	return c0, c1, c2, c3
}

// Multipliers and key increments of the paper's table 2 and section 5.2.
const (
	philoxRounds = 10
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	philoxW0     = 0x9E3779B9
	philoxW1     = 0xBB67AE85
)

// Streams separate random numbers for different purposes: the stream is the top byte of the
// counter's last word, above the layer.
const (
	streamDropout   = 0 << 24
	streamWeights   = 1 << 24
	streamAttention = 2 << 24
	streamRounding  = 3 << 24
	streamSums      = 4 << 24 // rounding of sums
	streamBatch     = 5 << 24 // mini-batches
	streamSample    = 6 << 24 // sampled neighbours
	streamPairs     = 7 << 24 // pairs without an edge
	streamScores    = 8 << 24 // dropout in the scores of pairs
	streamTriples   = 9 << 24 // corrupted triples
)

func philoxKey(seed uint64) [2]uint32 { return [2]uint32{uint32(seed), uint32(seed >> 32)} }

// newDraw returns the parameters of package avx for counters that end in epoch and layer.
func newDraw(key [2]uint32, epoch, layer uint32) avx.Draw {
	var d avx.Draw
	for r := range uint32(philoxRounds) {
		d.Keys[r] = [2]uint32{key[0] + r*philoxW0, key[1] + r*philoxW1}
	}
	hi, lo := bits.Mul32(philoxM1, epoch)
	d.First, d.Second, d.Third = hi^d.Keys[0][0], lo^d.Keys[1][0], layer^d.Keys[0][1]
	return d
}

package generate

import (
	"math"
	"math/bits"

	"siafu/internal/elementary"
)

// Chung–Lu sampling hits some pairs more than once, above all pairs of hubs. This file computes
// the number of samples that gives the requested number of distinct edges. A pair that a sample
// hits with probability p exists after m samples with probability 1-exp(-mp).

// bin is a range of ranks with nearly equal weights.
type bin struct {
	count float64 // number of ranks
	p     float64 // probability of each rank
}

// bins divides the ranks into ranges whose ends grow by 6 %.
func (r *ranks) bins() []bin {
	var out []bin
	for a := int64(0); a < r.size; {
		b := min(max(a+1, a*53/50), r.size)
		out = append(out, bin{float64(b - a), r.mass(float64(a), float64(b)) / float64(b-a)})
		a = b
	}
	return out
}

// pairs returns Σ 1-exp(-rate·p·q) over all pairs of a rank of from with probability p and a rank of to with
// probability q. If same is set, pairs of a rank with itself are excluded.
func pairs(from, to []bin, rate float64, same bool) float64 {
	var sum float64
	for _, a := range from {
		for _, b := range to {
			sum -= float64(a.count * b.count * elementary.Expm1(-rate*a.p*b.p))
		}
		if same {
			sum += float64(a.count * elementary.Expm1(-rate*a.p*a.p))
		}
	}
	return sum
}

// distinctEdges returns the expected number of distinct directed edges after m samples. The samples
// are spread over the given number of ordered pairs of classes, each with itself if same is set.
func distinctEdges(bs []bin, classPairs, m float64, same, directed bool) float64 {
	if !directed {
		m *= 2 // either order of the pair hits the edge, and the edge is stored in both directions
	}
	return classPairs * pairs(bs, bs, m/classPairs, same)
}

// drawsFor returns the m with expected(m) = edges, rounded to 12 bits. expected must be
// increasing. drawsFor fails if 1,000 samples per edge do not suffice.
func drawsFor(edges float64, expected func(m float64) float64) (m uint64, ok bool) {
	if edges < 0.5 {
		return 0, true
	}
	lo, hi := edges/4, edges*1000
	if expected(hi) < edges {
		return 0, false
	}
	for hi-lo > lo/8192 && hi-lo > 0.25 {
		mid := math.Sqrt(lo * hi)
		if expected(mid) < edges {
			lo = mid
		} else {
			hi = mid
		}
	}
	// The last bits of exponentials differ between processors. Rounding removes them, so that
	// the dataset does not depend on the processor.
	m = uint64(math.Round(hi))
	unit := uint64(1) << max(bits.Len64(m)-12, 0)
	return (m + unit/2) / unit * unit, true
}

package generate

import (
	"math"
	"math/bits"
)

// Chung–Lu draws hit some pairs more than once, and hubs most. How many draws
// give the number of distinct edges that was asked for is computed here, from
// the expectation: a pair that a draw hits with probability p is there after m
// draws with probability 1-exp(-mp).

// bin is a run of ranks of nearly equal weight.
type bin struct {
	count float64 // ranks in it
	p     float64 // of each
}

// bins cuts the ranks into runs whose ends grow by 6 %.
func (r *ranks) bins() []bin {
	var out []bin
	for a := int64(0); a < r.size; {
		b := min(max(a+1, a*53/50), r.size)
		out = append(out, bin{float64(b - a), r.mass(float64(a), float64(b)) / float64(b-a)})
		a = b
	}
	return out
}

// pairs is Σ 1-exp(-rate·p·q) over all pairs of ranks with probabilities p and
// q, less the pairs of a rank with itself when same is set.
func pairs(bs []bin, rate float64, same bool) float64 {
	var sum float64
	for _, a := range bs {
		for _, b := range bs {
			sum -= a.count * b.count * math.Expm1(-rate*a.p*b.p)
		}
		if same {
			sum += a.count * math.Expm1(-rate*a.p*a.p)
		}
	}
	return sum
}

// within returns the expected number of distinct directed edges after m draws
// inside c classes.
func within(bs []bin, c, m float64, directed bool) float64 {
	if directed {
		return c * pairs(bs, m/c, true)
	}
	// Either order of the pair hits it, and it is stored in both directions.
	return c * pairs(bs, 2*m/c, true)
}

// across returns the same for m draws between different ones of c classes.
func across(bs []bin, c, m float64, directed bool) float64 {
	ordered := c * (c - 1)
	if directed {
		return ordered * pairs(bs, m/ordered, false)
	}
	return ordered * pairs(bs, 2*m/ordered, false)
}

// drawsFor returns the m with expected(m) = edges, to 12 bits; expected grows. It
// fails where 1,000 draws an edge do not suffice.
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
	// The rounding keeps the last bits of exponentials, which differ between
	// processors, out of the dataset.
	m = uint64(math.Round(hi))
	unit := uint64(1) << max(bits.Len64(m)-12, 0)
	return (m + unit/2) / unit * unit, true
}

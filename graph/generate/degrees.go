package generate

import (
	"math"
	"math/bits"
)

// ranks samples the rank of a vertex within its class. Rank x has weight (x+shift)^-skew. All
// classes share this distribution.
//
// Design note: the quantile function is tabulated once and interpolated in integers. An
// exponential per sample takes three times as long, and its last bit differs between processors.
type ranks struct {
	size     int64 // vertices of the largest class
	skew     float64
	shift    float64
	quantile [tableSize + 1]uint64 // ranks with rankBits fractional bits
}

const (
	tableBits = 14
	tableSize = 1 << tableBits
	rankBits  = 20
)

// newRanks builds the distribution for classes of size vertices in a graph with average degree
// mean. shift grows, which flattens the head of the power law, until no vertex has an expected
// degree above most.
func newRanks(size int64, skew, mean, most float64) *ranks {
	r := &ranks{size: size, skew: skew, shift: 1}
	top := func() float64 { return r.mass(0, 1) * mean * float64(size) }
	for r.shift < 1e3*float64(size) && top() > most {
		r.shift *= 1.05
	}
	for i := range r.quantile {
		x := r.inverse(float64(i) / tableSize)
		r.quantile[i] = uint64(math.Round(x * (1 << rankBits)))
	}
	return r
}

// integral returns ∫(t+shift)^-skew dt from 0 to x.
func (r *ranks) integral(x float64) float64 {
	e := 1 - r.skew
	return (math.Pow(x+r.shift, e) - math.Pow(r.shift, e)) / e
}

// mass returns the probability of the ranks [a, b).
func (r *ranks) mass(a, b float64) float64 {
	return (r.integral(b) - r.integral(a)) / r.integral(float64(r.size))
}

// inverse returns the x with mass(0, x) = u.
func (r *ranks) inverse(u float64) float64 {
	e := 1 - r.skew
	x := math.Pow(float64(u*e*r.integral(float64(r.size)))+math.Pow(r.shift, e), 1/e) - r.shift
	return min(max(x, 0), float64(r.size))
}

// at maps 64 random bits to a rank.
func (r *ranks) at(x uint64) int64 {
	i := x >> (64 - tableBits)
	lo, hi := r.quantile[i], r.quantile[i+1]
	step, _ := bits.Mul64(x<<tableBits, hi-lo)
	return min(int64((lo+step)>>rankBits), r.size-1)
}

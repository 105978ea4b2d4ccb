package generate

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestShuffleIsPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(2, 5000).Draw(t, "n")
		p := newShuffle(n, newStream(rapid.Uint64().Draw(t, "seed"), 1))
		seen, images := make([]bool, n), make([]uint32, n)
		for x := range images {
			images[x] = uint32(x)
		}
		p.all(images, nil)
		for x := range n {
			y := p.at(x)
			if y >= n || seen[y] {
				t.Fatalf("%d goes to %d, outside or taken", x, y)
			}
			if p.inverse(y) != x || uint64(images[x]) != y {
				t.Fatalf("%d goes to %d, among all to %d, and %d comes from %d", x, y, images[x], y, p.inverse(y))
			}
			seen[y] = true
		}
	})
}

// TestRanks compares draws with the probabilities that the number of draws is
// computed from.
func TestRanks(t *testing.T) {
	const draws = 1 << 20
	for _, size := range []int64{1, 2, 7, 1000, 1_000_000} {
		r := newRanks(size, 0.7, 10, 1e9)
		s := newStream(1, 1)
		var below10, belowHalf float64
		for i := range uint64(draws) {
			x := r.at(s.at(i))
			if x < 0 || x >= size {
				t.Fatalf("rank %d of %d", x, size)
			}
			if x < 10 {
				below10++
			}
			if x < size/2 {
				belowHalf++
			}
		}
		for _, c := range []struct{ got, want float64 }{
			{below10, r.mass(0, min(10, float64(size)))},
			{belowHalf, r.mass(0, float64(size/2))},
		} {
			if got := c.got / draws; math.Abs(got-c.want) > 0.003 {
				t.Errorf("%d ranks: share %.4f, want %.4f", size, got, c.want)
			}
		}
	}
}

func TestNormal(t *testing.T) {
	const n = 1 << 20
	var sum, squares, beyond2 float64
	s := newStream(9, 9)
	for i := range uint64(n) {
		x := float64(normal(s.at(i)))
		sum, squares = sum+x, squares+x*x
		if math.Abs(x) > 2 {
			beyond2++
		}
	}
	// 4.2 % of the sum of four uniforms lie beyond 2; of a normal, 4.6 %.
	if mean, v, tail := sum/n, squares/n, beyond2/n; math.Abs(mean) > 0.005 || math.Abs(v-1) > 0.01 || math.Abs(tail-0.042) > 0.004 {
		t.Errorf("mean %.4f, variance %.4f, beyond 2: %.4f", mean, v, tail)
	}
}

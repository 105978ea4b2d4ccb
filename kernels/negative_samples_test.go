package kernels

import (
	"math"
	"testing"
)

// Negative samples are uniform over all other vertices, and different in every epoch: counts
// are within 5 standard deviations of the expected value. Shares add up and differ by at most
// one.
func TestNegativeSamples(t *testing.T) {
	const n, draws = 7, 14_000
	var counts [n]int
	same := 0
	for k := range uint32(draws) {
		x := SampleNegative(3, 1, 5, k, n)
		counts[x]++
		if SampleNegative(3, 2, 5, k, n) == x {
			same++
		}
	}
	within := func(what string, got int, p float64) {
		if math.Abs(float64(got)-p*draws) > 5*math.Sqrt(p*(1-p)*draws) {
			t.Errorf("%s: %d times in %d draws, want about %.0f", what, got, draws, p*draws)
		}
	}
	for v, got := range counts {
		if p := 1.0 / (n - 1); v != 5 {
			within("a vertex", got, p)
		} else if got > 0 {
			t.Errorf("a vertex is paired with itself")
		}
	}
	within("the same in the next epoch", same, 1.0/(n-1))
	for _, total := range []int64{0, 3, 7, 1 << 45} {
		const many = 1<<32 - 5
		for _, n := range []int64{5, 7, many} {
			if Share(0, total, n) != 0 || Share(n, total, n) != total {
				t.Errorf("%d of %d: %d to %d", total, n, Share(0, total, n), Share(n, total, n))
			}
			for v := range int64(5) {
				if d := Share(v+1, total, n) - Share(v, total, n) - total/n; d < 0 || d > 1 {
					t.Errorf("%d of %d: vertex %d has %d more than the mean", total, n, v, d)
				}
			}
		}
	}
}

// A corrupted triple differs in one end, which is uniform over the other vertices of its kind. Samples differ
// between epochs, relations and numbers k.
func TestCorruptedTriples(t *testing.T) {
	const draws = 12_000
	srcs, dsts := [2]int64{0, 4}, [2]int64{4, 7}
	counts, same := map[[2]uint32]int{}, 0
	for k := range uint16(draws) {
		u, v := SampleCorrupted(3, 1, 2, 9, 5, k, srcs, dsts)
		counts[[2]uint32{u, v}]++
		if x, y := SampleCorrupted(3, 1, 2, 9, 6, k, srcs, dsts); x == u && y == v {
			same++
		}
		if x, y := SampleCorrupted(3, 2, 2, 9, 5, k, srcs, dsts); x == u && y == v {
			same++
		}
	}
	if len(counts) != 3+6 || same > draws/2 {
		t.Errorf("%d different triples, %d equal ones: %v", len(counts), same, counts)
	}
	for pair, got := range counts {
		p := 1. / 2 / 3
		if pair[0] == 2 {
			p = 1. / 2 / 6
		}
		if pair == [2]uint32{2, 9} || pair[0] != 2 && pair[1] != 9 || math.Abs(float64(got)-p*draws) > 5*math.Sqrt(p*(1-p)*draws) {
			t.Errorf("%v: %d times in %d draws, want about %.0f", pair, got, draws, p*draws)
		}
	}
	for k := range uint16(100) {
		if u, v := SampleCorrupted(3, 1, 0, 5, 0, k, [2]int64{0, 1}, dsts); u != 0 || v == 5 || v < 4 || v > 10 {
			t.Fatalf("a kind of one vertex: %d, %d", u, v)
		}
		if u, v := SampleCorrupted(3, 1, 5, 0, 0, k, dsts, [2]int64{0, 1}); v != 0 || u == 5 || u < 4 || u > 10 {
			t.Fatalf("a kind of one vertex: %d, %d", u, v)
		}
	}
	if u, v := SampleCorrupted(3, 1, 0, 1, 0, 0, [2]int64{0, 1}, [2]int64{1, 1}); u != 0 || v != 1 {
		t.Errorf("kinds of one vertex: %d, %d", u, v)
	}
}

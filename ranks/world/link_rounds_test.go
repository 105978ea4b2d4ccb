package world

import "testing"

// In the rounds of a measurement every pair meets exactly once, and no rank has two peers at a
// time.
func TestEveryPairMeetsOnce(t *testing.T) {
	for n := 2; n <= 17; n++ {
		met := map[[2]int]int{}
		for round := range roundsOf(n) {
			for r := range n {
				p := partner(r, round, n)
				if p == r || p >= n || p >= 0 && partner(p, round, n) != r {
					t.Fatalf("n=%d round %d: %d meets %d", n, round, r, p)
				}
				if r < p {
					met[[2]int{r, p}]++
				}
			}
		}
		if len(met) != n*(n-1)/2 {
			t.Errorf("n=%d: %d pairs have met", n, len(met))
		}
		for pair, times := range met {
			if times != 1 {
				t.Errorf("n=%d: %v met %d times", n, pair, times)
			}
		}
	}
}

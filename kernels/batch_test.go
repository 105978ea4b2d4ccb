package kernels

import "testing"

// The size of every batch matches Share (5 standard deviations of 10,000 draws with
// probability 0.2 are 200), and no two batches are equal.
func TestBatch(t *testing.T) {
	seen := map[[64]bool]bool{}
	for _, b := range []Batch{{1, 1, 0, 0.2}, {1, 1, 1, 0.2}, {1, 2, 0, 0.2}, {2, 1, 0, 0.2}} {
		var first [64]bool
		n := 0
		for id := range uint32(10_000) {
			if b.Has(id) {
				n++
				if id < 64 {
					first[id] = true
				}
			}
		}
		if n < 1800 || n > 2200 {
			t.Errorf("%+v: %d of 10,000 vertices", b, n)
		}
		seen[first] = true
	}
	if len(seen) != 4 {
		t.Errorf("4 batches are %d", len(seen))
	}
	if all := (Batch{1, 1, 0, 1}); !all.Has(7) || !all.Has(1<<31) {
		t.Error("a share of 1 is not all")
	}
}

package cuda

import (
	"testing"
)

// A plan has every row once, ordered or divided, and every edge of a hub in one piece, in order.
// Rows of a range are sorted by degree.
func TestPlanSharesEveryEdge(t *testing.T) {
	const hubEdges = 2 * pieceEdges
	var begin, end []int64
	at := int64(7)
	for r := range 3000 {
		degree := int64(r*r%97) + 1
		switch r {
		case 5, 1023, 2999:
			degree = hubEdges + int64(r)
		case 6:
			degree = hubEdges
		}
		begin, end = append(begin, at), append(end, at+degree)
		at += degree + int64(r%3)
	}
	s := newHostPlan(begin, end)
	if len(s.hubs) != 3 || len(s.order) != 2997 || s.ordered {
		t.Fatalf("%d hubs, %d rows in order, ordered: %v", len(s.hubs), len(s.order), s.ordered)
	}
	seen := map[uint32]bool{}
	for i, r := range s.order {
		if seen[r] = true; end[r]-begin[r] > hubEdges {
			t.Errorf("row %d is a hub in order", r)
		}
		if before := s.order[max(i-1, 0)]; before/orderRows == r/orderRows && end[before]-begin[before] < end[r]-begin[r] {
			t.Errorf("row %d is behind row %d, which has fewer edges", r, before)
		}
	}
	for h, r := range s.hubs {
		if seen[r] {
			t.Errorf("row %d is twice there", r)
		}
		from := begin[r]
		for p := s.firsts[h]; p < s.firsts[h+1]; p++ {
			if s.line[p] != r || s.begin[p] != from || s.end[p] <= from || s.end[p]-from > pieceEdges {
				t.Errorf("piece %d of row %d: %d to %d of row %d", p, r, s.begin[p], s.end[p], s.line[p])
			}
			from = s.end[p]
		}
		if from != end[r] {
			t.Errorf("pieces of row %d end at %d, not %d", r, from, end[r])
		}
	}
	long := int64(4 * pieceEdges * maxPieces)
	if s := newHostPlan([]int64{0, long}, []int64{long, 2 * long}); s.piece != 2*long/maxPieces || len(s.begin) != maxPieces {
		t.Errorf("pieces of %d edges, %d of them", s.piece, len(s.begin))
	}
	if s := newHostPlan([]int64{0, 3, 5}, []int64{3, 5, 6}); !s.ordered {
		t.Error("rows in order of degree are not in their own order")
	}
}

package multilevel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawnLevel returns the first or the second level of any small graph, and owners
// of its vertices.
func drawnLevel(t *rapid.T) (g *level, owner []uint32, limits []weights) {
	g = finest(drawn(t))
	if rapid.Bool().Draw(t, "second") {
		g = g.contract(newClustering(g, weight{5, 100, 5}, 1).run())
	}
	parts := rapid.IntRange(1, 6).Draw(t, "parts")
	for range g.n() {
		owner = append(owner, uint32(rapid.IntRange(0, parts-1).Draw(t, "owner")))
	}
	return g, owner, standard.limits(g, parts)
}

// cutOf counts what refiner.cut reads from its table.
func cutOf(g *level, owner []uint32) (cut int64) {
	for v := range owner {
		g.eachNeighbour(uint32(v), func(u, w uint32) {
			if owner[u] != owner[v] {
				cut += int64(w)
			}
		})
	}
	return cut / 2
}

// A coarse graph has the weight of its fine graph. Its clusters do not exceed the limit unless
// they are one vertex. A partition of it cuts as much as its projection.
func TestContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _, _ := drawnLevel(t)
		most := weight{uint32(rapid.IntRange(1, 20).Draw(t, "most")), 50, 10}
		next := g.contract(newClustering(g, most, rapid.Uint64().Draw(t, "seed")).run())
		if g.total() != next.total() {
			t.Errorf("weights %v become %v", g.total(), next.total())
		}
		count := make([]int, next.n())
		for _, c := range g.cluster {
			count[c]++
		}
		for c, w := range next.weight {
			if count[c] == 0 || count[c] > 1 && !w.within(most) {
				t.Errorf("a cluster of %d vertices weighs %v of %v", count[c], w, most)
			}
		}
		owner := make([]uint32, next.n())
		for c := range owner {
			owner[c] = uint32(c % 3)
		}
		if fine, coarse := cutOf(g, g.project(owner)), cutOf(next, owner); fine != coarse {
			t.Errorf("%d edges cut, %d in the smaller graph", fine, coarse)
		}
	})
}

// Leaves of one hub are paired although their cluster is full, and so are vertices without
// edges.
func TestPairing(t *testing.T) {
	for name, edges := range map[string]pairs{"star": star(1000), "no edges": nil} {
		g := finest(dataset(1000, false, edges))
		next := g.contract(newClustering(g, weight{10, 100, 10}, 1).run())
		if next.n() > 300 {
			t.Errorf("%s: %d of 1000 vertices are left", name, next.n())
		}
	}
}

// After moves, the table of gains and the loads equal recomputed ones.
func TestMovesKeepGains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, owner, limits := drawnLevel(t)
		r := newRefiner(g, owner, limits)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 50 {
			r.move(uint32(rng.IntN(g.n())), uint32(rng.IntN(len(limits))))
		}
		fresh := newRefiner(g, owner, limits)
		if !slices.Equal(r.parts, fresh.parts) {
			t.Errorf("loads %v, expected %v", r.parts, fresh.parts)
		}
		for v := range uint32(g.n()) {
			for p := range uint32(len(limits)) {
				if got, want := r.gains.connection(v, p), fresh.gains.connection(v, p); got != want {
					t.Fatalf("vertex %d is connected to part %d by %d, expected %d", v, p, got, want)
				}
			}
		}
		if got, want := r.cut(), cutOf(g, owner); got != want {
			t.Errorf("cut %d, expected %d", got, want)
		}
	})
}

// lowers fails unless rounds lower the cut by the returned amount, never raise the excess, and
// return 0 at the end.
func lowers(t rapid.TB, g *level, owner []uint32, limits []weights) {
	r := newRefiner(g, owner, limits)
	for {
		cut, excess := cutOf(g, owner), r.totalExcess()
		gain := r.round()
		if now := cutOf(g, owner); now != cut-gain || gain < 0 {
			t.Fatalf("cut %d becomes %d, said to gain %d", cut, now, gain)
		}
		if r.totalExcess() > excess+1e-9 {
			t.Fatalf("excess %g becomes %g", excess, r.totalExcess())
		}
		if gain == 0 {
			return
		}
	}
}

func TestRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, owner, limits := drawnLevel(t)
		lowers(t, g, owner, limits)
	})
}

// A self loop, which is dropped, does not count as connection of a vertex to its part.
func TestRoundOfSelfLoop(t *testing.T) {
	g := finest(dataset(6, false, pairs{{0, 0}, {0, 1}, {0, 2}}))
	lowers(t, g, []uint32{0, 1, 1, 0, 0, 0}, standard.limits(g, 3))
}

// The heap is a sorted list of its entries.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap
		var list []entry
		for i, gain := range rapid.SliceOf(rapid.Int64Range(-3, 3)).Draw(t, "gains") {
			h.push(entry{gain, uint32(i)})
			list = append(list, entry{gain, uint32(i)})
		}
		slices.SortFunc(list, func(a, b entry) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for _, want := range list {
			if got := h.pop(); got != want {
				t.Fatalf("%v, expected %v", got, want)
			}
		}
	})
}

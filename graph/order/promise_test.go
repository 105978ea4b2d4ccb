package order

import (
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
)

// planted is n vertices of the given degree whose edges, in one direction, lead to
// vertices of their community, numbered at random.
func planted(n, degree, community int) graph.CSR {
	r := rand.New(rand.NewPCG(1, 2))
	name := r.Perm(n)
	g := graph.CSR{Offsets: make([]int64, n+1), Cols: make([]uint32, n*degree)}
	at := make([]int, n) // the place of each name
	for i, v := range name {
		at[v] = i
	}
	for v := range n {
		row := g.Cols[v*degree : (v+1)*degree]
		for k := range row {
			row[k] = uint32(name[at[v]/community*community+r.IntN(community)])
		}
		slices.Sort(row)
		g.Offsets[v+1] = int64((v + 1) * degree)
	}
	return g
}

// Neighbourhoods promise much where communities fit into the cache, and nothing where
// edges lead anywhere. The bounds are far from what 196,608 edges in each of eight
// samples leave to chance; auto's own answers are the judges.
func TestPromise(t *testing.T) {
	const n = 1 << 16
	for _, tc := range []struct {
		community   int
		least, most float64
		order       string
	}{{256, 0, 0.2, "lp"}, {n, worth, 1.01, "natural"}} {
		g := planted(n, 24, tc.community)
		if p := promise(g, sampleEdges); p < tc.least || p > tc.most {
			t.Errorf("communities of %d vertices: promise %.3f", tc.community, p)
		}
		if c := New("auto", g); (c.Name == "natural") != (tc.order == "natural") {
			t.Errorf("communities of %d vertices: auto takes %s", tc.community, c.Name)
		}
	}
	if Promising(planted(64, 3, 8)) {
		t.Error("an order is sought where all rows fit into the cache")
	}
}

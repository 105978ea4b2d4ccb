package order

import (
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
)

// planted returns a directed graph of n vertices with the given degree. All edges of a vertex come
// from its own community. Vertices are numbered randomly.
func planted(n, degree, community int) graph.CSR {
	r := rand.New(rand.NewPCG(1, 2))
	name := r.Perm(n)
	g := graph.CSR{Offsets: make([]int64, n+1), Cols: make([]uint32, n*degree)}
	at := make([]int, n) // index in name of each vertex
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

// The ratio of misses in samples is low if communities fit into the cache, and about 1 in a random
// graph. With eight samples of 196,608 edges, the random deviation is far smaller than the distance
// to the bounds. The order that auto selects must agree with the ratio.
func TestPromise(t *testing.T) {
	const n = 1 << 16
	for _, tc := range []struct {
		community   int
		least, most float64
		order       string
	}{{256, 0, 0.2, "lp"}, {n, maxMissRatio, 1.01, "natural"}} {
		g := planted(n, 24, tc.community)
		if p := sampleMissRatio(g, sampleEdges); p < tc.least || p > tc.most {
			t.Errorf("communities of %d vertices: ratio of misses %.3f", tc.community, p)
		}
		if c := New("auto", g); (c.Name == "natural") != (tc.order == "natural") {
			t.Errorf("communities of %d vertices: auto selects %s", tc.community, c.Name)
		}
	}
	if Promising(planted(64, 3, 8)) {
		t.Error("Promising returns true although all rows fit into the cache")
	}
}

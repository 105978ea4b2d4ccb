package order

import (
	"math"
	"math/rand/v2"
	"testing"

	"siafu/graph"
)

// A sample of the edges estimates the misses of all edges. Here the sources of the first half of the
// rows are close to the row, and the sources of the other half are random.
func TestSampledMisses(t *testing.T) {
	const n, degree, reach = 1 << 17, 16, 200
	r := rand.New(rand.NewPCG(3, 4))
	g := graph.CSR{Offsets: make([]int64, n+1), Cols: make([]uint32, n*degree)}
	reversed := make([]uint32, n)
	for v := range n {
		g.Offsets[v+1] = int64((v + 1) * degree)
		reversed[v] = uint32(n - 1 - v)
		for k := range degree {
			u := r.IntN(n)
			if v < n/2 {
				u = v + r.IntN(reach)
			}
			g.Cols[v*degree+k] = uint32(u)
		}
	}
	for name, vertices := range map[string][]uint32{"natural": nil, "reversed": reversed} {
		all, sample := Misses(g, vertices), sampledMisses(g, vertices, 8, n*degree/32)
		// Rows that are in the cache before a sampled part enter it once: 200 rows of 65,536 edges.
		if all < 0.5 || all > 0.54 || math.Abs(sample-all) > 0.01 {
			t.Errorf("%s: %.4f misses in a sample, %.4f in all edges", name, sample, all)
		}
	}
	if m := sampledMisses(graph.CSR{Offsets: []int64{0, 0}}, nil, 8, 1); m != 0 {
		t.Errorf("%v misses without edges", m)
	}
}

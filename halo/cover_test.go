package halo

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/graph/importers"
	"siafu/internal/testkit/realdata"
)

// randomBlock returns a block with random edges; with skew, low numbers are more frequent.
func randomBlock(rng *rand.Rand, sources, dests, edges int, skew bool) bipartite {
	draw := func(n int) int {
		if skew {
			n = 1 + rng.IntN(n)
		}
		return rng.IntN(n)
	}
	lists := make([][]uint32, sources)
	for range min(edges, edges*sources) {
		u := draw(sources)
		lists[u] = append(lists[u], uint32(draw(dests)))
	}
	b := bipartite{Dests: dests, Offsets: []int64{3}, Cols: []uint32{9, 9, 9}} // a part of something larger
	for _, list := range lists {
		b.Cols = append(b.Cols, list...)
		b.Offsets = append(b.Offsets, int64(len(b.Cols)))
	}
	return b
}

// leastCover returns the size of a minimum cover, by trying every set of sources.
func leastCover(b bipartite) int {
	best := b.Dests + b.Sources()
	for set := range 1 << b.Sources() {
		dests := uint64(0)
		for u := range b.Sources() {
			if set>>u&1 == 0 {
				for _, d := range b.Cols[b.Offsets[u]:b.Offsets[u+1]] {
					dests |= 1 << d
				}
			}
		}
		best = min(best, bits.OnesCount(uint(set))+bits.OnesCount64(dests))
	}
	return best
}

// coverEnds tests that c is a cover, and counts the sources and the destinations
// with edges.
func coverEnds(t testing.TB, b bipartite, c vertexCover) (sources, dests int) {
	t.Helper()
	ends := make([]bool, b.Dests)
	for u := range b.Sources() {
		edges := b.Cols[b.Offsets[u]:b.Offsets[u+1]]
		sources += min(len(edges), 1)
		for _, d := range edges {
			ends[d] = true
			if !c.Sources[u] && !c.Dests[d] {
				t.Fatalf("edge %d → %d is not covered", u, d)
			}
		}
	}
	in := func(set []bool) (n int) {
		for _, has := range set {
			if has {
				n++
			}
		}
		return n
	}
	if size := in(c.Sources) + in(c.Dests); size != c.Size || size < c.Least {
		t.Fatalf("%d vertices where %d are said; at least %d", size, c.Size, c.Least)
	}
	return sources, in(ends)
}

// checkCover tests the guarantees of a cover found in the given number of phases.
func checkCover(t testing.TB, b bipartite, c vertexCover, phases int) {
	t.Helper()
	size := c.Size
	if sources, dests := coverEnds(t, b, c); size > min(sources, dests) {
		t.Fatalf("%d vertices cover %d sources and %d destinations", size, sources, dests)
	}
	if phases == 0 && size != c.Least {
		t.Fatalf("%d vertices cover where %d edges share no end", size, c.Least)
	}
	if phases > 0 && size*phases > c.Least*(phases+1) {
		t.Fatalf("%d vertices after %d phases, a matching has %d", size, phases, c.Least)
	}
}

// A cover covers all edges, is minimum with all phases, and is deterministic.
func TestCoversOfSmallBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		b := randomBlock(rng, rng.IntN(11), 1+rng.IntN(10), rng.IntN(30), i%2 == 0)
		want := leastCover(b)
		for most := range 11 {
			c := findCover(b, 0, most)
			if coverEnds(t, b, c); c.Size != want && want <= most || c.Size < want {
				t.Fatalf("%d vertices where %d would do; at most %d are of use", c.Size, want, most)
			}
		}
		for phases := range 4 {
			c := findCover(b, phases, b.Dests)
			checkCover(t, b, c, phases)
			if phases == 0 && c.Size != want || c.Least > want {
				t.Fatalf("%d vertices, at least %d; the minimum is %d", c.Size, c.Least, want)
			}
		}
	}
}

// The bound on the cost of a shortened search holds where it is tight.
func TestBoundOnPhases(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, skew := range []bool{false, true} {
		for _, edges := range []int{2000, 5000, 20000} {
			b := randomBlock(rng, 2000, 2000, edges, skew)
			for _, phases := range []int{1, 2, 3, 5, 8, 0} {
				checkCover(t, b, findCover(b, phases, b.Dests), phases)
			}
		}
	}
}

// Of all minimum covers, findCover returns the one with the most sources: they need no sum.
func TestCoverPrefersSources(t *testing.T) {
	b := bipartite{Dests: 2, Offsets: []int64{0, 1, 2}, Cols: []uint32{0, 1}}
	if c := findCover(b, 0, 2); !slices.Equal(c.Sources, []bool{true, true}) || c.Size != 2 {
		t.Errorf("%+v", c)
	}
}

// realBlock returns the edges of a real graph from one half to the other.
func realBlock(t testing.TB, name string) bipartite {
	t.Helper()
	dst := filepath.Join(t.TempDir(), name)
	if _, err := importers.Import("raw", importers.Options{Src: realdata.Dir(t, name), Dst: dst}); err != nil {
		t.Fatal(err)
	}
	ds, err := graph.Open(dst)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	half := func(v uint32) uint32 { return v * 0x9e3779b1 >> 31 }
	b := bipartite{Dests: int(ds.Meta.Vertices), Offsets: []int64{0}}
	for v := range uint32(ds.Meta.Vertices) {
		if half(v) == 0 {
			continue
		}
		for _, u := range ds.In.Cols[ds.In.Offsets[v]:ds.In.Offsets[v+1]] {
			if half(u) == 0 {
				b.Cols = append(b.Cols, u)
			}
		}
		b.Offsets = append(b.Offsets, int64(len(b.Cols)))
	}
	return b
}

// On real blocks few phases come within 5 % of the minimum (3 % was seen).
func TestCoversOfRealBlocks(t *testing.T) {
	for _, name := range []string{"cora", "coauthor-cs", "tolokers"} {
		t.Run(name, func(t *testing.T) {
			b := realBlock(t, name)
			exact := findCover(b, 0, b.Dests)
			checkCover(t, b, exact, 0)
			c := findCover(b, 8, b.Dests)
			checkCover(t, b, c, 8)
			if float64(c.Size) > 1.05*float64(exact.Size) {
				t.Errorf("8 phases give %d vertices, the minimum is %d", c.Size, exact.Size)
			}
		})
	}
}

func BenchmarkFindCover(b *testing.B) {
	for _, phases := range []int{0, 4} {
		for _, edges := range []int{1 << 17, 1 << 20} {
			for _, skew := range []bool{false, true} {
				block := randomBlock(rand.New(rand.NewPCG(5, 6)), 50000, 50000, edges, skew)
				b.Run(fmt.Sprintf("edges=%d skew=%t phases=%d", edges, skew, phases), func(b *testing.B) {
					for b.Loop() {
						findCover(block, phases, block.Dests)
					}
					b.ReportMetric(float64(edges)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
				})
			}
		}
	}
}

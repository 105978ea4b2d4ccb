package order_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"siafu/graph"
	"siafu/graph/order"
	"siafu/internal/fault"
)

// made contains all orders except the natural order.
var made = []string{"lp", "rabbit"}

// rows returns a CSR of n vertices. edges contains pairs of source and destination.
func rows(n int, directed bool, edges ...[2]int) graph.CSR {
	lists := make([][]uint32, n)
	for _, e := range edges {
		if e[0] == e[1] {
			continue
		}
		lists[e[1]] = append(lists[e[1]], uint32(e[0]))
		if !directed {
			lists[e[0]] = append(lists[e[0]], uint32(e[1]))
		}
	}
	c := graph.CSR{Offsets: []int64{0}}
	for _, l := range lists {
		slices.Sort(l)
		c.Cols = append(c.Cols, slices.Compact(l)...)
		c.Offsets = append(c.Offsets, int64(len(c.Cols)))
	}
	return c
}

// star returns a star of n vertices with centre 3.
func star(n int, directed bool) graph.CSR {
	var edges [][2]int
	for v := range n {
		edges = append(edges, [2]int{v, 3})
	}
	return rows(n, directed, edges...)
}

// isPermutation reports whether p contains each of 0..n-1 once.
func isPermutation(p []uint32, n int) bool {
	sorted := slices.Sorted(slices.Values(p))
	for i, v := range sorted {
		if int(v) != i {
			return false
		}
	}
	return len(p) == n
}

func TestShapes(t *testing.T) {
	for name, g := range map[string]graph.CSR{
		"nothing": {}, "no vertices": rows(0, false), "one": rows(1, false), "isolated": rows(9, false),
		"star": star(20, false), "star inwards": star(20, true),
		"path":    rows(5, false, [2]int{0, 3}, [2]int{3, 1}, [2]int{1, 4}),
		"one way": rows(6, true, [2]int{0, 5}, [2]int{5, 2}, [2]int{2, 0}, [2]int{4, 0}),
	} {
		for _, by := range made {
			if c := order.New(by, g); c.Name != by || !isPermutation(c.Vertices, g.Rows()) {
				t.Errorf("%s by %s: %+v", name, by, c)
			}
		}
		if c := order.New("auto", g); c.Name != "natural" || c.Vertices != nil {
			t.Errorf("%s by auto: %+v; nothing is gained where all rows fit into the cache", name, c)
		}
	}
}

// Orders of small graphs have the documented properties.
func TestMeaning(t *testing.T) {
	cliques := rows(6, false, [2]int{0, 2}, [2]int{2, 4}, [2]int{4, 0}, [2]int{1, 3}, [2]int{3, 5}, [2]int{5, 1}, [2]int{0, 1})
	for _, c := range []struct {
		by   string
		g    graph.CSR
		want []uint32
	}{
		{"lp", cliques, []uint32{0, 2, 4, 1, 3, 5}},
	} {
		if got := order.New(c.by, c.g).Vertices; !slices.Equal(got, c.want) {
			t.Errorf("%s is %v, expected %v", c.by, got, c.want)
		}
	}
	p := order.New("rabbit", cliques).Vertices
	for i, v := range p {
		if v%2 != p[i/3*3]%2 {
			t.Errorf("rabbit mixes two cliques: %v", p)
		}
	}
}

func TestProperties(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "vertices")
		id := rapid.IntRange(0, n-1)
		edges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int {
			return [2]int{id.Draw(t, "src"), id.Draw(t, "dst")}
		}), 0, 4*n).Draw(t, "edges")
		g := rows(n, rapid.Bool().Draw(t, "directed"), edges...)
		for _, by := range made {
			runtime.GOMAXPROCS(1)
			one := order.New(by, g)
			runtime.GOMAXPROCS(3)
			three := order.New(by, g)
			if !isPermutation(one.Vertices, n) {
				t.Fatalf("%s: %v is no permutation", by, one.Vertices)
			}
			if !slices.Equal(one.Vertices, three.Vertices) || one.Misses != three.Misses {
				t.Fatalf("%s depends on the number of processors", by)
			}
		}
	})
}

// communities returns a graph of k communities of size vertices, each vertex with 12
// edges inside and 2 to anywhere, numbered by number.
func communities(k, size int, number []int) graph.CSR {
	rng := rand.New(rand.NewPCG(3, 4))
	n := k * size
	var edges [][2]int
	for v := range n {
		for i := range 14 {
			u := v/size*size + rng.IntN(size)
			if i >= 12 {
				u = rng.IntN(n)
			}
			edges = append(edges, [2]int{number[u], number[v]})
		}
	}
	return rows(n, false, edges...)
}

// If communities are numbered randomly, auto finds an order with about as few estimated misses as
// the order in which communities are consecutive. auto keeps the natural order if communities are
// already consecutive, or if there are none.
func TestLocalityIsRestored(t *testing.T) {
	const k, size = 100, 200
	sorted := rand.New(rand.NewPCG(1, 1)).Perm(k * size)
	shuffled := communities(k, size, sorted)
	slices.Sort(sorted)
	good := communities(k, size, sorted)
	ideal := order.Misses(good, nil)
	if c := order.New("auto", shuffled); c.Name == "natural" || c.NaturalMisses < 0.8 || c.Misses > 1.15*ideal {
		t.Errorf("auto: %s with %.3f misses of %.3f, ideally %.3f", c.Name, c.Misses, c.NaturalMisses, ideal)
	}
	for by, most := range map[string]float64{"lp": 1.15, "rabbit": 1.2} {
		if c := order.New(by, shuffled); c.Misses > most*ideal {
			t.Errorf("%s: %.3f misses, ideally %.3f", by, c.Misses, ideal)
		}
	}
	if c := order.New("auto", good); c.Name != "natural" || c.Misses != ideal || c.NaturalMisses != ideal {
		t.Errorf("auto moved vertices that lie well: %s, %.3f of %.3f misses", c.Name, c.Misses, ideal)
	}
}

// Misses equals a simulation with a queue of 3072 rows.
func TestMisses(t *testing.T) {
	number := rand.New(rand.NewPCG(5, 5)).Perm(20 * 500)
	g := communities(20, 500, number)
	for _, by := range []string{"natural", "rabbit", "lp"} {
		c := order.New(by, g)
		var queue []uint32
		in, misses := map[uint32]bool{}, 0
		for i := range g.Rows() {
			v := i
			if c.Vertices != nil {
				v = int(c.Vertices[i])
			}
			for _, u := range g.Row(v) {
				if in[u] {
					continue
				}
				misses++
				in[u] = true
				if queue = append(queue, u); len(queue) > 3072 {
					delete(in, queue[0])
					queue = queue[1:]
				}
			}
		}
		if want := float64(misses) / float64(len(g.Cols)); c.Misses != want {
			t.Errorf("%s: %v, expected %v", by, c.Misses, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, name := range []string{"auto", "natural", "lp", "rabbit"} {
		if err := order.Check(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "Lp", "auto, natural", "rcm"} {
		if err := order.Check(name); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "rabbit") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

package multilevel

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"siafu/graph"
)

// pairs are edges in the given direction.
type pairs [][2]uint32

// dataset returns a graph in memory, without self loops as every dataset; every third
// vertex is trained on.
func dataset(n int, directed bool, edges pairs) *graph.Dataset {
	edges = slices.DeleteFunc(slices.Clone(edges), func(e [2]uint32) bool { return e[0] == e[1] })
	rows := make([][]uint32, n)
	for _, e := range edges {
		rows[e[1]] = append(rows[e[1]], e[0])
		if !directed {
			rows[e[0]] = append(rows[e[0]], e[1])
		}
	}
	ds := &graph.Dataset{Meta: &graph.Meta{Directed: directed}, In: csr(rows), Split: make([]uint8, n)}
	ds.Out = ds.In
	if directed {
		back := make([][]uint32, n)
		for _, e := range edges {
			back[e[0]] = append(back[e[0]], e[1])
		}
		ds.Out = csr(back)
	}
	for v := 0; v < n; v += 3 {
		ds.Split[v] = graph.SplitTrain
	}
	return ds
}

func csr(rows [][]uint32) graph.CSR {
	c := graph.CSR{Offsets: []int64{0}}
	for _, row := range rows {
		slices.Sort(row)
		c.Cols = append(c.Cols, slices.Compact(row)...)
		c.Offsets = append(c.Offsets, int64(len(c.Cols)))
	}
	return c
}

var standard = Slack{Vertices: 1.05, Edges: 1.05, Train: 1.10}

// result has the values that tests check, counted from the dataset itself.
type result struct {
	parts []weights
	most  weights // of a part
	cut   int     // directed edges
	hub   int64   // the most edges into one vertex
}

func measure(ds *graph.Dataset, owner []uint32, parts int, s Slack) result {
	r := result{parts: make([]weights, parts)}
	var total weights
	for v, p := range owner {
		in := ds.In.Row(v)
		w := weights{1, int64(len(in)), 0}
		if ds.Split[v] == graph.SplitTrain {
			w[2] = 1
		}
		for i := range w {
			r.parts[p][i] += w[i]
			total[i] += w[i]
		}
		r.hub = max(r.hub, w[1])
		for _, u := range in {
			if owner[u] != p {
				r.cut++
			}
		}
	}
	for i, x := range []float64{s.Vertices, s.Edges, s.Train} {
		r.most[i] = int64(math.Ceil(x * float64(total[i]) / float64(parts)))
	}
	return r
}

// balanced fails if a part exceeds its limit, for edges by more than one vertex's edges.
func (r result) balanced(t interface{ Errorf(string, ...any) }) {
	for p, w := range r.parts {
		if w[0] > r.most[0] || w[1] > r.most[1]+r.hub || w[2] > r.most[2] {
			t.Errorf("part %d has %v, limits %v, hub %d", p, w, r.most, r.hub)
		}
	}
}

func path(n int) (edges pairs) {
	for v := range uint32(n - 1) {
		edges = append(edges, [2]uint32{v, v + 1})
	}
	return edges
}

func star(n int) (edges pairs) {
	for v := uint32(1); v < uint32(n); v++ {
		edges = append(edges, [2]uint32{v, 0})
	}
	return edges
}

// ring returns a ring of cliques, each with an edge to the next. Vertex v is in clique v mod the
// number of cliques.
func ring(cliques, size int) (edges pairs) {
	at := func(clique, i int) uint32 { return uint32(i*cliques + clique%cliques) }
	for c := range cliques {
		for i := range size {
			for j := range i {
				edges = append(edges, [2]uint32{at(c, i), at(c, j)})
			}
		}
		edges = append(edges, [2]uint32{at(c, 0), at(c+1, 1)})
	}
	return edges
}

func grid(side int) (edges pairs) {
	for v := range uint32(side * side) {
		if v%uint32(side) > 0 {
			edges = append(edges, [2]uint32{v - 1, v})
		}
		if v >= uint32(side) {
			edges = append(edges, [2]uint32{v - uint32(side), v})
		}
	}
	return edges
}

func TestPartitionOfKnownGraphs(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		directed bool
		edges    pairs
		parts    int
		cut      int // directed edges, at most
	}{
		{"one vertex", 1, false, nil, 1, 0},
		{"no edges", 5000, false, nil, 7, 0},
		{"a part a vertex", 9, false, path(9), 9, 16},
		{"path", 5000, false, path(5000), 4, 2 * 3},
		{"directed path", 5000, true, path(5000), 4, 3},
		{"grid", 2500, false, grid(50), 4, 2 * 110}, // two straight cuts are 100
		{"star", 20000, false, star(20000), 4, 2 * 15500},
		{"star of parts", 20000, true, star(20000), 4, 15500},
		{"ring of cliques", 16 * 12, false, ring(16, 12), 4, 2 * 4},
		{"large ring of cliques", 64 * 30, false, ring(64, 30), 8, 2 * 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds := dataset(c.n, c.directed, c.edges)
			r := measure(ds, Partition(ds, Options{Parts: c.parts, Seed: 1, Slack: standard}), c.parts, standard)
			r.balanced(t)
			if r.cut > c.cut {
				t.Errorf("%d edges cut, expected at most %d; parts %v", r.cut, c.cut, r.parts)
			}
		})
	}
}

// drawn returns a random small graph.
func drawn(t *rapid.T) *graph.Dataset {
	n := rapid.IntRange(1, 300).Draw(t, "n")
	vertex := rapid.Custom(func(t *rapid.T) uint32 {
		// Half of the ends are among the first: hubs.
		if rapid.Bool().Draw(t, "hub") {
			return uint32(rapid.IntRange(0, min(n-1, 5)).Draw(t, "v"))
		}
		return uint32(rapid.IntRange(0, n-1).Draw(t, "v"))
	})
	edge := rapid.Custom(func(t *rapid.T) [2]uint32 { return [2]uint32{vertex.Draw(t, "a"), vertex.Draw(t, "b")} })
	edges := rapid.SliceOfN(edge, 0, 4*n).Draw(t, "edges")
	return dataset(n, rapid.Bool().Draw(t, "directed"), edges)
}

// Every vertex gets a part, and limits are respected, for any graph.
func TestPartitionOfAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := drawn(t)
		parts := rapid.IntRange(1, min(ds.In.Rows(), 20)).Draw(t, "parts")
		owner := Partition(ds, Options{Parts: parts, Seed: rapid.Uint64().Draw(t, "seed"), Slack: standard})
		if len(owner) != ds.In.Rows() || int(slices.Max(owner)) >= parts {
			t.Fatalf("%d owners up to %d of %d parts", len(owner), slices.Max(owner), parts)
		}
		measure(ds, owner, parts, standard).balanced(t)
	})
}

// The result depends only on the graph and the options.
func TestPartitionIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	ds := dataset(64*30, false, append(ring(64, 30), star(1000)...))
	o := Options{Parts: 5, Seed: 7, Slack: standard}
	var owners [][]uint32
	for _, workers := range []int{1, 4, 1} {
		runtime.GOMAXPROCS(workers)
		owners = append(owners, Partition(ds, o))
	}
	if !slices.Equal(owners[0], owners[1]) || !slices.Equal(owners[0], owners[2]) {
		t.Error("1 and 4 workers differ")
	}
}

// A clique and a path with the same number of vertices are separated at the edge between them
// if only vertices are balanced, and far from it if edges are.
func TestUnboundedSlack(t *testing.T) {
	edges := ring(1, 100)
	for v := range uint32(100) {
		edges = append(edges, [2]uint32{99 + v, 100 + v})
	}
	ds := dataset(200, false, edges)
	for _, c := range []struct {
		slack       Slack
		least, most int
	}{
		{Slack{Vertices: 1.05, Edges: math.Inf(1), Train: math.Inf(1)}, 2, 2},
		{standard, 1000, 9900},
	} {
		r := measure(ds, Partition(ds, Options{Parts: 2, Seed: 1, Slack: c.slack}), 2, standard)
		if r.cut < c.least || r.cut > c.most {
			t.Errorf("%+v: %d edges cut", c.slack, r.cut)
		}
	}
}

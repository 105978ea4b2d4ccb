package multilevel

import (
	"math"
	"runtime"

	"siafu/graph"
)

// What is balanced: vertices, edges into them, and training vertices.
type (
	weight  [3]uint32 // of one vertex of a level
	weights [3]int64  // of a part
)

const (
	// maxWeight is the maximum weight of a coarse vertex, so that the weight of an edge between
	// two fits into 32 bits. With hubs of 2³¹ neighbours it may overflow; the cut is then larger.
	maxWeight = 1 << 31
	boundless = math.MaxInt64 / 4
)

func (w weight) plus(x weight) weight { return weight{w[0] + x[0], w[1] + x[1], w[2] + x[2]} }

func (w weight) minus(x weight) weight { return weight{w[0] - x[0], w[1] - x[1], w[2] - x[2]} }

func (w weight) within(most weight) bool {
	return w[0] <= most[0] && w[1] <= most[1] && w[2] <= most[2]
}

func (w weights) plus(x weight) weights {
	return weights{w[0] + int64(x[0]), w[1] + int64(x[1]), w[2] + int64(x[2])}
}

func (w weights) minus(x weight) weights {
	return weights{w[0] - int64(x[0]), w[1] - int64(x[1]), w[2] - int64(x[2])}
}

func (w weights) within(most weights) bool {
	return w[0] <= most[0] && w[1] <= most[1] && w[2] <= most[2]
}

// level is one graph of the hierarchy: the dataset's own graph, or a graph of clusters of the
// preceding level. No vertex is its own neighbour: datasets drop such edges, and contract drops
// edges within a cluster.
type level struct {
	in, out graph.CSR // out is empty if in has every neighbour
	edges   []uint32  // weights of the edges of in; nil: 1 each
	weight  []weight  // [n] of vertices
	cluster []uint32  // [n] vertices of the next level; nil in the last
}

// finest returns the level of the dataset itself.
func finest(ds *graph.Dataset) *level {
	g := &level{in: ds.In, weight: make([]weight, ds.In.Rows())}
	if ds.Meta.Directed {
		g.out = ds.Out
	}
	for v := range g.weight {
		g.weight[v] = weight{1, uint32(ds.In.Offsets[v+1] - ds.In.Offsets[v]), 0}
		if ds.Split[v] == graph.SplitTrain {
			g.weight[v][2] = 1
		}
	}
	return g
}

func (g *level) n() int { return len(g.weight) }

func (g *level) total() weights {
	var sum weights
	for _, w := range g.weight {
		sum = sum.plus(w)
	}
	return sum
}

// links returns the edges between v and its neighbours: two lists, each with a neighbour and a
// weight per edge; nil weights mean 1.
func (g *level) links(v uint32) (in, inWeights, out []uint32) {
	lo, hi := g.in.Offsets[v], g.in.Offsets[v+1]
	in = g.in.Cols[lo:hi]
	if g.edges != nil {
		inWeights = g.edges[lo:hi]
	}
	if g.out.Rows() > 0 {
		out = g.out.Row(int(v))
	}
	return in, inWeights, out
}

// each visits the neighbours of v, twice if edges go in both directions.
func (g *level) each(v uint32, visit func(u, w uint32)) {
	in, weights, out := g.links(v)
	for i, u := range in {
		w := uint32(1)
		if weights != nil {
			w = weights[i]
		}
		visit(u, w)
	}
	for _, u := range out {
		visit(u, 1)
	}
}

// project gives each vertex the owner of the cluster that it is in.
func (g *level) project(owner []uint32) []uint32 {
	fine := make([]uint32, g.n())
	for v, c := range g.cluster {
		fine[v] = owner[c]
	}
	return fine
}

// tally sums edge weights by the labels of neighbours. Between two vertices it is zero, except
// for labels in used.
type tally struct {
	sum  []uint32
	used []uint32
}

// tallies returns one per worker. They must not use more memory than the graph, for any number
// of processors.
func (g *level) tallies(labels int) []tally {
	t := make([]tally, min(runtime.GOMAXPROCS(0), 1+len(g.in.Cols)/max(g.n(), 1)))
	for i := range t {
		t[i].sum = make([]uint32, labels)
	}
	return t
}

// count adds the neighbours of v.
func (t *tally) count(g *level, v uint32, label []uint32) {
	in, weights, out := g.links(v)
	if weights == nil {
		t.addOnes(label, in)
	} else {
		t.add(label, in, weights)
	}
	t.addOnes(label, out)
}

func (t *tally) add(label, vertices, weights []uint32) {
	sum, used := t.sum, t.used
	for i, u := range vertices {
		l := label[u]
		if sum[l] == 0 {
			used = append(used, l)
		}
		sum[l] += weights[i]
	}
	t.used = used
}

func (t *tally) addOnes(label, vertices []uint32) {
	sum, used := t.sum, t.used
	for _, u := range vertices {
		l := label[u]
		if sum[l] == 0 {
			used = append(used, l)
		}
		sum[l]++
	}
	t.used = used
}

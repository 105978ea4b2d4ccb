package multilevel

import (
	"math"
	"runtime"

	"siafu/graph"
)

// The balanced weights, in this order: number of vertices, of edges into them, and of training
// vertices.
type (
	weight  [3]uint32 // of one vertex of a level, or of a cluster
	weights [3]int64  // of a part, or of a whole graph
)

const (
	// maxWeight is the maximum weight of a coarse vertex. The weight of an edge between two coarse
	// vertices then fits into 32 bits. With hubs of 2³¹ neighbours it may overflow. The partition
	// remains valid, but its cut is larger.
	maxWeight = 1 << 31
	boundless = math.MaxInt64 / 4 // limit of a weight that is not balanced
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

// level is one graph of the hierarchy. The first level is the dataset's graph. In each other level,
// a vertex is a cluster of the preceding level. There are no self loops: datasets contain none, and
// contract drops edges within a cluster.
type level struct {
	in, out graph.CSR // out is empty if in contains every edge in both directions
	edges   []uint32  // weights of the edges of in; nil: all weights are 1
	weight  []weight  // [n] weight of each vertex
	cluster []uint32  // [n] the next level's vertex for each vertex; nil in the last level
}

// finest returns the first level: the graph of the dataset, without a copy of its edges.
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

// links returns the neighbours of v. in has the neighbours with edges into v, and inWeights the
// weights of these edges, or nil if all are 1. out has the neighbours with edges from v, of weight
// 1, if the level stores them separately.
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

// eachNeighbour calls visit for each neighbour u of v with the weight of the edge. In a directed
// graph, it calls visit twice for a neighbour with edges in both directions.
func (g *level) eachNeighbour(v uint32, visit func(u, w uint32)) {
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

// project returns the owner of each vertex of g, given the owners of the next level's vertices.
func (g *level) project(owner []uint32) []uint32 {
	fine := make([]uint32, g.n())
	for v, c := range g.cluster {
		fine[v] = owner[c]
	}
	return fine
}

// tally adds up the weights of a vertex's edges by the label of the neighbour. The user of a
// result must set its sums to zero again before the next count.
type tally struct {
	sum  []uint32 // [labels]
	used []uint32 // labels with a sum that is not zero
}

// tallies returns a tally for each worker. The number of workers is limited, so that the tallies
// do not use more memory than the graph on any number of processors.
func (g *level) tallies(labels int) []tally {
	t := make([]tally, min(runtime.GOMAXPROCS(0), 1+len(g.in.Cols)/max(g.n(), 1)))
	for i := range t {
		t[i].sum = make([]uint32, labels)
	}
	return t
}

// count adds the edges of v to t. label contains the label of each vertex.
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

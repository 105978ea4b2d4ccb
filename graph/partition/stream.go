package partition

import (
	"math"

	"siafu/graph"
)

var ldgMethod = method{
	entry: entry{Name: "ldg",
		Help: "as `fennel`, weighting neighbours by the free capacity. Compare with `fennel` and use the one that cuts less"},
	assign: func(ds *graph.Dataset, o Options) []uint32 {
		return newStream(ds, o, func(mean, _ float64) score { return ldg(mean, o.Slack) }).run()
	},
	passes: true, slack: true,
}

var fennelMethod = method{
	entry: entry{Name: "fennel",
		Help: "streams over vertices; places each where its neighbours are, minus a penalty for full ranks. The default"},
	assign: func(ds *graph.Dataset, o Options) []uint32 { return newStream(ds, o, fennel).run() },
	passes: true, slack: true,
}

// nobody is the owner of a vertex that has not been placed yet.
const nobody = math.MaxUint32

// stream is a streaming partitioner. It places vertices one by one. A rank is attractive for a
// vertex if it has many of the vertex's neighbours, but few vertices and edges. The score is that of
// LDG ("linear deterministic greedy", Stanton and Kliot, KDD 2012) or Fennel (Tsourakakis et al.,
// WSDM 2014). Further passes are restreaming (Nishimura and Ugander, KDD 2013). A pass starts with
// empty ranks. For vertices that it has not placed yet, it uses the owners of the previous pass.
//
// The papers balance only the number of vertices. A rank of hubs would then have more edges and
// delay the other ranks. Here a rank has two fills: its vertices and its edges, both relative to
// the mean over ranks. Placing a vertex of degree d adds one vertex and d edges. The penalty of the
// first grows with the fill of vertices, the penalty of the second with the fill of edges. Hubs
// therefore avoid ranks with many edges, and vertices of low degree fill these ranks.
//
// Design note: vertices are placed in the order of their ids. A random order had the same cut on
// the graphs of docs/partitioning.md, but reads a memory-mapped graph in random order. Another
// variant kept the fills between passes. It cut far more edges on graphs with hubs, because full
// ranks accept no vertices.
type stream struct {
	in, out graph.CSR // out is empty if it would equal in
	score   score
	passes  int

	owner []uint32
	parts []part
	// Means over ranks, and limits of a rank.
	fairVertices, fairEdges float64
	maxVertices, maxEdges   int64
}

// part is the state of a rank during a pass.
type part struct {
	vertices, edges int64
	// Vertices and edges relative to the mean over ranks, and the square roots of these ratios.
	fillV, fillE, rootV, rootE float64
	neighbours                 int64 // of the vertex being placed
}

// score returns the score of a part for a vertex of the given degree, which has the given number of
// neighbours in the part. The vertex is placed in the part with the highest score.
type score func(neighbours float64, b *part, degree float64) float64

// newStream returns a stream. scoring returns its score, given the mean number of in-edges and the
// mean number of neighbours of a vertex.
func newStream(ds *graph.Dataset, o Options, scoring func(mean, meanNeighbours float64) score) *stream {
	n, m := ds.In.Rows(), int64(len(ds.In.Cols))
	s := &stream{in: ds.In, passes: o.Passes, owner: make([]uint32, n), parts: make([]part, o.Parts)}
	neighbours := float64(m)
	if ds.Meta.Directed {
		s.out, neighbours = ds.Out, 2*neighbours
	}
	k := float64(o.Parts)
	s.fairVertices, s.fairEdges = float64(n)/k, max(float64(m)/k, 1)
	s.maxVertices = int64(math.Ceil(o.Slack * s.fairVertices))
	s.maxEdges = int64(math.Ceil(o.Slack * s.fairEdges))
	mean := max(float64(m)/float64(n), 1e-9)
	s.score = scoring(mean, neighbours/float64(n))
	for v := range s.owner {
		s.owner[v] = nobody
	}
	return s
}

// ldg returns the number of neighbours times the remaining capacity of the part, 1 - fill/slack.
// fill is the weighted mean of the fill of vertices, with weight 1, and the fill of edges, with
// weight degree/mean.
func ldg(mean, slack float64) score {
	return func(neighbours float64, b *part, degree float64) float64 {
		r := degree / mean
		return neighbours * (1 - (b.fillV+float64(r*b.fillE))/((1+r)*slack))
	}
}

// fennel returns the number of neighbours minus the marginal cost αγx^(γ-1) of a part with x
// vertices. As in the paper, γ = 3/2 and α = m k^(γ-1) / n^γ for m undirected edges. With x = fill
// n/k, the cost is 3/2 m/n √fill. 2m/n is the mean number of neighbours. Half of the cost depends
// on the fill of vertices, half on the fill of edges.
func fennel(mean, meanNeighbours float64) score {
	half := 0.75 * meanNeighbours / 2
	return func(neighbours float64, b *part, degree float64) float64 {
		return neighbours - float64(half*(b.rootV+b.rootE*degree/mean))
	}
}

func (s *stream) run() []uint32 {
	for range s.passes {
		clear(s.parts)
		for v := range s.owner {
			s.count(v)
			s.place(v, s.best(v))
		}
	}
	s.rebalance()
	return s.owner
}

// count sets the number of neighbours of v in each part. In a directed graph, a neighbour with edges
// in both directions counts twice, because both edges may be cut.
func (s *stream) count(v int) {
	for i := range s.parts {
		s.parts[i].neighbours = 0
	}
	s.countRow(s.in.Row(v))
	if s.out.Rows() > 0 {
		s.countRow(s.out.Row(v))
	}
}

func (s *stream) countRow(row []uint32) {
	for _, u := range row {
		if p := s.owner[u]; p != nobody {
			s.parts[p].neighbours++
		}
	}
}

func (s *stream) degree(v int) int64 { return s.in.Offsets[v+1] - s.in.Offsets[v] }

// place assigns v to part p.
func (s *stream) place(v, p int) {
	s.owner[v] = uint32(p)
	s.load(&s.parts[p], 1, s.degree(v))
}

// load adds vertices and edges to part b, and updates its fills.
func (s *stream) load(b *part, vertices, edges int64) {
	b.vertices += vertices
	b.edges += edges
	b.fillV, b.fillE = float64(b.vertices)/s.fairVertices, float64(b.edges)/s.fairEdges
	b.rootV, b.rootE = math.Sqrt(b.fillV), math.Sqrt(b.fillE)
}

// best returns the part with the highest score for v, among the parts with room for v. Among equal
// scores it returns the part with the lowest sum of fills, and then the first. If no part has room,
// it returns the part that v overfills least.
func (s *stream) best(v int) int {
	degree := s.degree(v)
	best, least := -1, 0
	var high, lowest float64
	for p := range s.parts {
		b := &s.parts[p]
		over := s.overfill(b, degree)
		if p == 0 || over < lowest {
			least, lowest = p, over
		}
		if over > 1 {
			continue
		}
		score := s.score(float64(b.neighbours), b, float64(degree))
		if best < 0 || score > high || score == high && b.fillV+b.fillE < s.parts[best].fillV+s.parts[best].fillE {
			best, high = p, score
		}
	}
	if best < 0 {
		return least
	}
	return best
}

// overfill returns the load of b relative to its limits after a vertex of the given degree is
// added. It is above 1 if b has no room for the vertex.
func (s *stream) overfill(b *part, degree int64) float64 {
	return max(float64(b.vertices+1)/float64(s.maxVertices), float64(b.edges+degree)/float64(s.maxEdges))
}

package partition

import (
	"math"

	"siafu/graph"
)

var ldgMethod = method{
	entry: entry{Name: "ldg", Help: "as `fennel`, weighting neighbours by the free capacity. Compare with `fennel` and use the one that cuts less"},
	assign: func(ds *graph.Dataset, o Options) []uint32 {
		return newStream(ds, o, func(mean, _ float64) score { return ldg(mean, o.Slack) }).run()
	},
	passes: true, slack: true,
}

var fennelMethod = method{
	entry:  entry{Name: "fennel", Help: "streams over vertices; places each where its neighbours are, minus a penalty for full ranks. The default"},
	assign: func(ds *graph.Dataset, o Options) []uint32 { return newStream(ds, o, fennel).run() },
	passes: true, slack: true,
}

// nobody is the owner of a vertex that has not been placed yet.
const nobody = math.MaxUint32

// stream places vertices one by one, on ranks with many of their neighbours and few vertices and
// edges: LDG (Stanton and Kliot, KDD 2012, "linear deterministic greedy") or Fennel (Tsourakakis
// et al., WSDM 2014). Further passes (restreaming, Nishimura and Ugander, KDD 2013) start with
// empty ranks, and use the previous pass's owners for vertices not yet placed.
//
// The papers balance vertices only, but a rank of hubs would delay the others. Here a rank has
// two fills, of vertices and of edges, and placing a vertex costs one vertex at the price of
// the first, and its degree at the price of the second. Thus hubs avoid ranks full of edges,
// and small vertices fill the rest.
//
// Design note: vertices are placed in the order of ids. A seeded random order had the same cut
// on the graphs of docs/partitioning.md, but reads a mapped graph randomly. Keeping the fills
// between passes instead of starting with empty ranks cut far more on graphs with hubs: full
// ranks leave no room to move.
type stream struct {
	in, out graph.CSR // out is empty if it would equal in
	score   score
	passes  int

	owner []uint32
	parts []part
	// Fair shares of a rank, and its limits.
	fairVertices, fairEdges float64
	maxVertices, maxEdges   int64
}

// part is a rank while vertices are placed.
type part struct {
	vertices, edges int64
	// Fills in fair shares, and their square roots.
	fillV, fillE, rootV, rootE float64
	neighbours                 int64 // of the vertex being placed
}

// score rates a part for a vertex.
type score func(neighbours float64, b *part, degree float64) float64

// newStream makes a stream with the score for a mean number of in-edges and of neighbours.
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

// ldg weights neighbours by the remaining capacity, 1 - fill/slack. The fill is the mean of
// both fills; edges have the weight degree/mean.
func ldg(mean, slack float64) score {
	return func(neighbours float64, b *part, degree float64) float64 {
		r := degree / mean
		return neighbours * (1 - (b.fillV+r*b.fillE)/((1+r)*slack))
	}
}

// fennel subtracts the marginal cost αγx^(γ-1) of a part of x vertices, with the paper's γ = 3/2
// and α = m k^(γ-1) / n^γ for m undirected edges. With x = fill n/k that is 3/2 m/n √fill, and
// 2m/n is the mean number of neighbours. Half of the cost is on vertices and half on edges.
func fennel(mean, meanNeighbours float64) score {
	half := 0.75 * meanNeighbours / 2
	return func(neighbours float64, b *part, degree float64) float64 {
		return neighbours - half*(b.rootV+b.rootE*degree/mean)
	}
}

func (s *stream) run() []uint32 {
	for range s.passes {
		clear(s.parts)
		for v := range s.owner {
			s.count(v)
			s.put(v, s.best(v))
		}
	}
	s.settle()
	return s.owner
}

// count sets the number of neighbours of v in each part. In a directed graph, a pair with edges in
// both directions counts twice: it is cut twice.
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

// put assigns v to part p.
func (s *stream) put(v, p int) {
	s.owner[v] = uint32(p)
	s.load(&s.parts[p], 1, s.degree(v))
}

func (s *stream) load(b *part, vertices, edges int64) {
	b.vertices += vertices
	b.edges += edges
	b.fillV, b.fillE = float64(b.vertices)/s.fairVertices, float64(b.edges)/s.fairEdges
	b.rootV, b.rootE = math.Sqrt(b.fillV), math.Sqrt(b.fillE)
}

// best returns the part with room for v and the highest score; with ties the emptiest, then
// the first. If none has room, it returns the part that v overfills least.
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

// overfill returns the fill of b with one more vertex and degree more edges: above 1 if too full.
func (s *stream) overfill(b *part, degree int64) float64 {
	return max(float64(b.vertices+1)/float64(s.maxVertices), float64(b.edges+degree)/float64(s.maxEdges))
}

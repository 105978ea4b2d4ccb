package order

import (
	"math"

	"siafu/graph"
)

// byModularity returns the order of Rabbit (Arai et al., IPDPS 2016). Communities are merged as
// long as modularity rises, which makes a tree. The order is a depth-first traversal of this
// tree. For each cache level, some level of the tree has communities that fit.
//
// Design note: the paper merges in parallel with atomics, so its result depends on thread
// timing. One thread takes half the time of lp and gives the same order on every machine.
func byModularity(g graph.CSR) []uint32 {
	n := g.Rows()
	m := &merging{
		g: g, into: identity(n), child: make([]uint32, n), sibling: make([]uint32, n),
		strength: make([]float64, n), links: make([][]link, n), weight: make([]float32, n),
		edges: float64(len(g.Cols)),
	}
	for v := range n {
		m.child[v], m.sibling[v] = nobody, nobody
		m.strength[v] = float64(len(g.Row(v)))
	}
	for _, v := range byDegree(g) {
		m.merge(v)
	}
	return m.visit()
}

const nobody = math.MaxUint32

// merging is the incremental aggregation of the paper's §III. Vertices are processed by
// ascending degree. Each vertex is the root of the community merged into it so far. It joins
// the neighbouring community with the largest gain of modularity.
type merging struct {
	g              graph.CSR
	into           []uint32 // next vertex on the path to the community's root; a root points to itself
	child, sibling []uint32 // the tree; first child is the last merged
	strength       []float64
	edges          float64
	// links[v] are the edges of a merged community whose parent is not merged yet. They will be
	// added to the parent's edges. Their number never exceeds the number of edges of the graph.
	links [][]link
	// weight of the edges to each vertex of touched; zero for other vertices.
	weight  []float32
	touched []uint32
}

type link struct {
	to     uint32
	weight float32
}

// merge adds up the edges of v's community. If modularity rises, it merges the community into
// its best neighbour, the lowest id among equals.
func (m *merging) merge(v uint32) {
	for _, u := range m.g.Row(int(v)) {
		m.add(v, u, 1)
	}
	for c := m.child[v]; c != nobody; c = m.sibling[c] {
		for _, l := range m.links[c] {
			m.add(v, l.to, l.weight)
		}
		m.links[c] = nil
	}
	if to := m.best(v); to != nobody {
		m.join(v, to)
	}
	for _, u := range m.touched {
		m.weight[u] = 0
	}
	m.touched = m.touched[:0]
}

// add adds an edge's weight between the communities of v and u.
func (m *merging) add(v, u uint32, weight float32) {
	u = m.root(u)
	if u == v {
		return
	}
	if m.weight[u] == 0 {
		m.touched = append(m.touched, u)
	}
	m.weight[u] += weight
}

// root returns the root of v's community and halves the path to it (path halving).
func (m *merging) root(v uint32) uint32 {
	for m.into[v] != v {
		m.into[v] = m.into[m.into[v]]
		v = m.into[v]
	}
	return v
}

// best returns the neighbour with the largest gain of modularity, or nobody if no gain is
// positive. The gain is, up to a factor, the weight between the two communities minus its
// expected value in a random graph.
func (m *merging) best(v uint32) uint32 {
	best, high := uint32(nobody), 0.0
	for _, u := range m.touched {
		gain := float64(m.weight[u]) - m.strength[v]*m.strength[u]/m.edges
		if gain > high || gain == high && best != nobody && u < best {
			best, high = u, gain
		}
	}
	return best
}

func (m *merging) join(v, to uint32) {
	links := make([]link, len(m.touched))
	for i, u := range m.touched {
		links[i] = link{u, m.weight[u]}
	}
	m.links[v] = links
	m.into[v] = to
	m.strength[to] += m.strength[v]
	m.sibling[v], m.child[to] = m.child[to], v
}

// visit returns the vertices of all trees in depth-first order. The children of a vertex are
// visited in the order in which they merged.
func (m *merging) visit() []uint32 {
	p := make([]uint32, 0, len(m.into))
	var stack []uint32
	for root, into := range m.into {
		if into != uint32(root) {
			continue
		}
		for stack = append(stack, into); len(stack) > 0; {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			p = append(p, v)
			for c := m.child[v]; c != nobody; c = m.sibling[c] {
				stack = append(stack, c)
			}
		}
	}
	return p
}

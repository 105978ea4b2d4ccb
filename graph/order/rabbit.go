package order

import (
	"math"

	"siafu/graph"
)

// byModularity returns the order of Rabbit (Arai et al., IPDPS 2016): communities
// are merged by rising modularity, which makes a tree, and vertices come in
// the order in which the tree is visited depth-first. A community small enough
// for each cache is then somewhere on the way.
//
// Design note: the paper merges in parallel with atomics and depends on the
// order in which threads arrive. One thread takes half the time of lp, and
// gives the same order on every machine.
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

// merging is the incremental aggregation of the paper's §III. Vertices are
// taken by ascending degree; each is the root of the community that was merged
// into it so far, and joins the neighbouring community that it gains most by.
type merging struct {
	g              graph.CSR
	into           []uint32 // a vertex on the way to the community's root; roots: themselves
	child, sibling []uint32 // the tree: last merged first
	strength       []float64
	edges          float64
	// links[v] are the edges of a community that has been merged and whose
	// parent has not: they wait to be added up with its own. There is never
	// more than one for each edge of the graph.
	links [][]link
	// weight of the edges to each of touched; zero elsewhere.
	weight  []float32
	touched []uint32
}

type link struct {
	to     uint32
	weight float32
}

// merge adds up the edges of v's community and merges it, if modularity
// rises, into the best of its neighbours; of equals the lowest.
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

// add counts an edge of v's community to u's.
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

// root halves the way that it goes.
func (m *merging) root(v uint32) uint32 {
	for m.into[v] != v {
		m.into[v] = m.into[m.into[v]]
		v = m.into[v]
	}
	return v
}

// best returns the neighbour with the largest gain of modularity, or nobody where
// none is positive. The gain is, up to a factor, the weight between the two
// less what chance would have put there.
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

// visit returns the vertices of all trees, depth-first, the last children of a
// vertex, which merged first, before the others.
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

package multilevel

import "siafu/internal/workers"

// contract returns the next level, which has one vertex per cluster of g, and sets g.cluster.
// Clusters are numbered in the order of their first vertices. Edges within a cluster are dropped.
// All edges between two clusters become one edge with the sum of their weights.
func (g *level) contract(label []uint32) *level {
	n := g.number(label)
	c := &level{weight: make([]weight, n)}
	for v, l := range g.cluster {
		c.weight[l] = c.weight[l].plus(g.weight[v])
	}
	start, members := g.members(n)
	c.in.Offsets = make([]int64, n+1)
	pieces := make([]rows, (n+rowsPiece-1)/rowsPiece)
	t := g.tallies(n)
	workers.Blocks(len(t), n, rowsPiece, func(worker, lo, hi int) {
		p := &pieces[lo/rowsPiece]
		for v := lo; v < hi; v++ {
			for _, m := range members[start[v]:start[v+1]] {
				t[worker].count(g, m, g.cluster)
			}
			c.in.Offsets[v+1] = p.add(&t[worker], uint32(v))
		}
	})
	c.join(pieces)
	return c
}

// number converts labels to consecutive cluster numbers in g.cluster. It returns the number of
// clusters.
func (g *level) number(label []uint32) int {
	g.cluster = make([]uint32, len(label))
	numbers := make([]uint32, len(label)) // 1 + the cluster number of each label; 0: not yet seen
	n := uint32(0)
	for v, l := range label {
		if numbers[l] == 0 {
			n++
			numbers[l] = n
		}
		g.cluster[v] = numbers[l] - 1
	}
	return int(n)
}

// members groups the vertices of g by cluster (counting sort). Cluster c of n clusters has the
// vertices members[start[c]:start[c+1]].
func (g *level) members(n int) (start []int64, members []uint32) {
	next := make([]int64, n+2) // next[c+1] is the index in members of the next vertex of cluster c
	for _, c := range g.cluster {
		next[c+2]++
	}
	for c := range n {
		next[c+2] += next[c+1]
	}
	members = make([]uint32, len(g.cluster))
	for v, c := range g.cluster {
		members[next[c+1]] = uint32(v)
		next[c+1]++
	}
	return next[:n+1], members
}

// rowsPiece is the number of rows of the coarse graph in a worker's task.
const rowsPiece = 256

// rows contains the concatenated rows of consecutive vertices: neighbours and edge weights.
type rows struct{ cols, edges []uint32 }

// add appends the row of v, whose neighbours and edge weights are in t, and returns the row's
// length. It clears t.
func (r *rows) add(t *tally, v uint32) int64 {
	cols, edges := r.cols, r.edges
	for _, u := range t.used {
		if u != v {
			cols, edges = append(cols, u), append(edges, t.sum[u])
		}
		t.sum[u] = 0
	}
	t.used = t.used[:0]
	length := int64(len(cols) - len(r.cols))
	r.cols, r.edges = cols, edges
	return length
}

// join concatenates the pieces to the rows of g. g.in.Offsets[v+1] must be the length of row v;
// join converts these lengths to offsets.
func (g *level) join(pieces []rows) {
	for v := range g.n() {
		g.in.Offsets[v+1] += g.in.Offsets[v]
	}
	edges := g.in.Offsets[g.n()]
	g.in.Cols, g.edges = make([]uint32, edges), make([]uint32, edges)
	for i, p := range pieces {
		copy(g.in.Cols[g.in.Offsets[i*rowsPiece]:], p.cols)
		copy(g.edges[g.in.Offsets[i*rowsPiece]:], p.edges)
		pieces[i] = rows{}
	}
}

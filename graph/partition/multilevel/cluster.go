package multilevel

import (
	"slices"

	"siafu/internal/elementary"
	"siafu/internal/workers"
)

const (
	// passes is the number of passes of label propagation. A third pass does not reduce the cut.
	passes = 2
	// strides is the number of groups of vertices. The vertices of a group change their labels at
	// the same time, the groups one after another. With one group, two neighbours could swap
	// labels forever. With one vertex per group, there would be no parallelism.
	strides = 8
	block   = 1024 // number of vertices in a worker's task
)

// clustering groups the vertices of a level into clusters of bounded weight by label propagation
// (Meyerhenke, Sanders and Schulz, "Partitioning complex networks via size-constrained
// clustering", SEA 2014). The clusters are the vertices of the next level. A vertex joins the
// cluster to which most of its edge weight leads, among the clusters with room for it. Ties are
// broken randomly.
//
// Design note: Karypis and Kumar use heavy-edge matching. It reduces the number of vertices by at
// most half, and by far less if most vertices are leaves of hubs. Clustering reduces a social
// network from 200,000 to 12,000 vertices in one level. Two other scores were tried: the edge
// weight divided by the size of the cluster, and its square. Both change the cut by less than
// another seed does.
type clustering struct {
	g       *level
	most    weight // maximum weight of a cluster
	seed    uint64
	label   []uint32 // [n] cluster of each vertex; the label of a cluster is one of the vertices
	next    []uint32 // [n] new labels, for the vertices of the current stride
	weight  []weight // [n] weight of each cluster; zero if no vertex has the label
	tallies []tally  // one per worker
}

func newClustering(g *level, most weight, seed uint64) *clustering {
	n := g.n()
	c := &clustering{
		g: g, most: most, seed: seed, label: make([]uint32, n), next: make([]uint32, n),
		weight: make([]weight, n), tallies: g.tallies(n),
	}
	for v := range c.label {
		c.label[v] = uint32(v)
	}
	copy(c.weight, g.weight)
	return c
}

// run returns the label of each vertex's cluster.
func (c *clustering) run() []uint32 {
	for range passes {
		c.seed++
		for s := range strides {
			c.choose(s)
			for v := s; v < len(c.label); v += strides {
				c.join(v)
			}
		}
	}
	if c.clusters() > len(c.label)/2 {
		c.pairSingletons()
	}
	return c.label
}

// choose sets next for the vertices s, s+strides, s+2·strides, … in parallel. Labels and weights
// do not change during the call, so the result does not depend on the number of workers.
func (c *clustering) choose(s int) {
	workers.Blocks(len(c.tallies), len(c.label), block, func(worker, lo, hi int) {
		for v := lo + s; v < hi; v += strides {
			c.next[v] = c.best(uint32(v), &c.tallies[worker], c.most)
		}
	})
}

// best returns the label of the cluster that v should join. The cluster weighs at most most
// together with v. If there is no such cluster, best returns the current label of v.
func (c *clustering) best(v uint32, t *tally, most weight) uint32 {
	t.count(c.g, v, c.label)
	own, weight := c.label[v], c.g.weight[v]
	best, high, tie := own, t.sum[own], uint32(0)
	salt := uint32(Hash(c.seed, uint64(v)))
	for _, l := range t.used {
		sum := t.sum[l]
		t.sum[l] = 0
		if sum < high || l == own {
			continue
		}
		draw := (l ^ salt) * 0x9e3779b1
		if sum == high && (best == own || draw <= tie) || !c.weight[l].plus(weight).within(most) {
			continue
		}
		best, high, tie = l, sum, draw
	}
	t.used = t.used[:0]
	return best
}

// join assigns v its next label if that cluster still has room. It never adds a vertex to a
// cluster that has become empty.
func (c *clustering) join(v int) {
	from, to := c.label[v], c.next[v]
	sum := c.weight[to].plus(c.g.weight[v])
	if from == to || c.weight[to][0] == 0 || !sum.within(c.most) {
		return
	}
	c.weight[from], c.weight[to] = c.weight[from].minus(c.g.weight[v]), sum
	c.label[v] = to
}

// clusters returns the number of clusters that are not empty.
func (c *clustering) clusters() int {
	count := 0
	for _, w := range c.weight {
		if w[0] > 0 {
			count++
		}
	}
	return count
}

// isSingleton reports whether v is the only vertex of its cluster.
func (c *clustering) isSingleton(v int) bool { return c.weight[c.label[v]] == c.g.weight[v] }

// pairSingletons joins clusters of one vertex. Two such vertices join if they prefer the same
// cluster and that cluster is full, or if neither has a neighbour. This two-hop matching helps in
// graphs whose hubs have more leaves than one cluster may contain (LaSalle et al., "Improving graph
// partitioning for modern graphs and architectures", IA³ 2015).
func (c *clustering) pairSingletons() {
	workers.Blocks(len(c.tallies), len(c.label), block, func(worker, lo, hi int) {
		for v := lo; v < hi; v++ {
			if c.isSingleton(v) {
				c.next[v] = c.best(uint32(v), &c.tallies[worker], weight{^uint32(0), ^uint32(0), ^uint32(0)})
			}
		}
	})
	const nobody = ^uint32(0)
	// open[l] is the cluster that the next singleton joins if it prefers cluster l.
	open := slices.Repeat([]uint32{nobody}, len(c.label)+1)
	for v := range c.label {
		if !c.isSingleton(v) {
			continue
		}
		wanted := c.next[v]
		if wanted == c.label[v] {
			wanted = uint32(len(c.label)) // v has no neighbours
		}
		c.next[v] = open[wanted]
		if open[wanted] != nobody {
			c.join(v)
		}
		if c.isSingleton(v) {
			open[wanted] = c.label[v]
		}
	}
}

// Hash returns a hash of x and seed.
func Hash(seed, x uint64) uint64 {
	return elementary.Mix(x + (seed+1)*elementary.Golden)
}

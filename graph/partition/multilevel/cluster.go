package multilevel

import (
	"slices"

	"siafu/internal/workers"
)

const (
	// passes of label propagation; a third gains nothing.
	passes = 2
	// strides is the number of groups of vertices that change labels one after another. In one
	// group, neighbours could swap labels forever; with single vertices there would be no
	// parallelism.
	strides = 8
	block   = 1024 // vertices that a worker takes at a time
)

// clustering finds the vertices of the next level: clusters of bounded weight, by label
// propagation (Meyerhenke, Sanders and Schulz, "Partitioning complex networks via
// size-constrained clustering", SEA 2014). A vertex joins the cluster with most of its edges
// that has room for it; ties are random.
//
// Design note: heavy-edge matching, the papers' method, at most halves a graph, and far less
// if most vertices are leaves of hubs. Clusters take a social network from 200,000 vertices to
// 12,000 in one level. Dividing the weight by the size of the cluster, or squaring it, changes
// cuts by less than the seed.
type clustering struct {
	g       *level
	most    weight // of a cluster
	seed    uint64
	label   []uint32 // of a vertex; a cluster's label is its first vertex
	next    []uint32 // new labels of the current stride
	weight  []weight // of clusters
	tallies []tally
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

// run returns a label for each vertex.
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
		c.pair()
	}
	return c.label
}

// choose finds the next labels of every strides-th vertex from s on; its input does not change
// meanwhile.
func (c *clustering) choose(s int) {
	workers.Blocks(len(c.tallies), len(c.label), block, func(worker, lo, hi int) {
		for v := lo + s; v < hi; v += strides {
			c.next[v] = c.best(uint32(v), &c.tallies[worker], c.most)
		}
	})
}

// best returns the new label of v: of a cluster that weighs at most most with v, or its
// current one.
func (c *clustering) best(v uint32, t *tally, most weight) uint32 {
	t.count(c.g, v, c.label)
	own, weight := c.label[v], c.g.weight[v]
	best, high, tie := own, t.sum[own], uint32(0)
	salt := uint32(mix(c.seed, uint64(v)))
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

// join assigns v its next label if the cluster still has room. An empty cluster is not used
// again.
func (c *clustering) join(v int) {
	from, to := c.label[v], c.next[v]
	sum := c.weight[to].plus(c.g.weight[v])
	if from == to || c.weight[to][0] == 0 || !sum.within(c.most) {
		return
	}
	c.weight[from], c.weight[to] = c.weight[from].minus(c.g.weight[v]), sum
	c.label[v] = to
}

func (c *clustering) clusters() int {
	count := 0
	for _, w := range c.weight {
		if w[0] > 0 {
			count++
		}
	}
	return count
}

// alone reports whether v is a cluster of its own.
func (c *clustering) alone(v int) bool { return c.weight[c.label[v]] == c.g.weight[v] }

// pair joins single vertices that preferred the same full cluster, and single vertices without
// neighbours. This is the two-hop matching of graphs with more leaves than their hubs can absorb
// (LaSalle et al., "Improving graph partitioning for modern graphs and architectures", IA³ 2015).
func (c *clustering) pair() {
	workers.Blocks(len(c.tallies), len(c.label), block, func(worker, lo, hi int) {
		for v := lo; v < hi; v++ {
			if c.alone(v) {
				c.next[v] = c.best(uint32(v), &c.tallies[worker], weight{^uint32(0), ^uint32(0), ^uint32(0)})
			}
		}
	})
	const nobody = ^uint32(0)
	open := slices.Repeat([]uint32{nobody}, len(c.label)+1) // the cluster of vertices that preferred this one
	for v := range c.label {
		if !c.alone(v) {
			continue
		}
		wanted := c.next[v]
		if wanted == c.label[v] {
			wanted = uint32(len(c.label)) // it has no neighbours
		}
		c.next[v] = open[wanted]
		if open[wanted] != nobody {
			c.join(v)
		}
		if c.alone(v) {
			open[wanted] = c.label[v]
		}
	}
}

// mix returns a hash of x keyed by seed: the finaliser of SplitMix64 (Steele, Lea
// and Flood, OOPSLA 2014).
func mix(seed, x uint64) uint64 {
	z := x + (seed+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

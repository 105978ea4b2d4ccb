package sample

import (
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Clusters makes fields of joined clusters.
type Clusters struct {
	induced
	start   []int64  // [clusters+1]
	members []uint32 // [own] by cluster
}

// NewClusters takes the cluster number of each own vertex. Fields have the given number of
// layers that gather, and this rank has the number rank. Memory comes from a.
func NewClusters(s *shard.Shard, rank, clusters, layers int, along EdgeData, of []uint32, team *kernels.Team, a *mapped.Arena) *Clusters {
	c := newClusters(s, rank, clusters, layers, team, a)
	c.along = along
	c.clearPlaces()
	for _, k := range of {
		c.start[k+1]++
	}
	for k := range clusters {
		c.start[k+1] += c.start[k]
	}
	next := append([]int64(nil), c.start...)
	for v, k := range of {
		c.members[next[k]] = uint32(v)
		next[k]++
	}
	return c
}

func newClusters(s *shard.Shard, rank, clusters, layers int, team *kernels.Team, a *mapped.Arena) *Clusters {
	c := &Clusters{induced: newInduced(s, rank, layers, team, a), start: make([]int64, clusters+1)}
	c.members = mapped.Make[uint32](a.For(Lists), s.NumOwn())
	return c
}

// SketchClusters makes the arrays of NewClusters in a, which is a sketch.
func SketchClusters(s *shard.Shard, a *mapped.Arena) { newClusters(s, 0, 1, 1, nil, a) }

// Fork returns Clusters with the same members and a field of its own. The two must not Join at once.
func (c *Clusters) Fork() *Clusters {
	fork := *c
	fork.field = Field{Ends: make([]int, len(c.field.Ends)), Layers: make([]Edges, len(c.field.Layers))}
	return &fork
}

// Members returns the own vertices of a cluster.
func (c *Clusters) Members(k int) []uint32 { return c.members[c.start[k]:c.start[k+1]] }

// Join returns the field of some clusters: their vertices, in the order of the clusters,
// and the edges between any two of these vertices. Degrees and sums count only these edges
// (Cluster-GCN, KDD'19, section 3.2). Features go to x [at least rows x features], unless x is empty.
// The field is valid until the next call.
func (c *Clusters) Join(list []int, x kernels.Mat) *Field {
	f := &c.field
	f.Rows = f.Rows[:0]
	for _, k := range list {
		for _, v := range c.Members(k) {
			f.Rows = append(f.Rows, Vertex{uint32(c.rank), v})
		}
	}
	c.connect(nil)
	c.load(x)
	return f
}

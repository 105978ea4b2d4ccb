package sample

import (
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Clusters makes fields of joined clusters.
type Clusters struct {
	shard   *shard.Shard
	rank    int
	team    *kernels.Team
	start   []int64  // [clusters+1]
	members []uint32 // [own] by cluster
	places  []int32  // of own vertices in the field, -1: none
	along   EdgeData
	field   Field
}

// NewClusters takes the cluster number of each own vertex. Fields have the given number of
// layers that gather, and this rank has the number rank. Memory comes from a.
func NewClusters(s *shard.Shard, rank, clusters, layers int, along EdgeData, of []uint32, team *kernels.Team, a *mapped.Arena) *Clusters {
	c := newClusters(s, rank, clusters, layers, team, a)
	c.along = along
	for i := range c.places {
		c.places[i] = -1
	}
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
	a = a.For(Lists)
	c := &Clusters{shard: s, rank: rank, team: team, start: make([]int64, clusters+1)}
	c.members, c.places = mapped.Make[uint32](a, s.NumOwn()), mapped.Make[int32](a, s.NumOwn())
	c.field.Ends, c.field.Layers = make([]int, layers+1), make([]Edges, layers)
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
	f, s := &c.field, c.shard
	f.Rows = f.Rows[:0]
	for _, k := range list {
		for _, v := range c.Members(k) {
			c.places[v] = int32(len(f.Rows))
			f.Rows = append(f.Rows, Vertex{uint32(c.rank), v})
		}
	}
	f.allocRows(len(f.Rows), c.along.Weighted)
	clear(f.OutDegree)
	clear(f.InStrength)
	clear(f.OutStrength)
	e := &f.Layers[0]
	e.clear()
	for i, v := range f.Rows {
		for k := s.In.Offsets[v.Row]; k < s.InOwnEnd[v.Row]; k++ {
			at := c.places[s.In.Cols[k]]
			if at < 0 {
				continue
			}
			e.Sources = append(e.Sources, uint32(at))
			f.OutDegree[at]++
			if dim := c.along.EdgeDim; dim > 0 {
				e.Features = append(e.Features, s.EdgeFeatures[int(k)*dim:int(k+1)*dim]...)
			}
			if c.along.Weighted {
				w := s.Weights[k]
				e.Weights = append(e.Weights, w)
				f.InStrength[i], f.OutStrength[at] = f.InStrength[i]+w, f.OutStrength[at]+w
			}
		}
		e.Offsets = append(e.Offsets, int64(len(e.Sources)))
		f.IDs[i], f.InDegree[i] = s.Own[v.Row], uint32(e.Offsets[i+1]-e.Offsets[i])
	}
	for _, v := range f.Rows {
		c.places[v.Row] = -1
	}
	for l := range f.Layers {
		f.Layers[l] = Edges{Offsets: e.Offsets, Sources: e.Sources, Weights: e.Weights, Features: e.Features}
	}
	for l := range f.Ends {
		f.Ends[l] = len(f.Rows)
	}
	if x.IsNil() {
		return f
	}
	c.team.Run(len(f.Rows), rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			expandRow(x.Part(i, i+1).Host(), &s.Features, int(f.Rows[i].Row))
		}
	})
	return f
}

package sample

import (
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// induced makes fields of some own vertices and all edges between them.
type induced struct {
	shard  *shard.Shard
	rank   int
	team   *kernels.Team
	places []int32 // of own vertices in the field, -1: none
	along  EdgeData
	field  Field // Rows are the caller's
}

// newInduced allocates fields for the given number of layers that gather.
func newInduced(s *shard.Shard, rank, layers int, team *kernels.Team, a *mapped.Arena) induced {
	return induced{
		shard: s, rank: rank, team: team, places: mapped.Make[int32](a.For(Lists), s.NumOwn()),
		field: Field{Ends: make([]int, layers+1), Layers: make([]Edges, layers)},
	}
}

func (c *induced) clearPlaces() {
	for i := range c.places {
		c.places[i] = -1
	}
}

// connect adds to the field the edges between its rows, and the properties of the rows. Degrees and
// sums count only these edges. weigh, unless nil, returns the weight of the k-th edge of the shard, which
// leads into an own vertex v; nil: the shard's weight.
func (c *induced) connect(weigh func(v uint32, k int64) float32) {
	f, s := &c.field, c.shard
	for i, v := range f.Rows {
		c.places[v.Row] = int32(i)
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
				var w float32
				if weigh != nil {
					w = weigh(v.Row, k)
				} else {
					w = s.Weights[k]
				}
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
}

// load writes the features of the field's rows to x [at least rows x features], unless x is empty.
func (c *induced) load(x kernels.Mat) {
	if x.IsNil() {
		return
	}
	c.team.Run(len(c.field.Rows), rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			expandRow(x.Part(i, i+1).Host(), &c.shard.Features, int(c.field.Rows[i].Row))
		}
	})
}

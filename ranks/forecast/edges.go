package forecast

import (
	"math"
	"slices"

	"siafu/graph/partition"
	"siafu/internal/size"
	"siafu/ranks/config"
)

// edges replaces the plain columns of a shard, which leave memory before the first epoch, by the coded
// columns that the sketch has counted. Plain reverse edges exist until they are coded.
func (f *Forecast) edges(m *Memory, p partition.RankReport, c config.Config) {
	if c.Edges != config.CodedEdges {
		return
	}
	i := slices.IndexFunc(*m, func(t Term) bool { return t.Kind == Mapped && t.Name == "shard: edges" })
	if i >= 0 {
		(*m)[i].Bytes -= size.RoundUp(floats(p.Edges), 64)
	}
	reverse := p.Cut
	if f.Directed {
		reverse = p.Edges
	}
	m.add("plain reverse edges", Scratch, floats(reverse), size.Product(8, p.Vertices+p.Ghosts))
}

// codedBits returns the bits per edge of coded columns: the estimate from a sample of edges, or without it
// a bound for edges between random vertices. Four gaps share a width, a multiple of two.
func (f *Forecast) codedBits(p partition.RankReport) float64 {
	if p.CodedBits > 0 {
		return p.CodedBits
	}
	gap := float64(f.Vertices) * float64(max(f.Vertices, 1)) / float64(max(f.Edges, 1))
	return min(4+math.Log2(max(gap, 1)), 33)
}

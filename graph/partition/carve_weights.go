package partition

import (
	"math"
	"slices"

	"siafu/graph/mapped"
	"siafu/graph/shard"
)

// strengths adds up the weights of the edges into and out of every vertex, in the order of
// the dataset, so that the sums are those of any number of parts.
func (c *carver) strengths() {
	in := c.ds.In
	n := in.Rows()
	c.inStrength = mapped.Make[float32](c.arena, n)
	c.outStrength = c.inStrength
	var out []float64
	if c.ds.Meta.Directed {
		c.outStrength, out = mapped.Make[float32](c.arena, n), make([]float64, n)
	}
	for v := range n {
		sum := 0.0
		for i := in.Offsets[v]; i < in.Offsets[v+1]; i++ {
			w := float64(c.ds.Weights[i])
			sum += w
			if out != nil {
				out[in.Cols[i]] += w
			}
		}
		c.inStrength[v] = finite(sum)
	}
	for u, sum := range out {
		c.outStrength[u] = finite(sum)
	}
}

// finite is the nearest float32 that is no infinity.
func finite(sum float64) float32 { return float32(min(sum, math.MaxFloat32)) }

// weights are those of the edges of a shard, whose rows have been cut, and the strengths of
// its vertices.
func (c *carver) weights(a *mapped.Arena, s *shard.Shard) {
	s.Weights = mapped.Make[float32](a, len(s.In.Cols))
	n := len(s.Own)
	parallel(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, at := c.ds.In.Offsets[s.Own[i]], s.In.Offsets[i]
			own, ghosts := s.In.Cols[at:s.InOwnEnd[i]], s.In.Cols[s.InOwnEnd[i]:s.In.Offsets[i+1]]
			for k, u := range c.ds.In.Row(int(s.Own[i])) {
				row, first := own, at
				if c.owner[u] != uint32(s.Rank) {
					row, first = ghosts, s.InOwnEnd[i]
				}
				to, _ := slices.BinarySearch(row, c.local[u])
				s.Weights[int(first)+to] = c.ds.Weights[int(from)+k]
			}
		}
	})
	local := n + len(s.Ghosts)
	s.InStrength, s.OutStrength = mapped.Make[float32](a, local), mapped.Make[float32](a, local)
	for first, ids := range map[int][]uint32{0: s.Own, n: s.Ghosts} {
		for i, v := range ids {
			s.InStrength[first+i], s.OutStrength[first+i] = c.inStrength[v], c.outStrength[v]
		}
	}
}

package partition

import (
	"math"
	"slices"

	"siafu/graph/shard"
	"siafu/internal/mapped"
)

// strengths computes the sums of the weights of all edges into each vertex and out of it. The order
// of addition is the order of the dataset, so the sums are the same for any number of parts.
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

// finite converts a sum to float32. A sum above the largest float32 becomes the largest float32.
func finite(sum float64) float32 { return float32(min(sum, math.MaxFloat32)) }

// alongEdges sets the weights and features of a shard's edges, the strengths of its vertices, and
// the mean edge features of its own vertices. edges must already have set the rows of s.In.
func (c *carver) alongEdges(a *mapped.Arena, s *shard.Shard) {
	if s.Weighted {
		s.Weights = mapped.Make[float32](a, len(s.In.Cols))
		c.carveStrengths(a, s)
	}
	dim := s.EdgeDim
	s.EdgeFeatures = mapped.Make[float32](a, len(s.In.Cols)*dim)
	s.EdgeMeans = mapped.Make[float32](a, len(s.Own)*dim)
	parallel(len(s.Own), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.eachEdge(s, i, func(to, from int) {
				if s.Weighted {
					s.Weights[to] = c.ds.Weights[from]
				}
				copy(s.EdgeFeatures[to*dim:][:dim], c.ds.EdgeFeatures[from*dim:])
			})
			copy(s.EdgeMeans[i*dim:][:dim], c.edgeMeans[int(s.Own[i])*dim:])
		}
	})
}

// eachEdge calls visit for each edge into own vertex i. to is the index of the edge in s.In.Cols,
// from its index in the dataset.
func (c *carver) eachEdge(s *shard.Shard, i int, visit func(to, from int)) {
	from, at := c.ds.In.Offsets[s.Own[i]], s.In.Offsets[i]
	own, ghosts := s.In.Cols[at:s.InOwnEnd[i]], s.In.Cols[s.InOwnEnd[i]:s.In.Offsets[i+1]]
	for k, u := range c.ds.In.Row(int(s.Own[i])) {
		row, first := own, at
		if c.owner[u] != uint32(s.Rank) {
			row, first = ghosts, s.InOwnEnd[i]
		}
		to, _ := slices.BinarySearch(row, c.local[u])
		visit(int(first)+to, int(from)+k)
	}
}

// carveStrengths sets the strengths of own vertices and ghosts.
func (c *carver) carveStrengths(a *mapped.Arena, s *shard.Shard) {
	n, local := len(s.Own), len(s.Own)+len(s.Ghosts)
	s.InStrength, s.OutStrength = mapped.Make[float32](a, local), mapped.Make[float32](a, local)
	for first, ids := range map[int][]uint32{0: s.Own, n: s.Ghosts} {
		for i, v := range ids {
			s.InStrength[first+i], s.OutStrength[first+i] = c.inStrength[v], c.outStrength[v]
		}
	}
}

// means computes the mean features of the edges into each vertex. The order of addition is the order
// of the dataset, so the means are the same for any number of parts.
func (c *carver) means() {
	in, dim := c.ds.In, c.like.EdgeDim
	c.edgeMeans = mapped.Make[float32](c.arena, in.Rows()*dim)
	parallel(in.Rows(), func(lo, hi int) {
		sums := make([]float64, dim)
		for v := lo; v < hi; v++ {
			clear(sums)
			from, to := int(in.Offsets[v]), int(in.Offsets[v+1])
			for i, f := range c.ds.EdgeFeatures[from*dim : to*dim] {
				sums[i%dim] += float64(f)
			}
			for j, sum := range sums {
				c.edgeMeans[v*dim+j] = float32(sum / float64(max(to-from, 1)))
			}
		}
	})
}

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

// alongVertices sets the strengths of own vertices and ghosts, and the mean edge features of own
// vertices.
func (c *carver) alongVertices(a *mapped.Arena, s *shard.Shard) {
	if s.Weighted {
		c.carveStrengths(a, s)
	}
	s.EdgeMeans = denseRows(a, c.edgeMeans, s.EdgeDim, s.Own)
}

// alongEdges sets the weights and features of the edges of a block. edges must already have set the
// rows of b.In.
func (c *carver) alongEdges(a *mapped.Arena, b *shard.Shard) {
	if b.Weighted {
		b.Weights = mapped.Make[float32](a, len(b.In.Cols))
	}
	dim := b.EdgeDim
	b.EdgeFeatures = mapped.Make[float32](a, len(b.In.Cols)*dim)
	parallel(len(b.Own), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.eachEdge(b, i, func(to, from int) {
				if b.Weighted {
					b.Weights[to] = c.ds.Weights[from]
				}
				copy(b.EdgeFeatures[to*dim:][:dim], c.ds.EdgeFeatures[from*dim:])
			})
		}
	})
}

// eachEdge calls visit for each edge into vertex i of a block. to is the index of the edge in
// b.In.Cols, from its index in the dataset.
func (c *carver) eachEdge(b *shard.Shard, i int, visit func(to, from int)) {
	first := b.In.Offsets[0]
	from, at, mid := c.ds.In.Offsets[b.Own[i]], b.In.Offsets[i]-first, b.InOwnEnd[i]-first
	own, ghosts := b.In.Cols[at:mid], b.In.Cols[mid:b.In.Offsets[i+1]-first]
	for k, u := range c.ds.In.Row(int(b.Own[i])) {
		row, start := own, at
		if c.owner[u] != uint32(b.Rank) {
			row, start = ghosts, mid
		}
		to, _ := slices.BinarySearch(row, c.local[u])
		visit(int(start)+to, int(from)+k)
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

package partition

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
)

// carver cuts shards out of a dataset, one after another. It uses three words and a bit per
// vertex.
type carver struct {
	ds    *graph.Dataset
	owner []uint32
	parts int
	// vertices[start[p]:start[p+1]] are the vertices of rank p in its order; slot[v] is v's
	// index in vertices.
	vertices, slot []uint32
	start          []int64
	// local[v] is v's local id in the shard being cut, if v is in it; other elements are stale
	// and never read.
	local []uint32
	seen  []uint64    // slots of the ghosts of the shard being cut; empty between shards
	like  shard.Shard // fields that all shards share
	// The sums of the weights of all edges into and out of a vertex; nil without weights.
	inStrength, outStrength []float32
	edgeMeans               []float32     // of the features of the edges into a vertex [n x EdgeDim]
	arena                   *mapped.Arena // allocates the arrays above
}

// newCarver requires owners below parts. A rank numbers its vertices in the given order of all
// vertices; nil is ascending.
func newCarver(ds *graph.Dataset, owner, order []uint32, parts int, like shard.Shard) *carver {
	n := len(owner)
	c := &carver{ds: ds, owner: owner, parts: parts, like: like, arena: mapped.NewArena()}
	c.vertices = mapped.Make[uint32](c.arena, n)
	c.slot = mapped.Make[uint32](c.arena, n)
	c.local = mapped.Make[uint32](c.arena, n)
	c.seen = mapped.Make[uint64](c.arena, n/64+1)
	c.start = byOwner(owner, order, parts, c.vertices, c.slot)
	if like.Weighted {
		c.strengths()
	}
	if like.EdgeDim > 0 {
		c.means()
	}
	return c
}

// byOwner fills vertices with the vertices of rank 0 in the given order of all vertices (nil
// is ascending), then of rank 1 and so on, and slot, unless nil, with their indices. Rank p
// has start[p]:start[p+1].
func byOwner(owner, order []uint32, parts int, vertices, slot []uint32) (start []int64) {
	start = make([]int64, parts+1)
	for _, p := range owner {
		start[p+1]++
	}
	accumulate(start)
	next := slices.Clone(start)
	for i := range owner {
		v := uint32(i)
		if order != nil {
			v = order[i]
		}
		p := owner[v]
		vertices[next[p]] = v
		if slot != nil {
			slot[v] = uint32(next[p])
		}
		next[p]++
	}
	return start
}

// accumulate converts counts to starts; counts[i+1] is the count of i.
func accumulate(counts []int64) {
	for i := range counts[1:] {
		counts[i+1] += counts[i]
	}
}

// cut builds the shard of rank p with arrays in a.
func (c *carver) cut(a *mapped.Arena, p int) *shard.Shard {
	s := c.like
	s.Parts, s.Rank = c.parts, p
	s.Own = c.vertices[c.start[p]:c.start[p+1]]
	c.ghosts(a, &s)
	c.number(s.Own, 0)
	c.number(s.Ghosts, len(s.Own))
	c.edges(a, &s)
	c.sends(a, &s)
	c.degrees(a, &s)
	c.features(a, &s)
	s.Labels = mapped.Make[int32](a, len(s.Own))
	s.Split = mapped.Make[uint8](a, len(s.Own))
	for i, v := range s.Own {
		s.Labels[i], s.Split[i] = c.ds.Labels[v], c.ds.Split[v]
	}
	if c.ds.Targets != nil {
		s.Targets = mapped.Make[float32](a, len(s.Own)*s.Classes)
		for i, v := range s.Own {
			copy(s.Targets[i*s.Classes:(i+1)*s.Classes], c.ds.Targets[int(v)*s.Classes:])
		}
	}
	return &s
}

// number assigns local ids to ids, from first on.
func (c *carver) number(ids []uint32, first int) {
	parallel(len(ids), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.local[ids[i]] = uint32(first + i)
		}
	})
}

// ghosts finds the sources that other ranks own, in the order of owners and, within an owner,
// in its order: the order of slots.
func (c *carver) ghosts(a *mapped.Arena, s *shard.Shard) {
	p := uint32(s.Rank)
	parallel(len(s.Own), func(lo, hi int) {
		for _, v := range s.Own[lo:hi] {
			for _, u := range c.ds.In.Row(int(v)) {
				if c.owner[u] != p {
					c.mark(c.slot[u])
				}
			}
		}
	})
	s.GhostStart = make([]int64, c.parts+1)
	c.eachMarked(func(u uint32) { s.GhostStart[c.owner[u]+1]++ })
	accumulate(s.GhostStart)
	s.Ghosts = mapped.Make[uint32](a, int(s.GhostStart[c.parts]))[:0]
	c.eachMarked(func(u uint32) { s.Ghosts = append(s.Ghosts, u) })
	clear(c.seen)
}

func (c *carver) mark(slot uint32) {
	word, bit := &c.seen[slot/64], uint64(1)<<(slot%64)
	if atomic.LoadUint64(word)&bit == 0 { // most edges find the bit set; a read does not invalidate the cache line of other cores
		atomic.OrUint64(word, bit)
	}
}

// eachMarked visits the vertices in marked slots, slots ascending.
func (c *carver) eachMarked(visit func(u uint32)) {
	for i, word := range c.seen {
		for ; word != 0; word &= word - 1 {
			visit(c.vertices[i*64+bits.TrailingZeros64(word)])
		}
	}
}

// edges renumbers the in-edges of the own vertices: own sources, then ghosts.
func (c *carver) edges(a *mapped.Arena, s *shard.Shard) {
	n := len(s.Own)
	s.In.Offsets = mapped.Make[int64](a, n+1)
	s.InOwnEnd = mapped.Make[int64](a, n)
	for i, v := range s.Own {
		s.In.Offsets[i+1] = s.In.Offsets[i] + int64(len(c.ds.In.Row(int(v))))
	}
	s.In.Cols = mapped.Make[uint32](a, int(s.In.Offsets[n]))
	p := uint32(s.Rank)
	if s.Weighted || s.EdgeDim > 0 {
		defer c.alongEdges(a, s)
	}
	parallel(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := s.In.Cols[s.In.Offsets[i]:s.In.Offsets[i+1]]
			own := c.split(row, c.ds.In.Row(int(s.Own[i])), p)
			s.InOwnEnd[i] = s.In.Offsets[i] + int64(own)
		}
	})
}

// split writes the local ids of sources to row, p's own ones first, both groups ascending, and
// returns the number of own ones.
func (c *carver) split(row, sources []uint32, p uint32) int {
	own := 0
	for _, u := range sources {
		if c.owner[u] == p {
			row[own] = c.local[u]
			own++
		}
	}
	ghosts := row[own:own]
	for _, u := range sources {
		if c.owner[u] != p {
			ghosts = append(ghosts, c.local[u])
		}
	}
	slices.Sort(row[:own]) // already sorted in the natural order, which is fast
	slices.Sort(ghosts)
	return own
}

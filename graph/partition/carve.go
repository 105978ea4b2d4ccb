package partition

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
)

// carver makes the shards of a dataset, one after another. It uses three words and a bit per
// vertex. cut returns a shard without the arrays of its edges and features, and blocks makes these
// arrays in blocks of rows.
type carver struct {
	ds    *graph.Dataset
	owner []uint32
	parts int
	// vertices[start[p]:start[p+1]] are the vertices of rank p in the order of that rank. slot[v]
	// is the index of v in vertices, nil for a single part.
	vertices, slot []uint32
	start          []int64
	// local[v] is the local id of v in the current shard. Elements of vertices that are not in the
	// shard are outdated and must not be read.
	local []uint32
	seen  []uint64    // bit set: slots of the current shard's ghosts; empty between two shards
	like  shard.Shard // fields that all shards share
	// Sums of the weights of all edges into each vertex and out of it; nil if edges have no weights.
	inStrength, outStrength []float32
	edgeMeans               []float32     // [n x EdgeDim] means of the features of the edges into each vertex
	arena                   *mapped.Arena // allocates the arrays above
	blockBytes              int64         // size of the arrays of a block, unless a single row is larger
}

// blockBytes is the usual size of a block. With smaller blocks, threads would often wait for each
// other.
const blockBytes = 32 << 20

// newCarver returns a carver. All owners must be below parts. A rank numbers its vertices in the
// given order of all vertices, or by ascending id if order is nil. Each shard starts as a copy of
// like.
func newCarver(ds *graph.Dataset, owner, order []uint32, parts int, like shard.Shard) *carver {
	n := len(owner)
	c := &carver{ds: ds, owner: owner, parts: parts, like: like, arena: mapped.NewArena(), blockBytes: blockBytes}
	c.vertices = mapped.Make[uint32](c.arena, n)
	if parts > 1 {
		c.slot = mapped.Make[uint32](c.arena, n)
	}
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

// byOwner groups all vertices by owner (counting sort). vertices[start[p]:start[p+1]] become the
// vertices of rank p, in the given order of all vertices, or ascending if order is nil. Unless slot
// is nil, slot[v] becomes the index of v in vertices.
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

// accumulate converts counts to start indices. On entry, counts[i+1] is the count of element i.
// Afterwards counts[i] is the start of element i.
func accumulate(counts []int64) {
	for i := range counts[1:] {
		counts[i+1] += counts[i]
	}
}

// cut returns the shard of rank p, without the arrays that blocks makes. Its arrays are allocated in a.
func (c *carver) cut(a *mapped.Arena, p int) *shard.Shard {
	s := c.like
	s.Parts, s.Rank = c.parts, p
	s.Own = c.vertices[c.start[p]:c.start[p+1]]
	if c.whole(s.Own) {
		c.all(a, &s)
		return &s
	}
	c.borders(a, &s)
	c.number(s.Own, 0)
	c.number(s.Ghosts, len(s.Own))
	c.degrees(a, &s)
	c.alongVertices(a, &s)
	c.offsets(a, &s)
	s.Labels = mapped.Make[int32](a, len(s.Own))
	s.Split = mapped.Make[uint8](a, len(s.Own))
	for i, v := range s.Own {
		s.Labels[i], s.Split[i] = c.ds.Labels[v], c.ds.Split[v]
	}
	if c.ds.Targets != nil {
		s.Targets = []float32{}
	}
	if c.ds.Relations != nil {
		s.Relations = []uint16{}
	}
	return &s
}

// all sets the arrays of a shard of all vertices in the order of the dataset.
func (c *carver) all(a *mapped.Arena, s *shard.Shard) {
	s.GhostStart, s.SendStart = make([]int64, 2), make([]int64, 2)
	c.degrees(a, s)
	s.InStrength, s.OutStrength, s.EdgeMeans = c.inStrength, c.outStrength, c.edgeMeans
	s.UseAll(c.ds)
}

// number assigns consecutive local ids to the vertices in ids, starting with first.
func (c *carver) number(ids []uint32, first int) {
	parallel(len(ids), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.local[ids[i]] = uint32(first + i)
		}
	})
}

// borders sets the ghosts and the send lists of a shard. It reads the edges of the own vertices once.
func (c *carver) borders(a *mapped.Arena, s *shard.Shard) {
	s.GhostStart, s.SendStart = make([]int64, c.parts+1), make([]int64, c.parts+1)
	if c.parts == 1 {
		return
	}
	scratch := mapped.NewArena()
	defer scratch.Free()
	words := (c.parts + 63) / 64
	readers := mapped.Make[uint64](scratch, len(s.Own)*words)
	p := uint32(s.Rank)
	parallel(len(s.Own), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.scan(int(s.Own[i]), p, readers[i*words:(i+1)*words])
		}
	})
	c.ghosts(a, s)
	c.sends(a, s, readers)
}

// scan marks the sources of edges into vertex v of rank p that other ranks own. It adds the other
// ranks to which v has edges to readers, a bit set of ranks.
func (c *carver) scan(v int, p uint32, readers []uint64) {
	directed := c.ds.Meta.Directed
	for _, u := range c.ds.In.Row(v) {
		if q := c.owner[u]; q != p {
			c.mark(c.slot[u])
			if !directed {
				readers[q/64] |= 1 << (q % 64)
			}
		}
	}
	if directed {
		for _, u := range c.ds.Out.Row(v) {
			if q := c.owner[u]; q != p {
				readers[q/64] |= 1 << (q % 64)
			}
		}
	}
}

// ghosts sets the ghosts: the vertices of marked slots. They are ordered by slot: by owner, and then
// in the order of the owner.
func (c *carver) ghosts(a *mapped.Arena, s *shard.Shard) {
	c.eachMarked(func(u uint32) { s.GhostStart[c.owner[u]+1]++ })
	accumulate(s.GhostStart)
	s.Ghosts = mapped.Make[uint32](a, int(s.GhostStart[c.parts]))[:0]
	c.eachMarked(func(u uint32) { s.Ghosts = append(s.Ghosts, u) })
	clear(c.seen)
}

// mark sets the bit of a slot. It may be called concurrently.
func (c *carver) mark(slot uint32) {
	word, bit := &c.seen[slot/64], uint64(1)<<(slot%64)
	// For most edges the bit is already set. A read does not invalidate the cache lines of other cores.
	if atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
}

// eachMarked calls visit for the vertices of all marked slots, in ascending order of slots.
func (c *carver) eachMarked(visit func(u uint32)) {
	for i, word := range c.seen {
		for ; word != 0; word &= word - 1 {
			visit(c.vertices[i*64+bits.TrailingZeros64(word)])
		}
	}
}

// whole reports whether own has all vertices in the order of the dataset.
func (c *carver) whole(own []uint32) bool {
	_, _, consecutive := run(own)
	return consecutive && c.parts == 1
}

// offsets sets the offsets of the rows of edges and of sparse features.
func (c *carver) offsets(a *mapped.Arena, s *shard.Shard) {
	n := len(s.Own)
	s.In.Offsets = mapped.Make[int64](a, n+1)
	s.InOwnEnd = mapped.Make[int64](a, n) // blocks sets the elements
	for i, v := range s.Own {
		s.In.Offsets[i+1] = s.In.Offsets[i] + int64(len(c.ds.In.Row(int(v))))
	}
	s.Features.Rows, s.Features.Dim = n, c.ds.Features.Dim
	if c.ds.Features.Half != nil {
		s.Features.Half = []graph.BF16{}
	}
	if x := c.ds.Features.Sparse; x != nil {
		to := &graph.SparseRows{Offsets: mapped.Make[int64](a, n+1)}
		for i, v := range s.Own {
			to.Offsets[i+1] = to.Offsets[i] + x.Offsets[v+1] - x.Offsets[v]
		}
		s.Features.Sparse = to
	}
}

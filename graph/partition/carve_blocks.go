package partition

import (
	"iter"
	"slices"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
)

// blocks returns the arrays of s that cut has not made, in blocks of own vertices, as
// shard.WriteBlocks expects them. s must be the last shard that cut returned. The arrays of a block
// are freed before the next block.
//
// Design note: a shard may have more edges and features than memory. Its arrays could be in a mapped
// file instead, but the kernel would write that file to disk in addition to the shard.
func (c *carver) blocks(s *shard.Shard) iter.Seq[*shard.Shard] {
	return func(yield func(*shard.Shard) bool) {
		if s.Whole {
			return
		}
		a := mapped.NewArena()
		defer a.Free()
		for lo := 0; lo < len(s.Own); {
			hi := c.blockEnd(s, lo)
			if !yield(c.block(a, s, lo, hi)) {
				return
			}
			a.Free()
			lo = hi
		}
	}
}

// blockEnd returns the end of the block of own vertices that begins at lo.
func (c *carver) blockEnd(s *shard.Shard, lo int) int {
	perEdge := int64(4 + 4*s.EdgeDim)
	if s.Weighted {
		perEdge += 4
	}
	if s.Relations != nil {
		perEdge += 2
	}
	perVertex, x := int64(0), s.Features.Sparse
	if x == nil {
		perVertex = 4 * int64(s.Features.Dim)
	}
	if s.Features.Half != nil {
		perVertex /= 2
	}
	if s.Targets != nil {
		perVertex += 4 * int64(s.Classes)
	}
	hi, bytes := lo, int64(0)
	for ; hi < len(s.Own); hi++ {
		bytes += perVertex + perEdge*(s.In.Offsets[hi+1]-s.In.Offsets[hi])
		if x != nil {
			bytes += 8 * (x.Offsets[hi+1] - x.Offsets[hi])
		}
		if bytes > c.blockBytes && hi > lo {
			break
		}
	}
	return hi
}

// block makes the arrays of own vertices lo to hi-1. Its offsets are those of s. It also sets
// InOwnEnd of s for these vertices.
func (c *carver) block(a *mapped.Arena, s *shard.Shard, lo, hi int) *shard.Shard {
	b := *s
	b.Own, b.In.Offsets, b.InOwnEnd = s.Own[lo:hi], s.In.Offsets[lo:hi+1], s.InOwnEnd[lo:hi]
	c.edges(a, &b)
	if b.Weighted || b.EdgeDim > 0 {
		c.alongEdges(a, &b)
	}
	switch x := s.Features.Sparse; {
	case x != nil:
		b.Features.Sparse = sparseRows(a, c.ds.Features.Sparse, x.Offsets[lo:hi+1], b.Own)
	case s.Features.Half != nil:
		b.Features.Half = denseRows(a, c.ds.Features.Half, b.Features.Dim, b.Own)
	default:
		b.Features.Dense = denseRows(a, c.ds.Features.Dense, b.Features.Dim, b.Own)
	}
	if s.Targets != nil {
		b.Targets = denseRows(a, c.ds.Targets, b.Classes, b.Own)
	}
	return &b
}

// edges sets the in-edges of the vertices of a block, with local ids, and their relations. A row contains its own
// sources and then its ghost sources.
func (c *carver) edges(a *mapped.Arena, b *shard.Shard) {
	n, first := len(b.Own), b.In.Offsets[0]
	b.In.Cols = mapped.Make[uint32](a, int(b.In.Offsets[n]-first))
	if b.Relations != nil {
		b.Relations = mapped.Make[uint16](a, len(b.In.Cols))
	}
	p := uint32(b.Rank)
	parallel(n, func(lo, hi int) {
		var keys []uint64
		for i := lo; i < hi; i++ {
			from, to, own := b.In.Offsets[i]-first, b.In.Offsets[i+1]-first, 0
			if row := b.In.Cols[from:to]; b.Relations != nil {
				own, keys = c.splitRelated(row, b.Relations[from:to], b.Own[i], p, keys)
			} else {
				own = c.split(row, c.ds.In.Row(int(b.Own[i])), p)
			}
			b.InOwnEnd[i] = b.In.Offsets[i] + int64(own)
		}
	})
}

// split writes the local ids of sources to row: first the sources that rank p owns, then the ghosts.
// Both groups are ascending. It returns the number of sources that rank p owns.
func (c *carver) split(row, sources []uint32, p uint32) int {
	own, end := 0, len(row)
	for _, u := range sources {
		if c.owner[u] == p {
			row[own] = c.local[u]
			own++
		} else {
			end--
			row[end] = c.local[u]
		}
	}
	slices.Sort(row[:own]) // fast in the natural order, in which the row is already sorted
	slices.Reverse(row[end:])
	slices.Sort(row[end:])
	return own
}

// splitRelated is split for the row of vertex v of a relational graph: both groups are ordered by relation and then by
// source. keys is a buffer, which it returns.
func (c *carver) splitRelated(row []uint32, relations []uint16, v, p uint32, keys []uint64) (own int, _ []uint64) {
	keys = keys[:0] // 1 for a ghost, relation and local id of each source
	for i := c.ds.In.Offsets[v]; i < c.ds.In.Offsets[v+1]; i++ {
		u := c.ds.In.Cols[i]
		key := uint64(c.ds.Relations[i])<<32 | uint64(c.local[u])
		if c.owner[u] == p {
			own++
		} else {
			key |= 1 << 63
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for k, key := range keys {
		row[k], relations[k] = uint32(key), uint16(key>>32&0x7fff)
	}
	return own, keys
}

// denseRows returns the given rows of x, which have dim elements. Consecutive rows are not copied.
func denseRows[T mapped.Elem](a *mapped.Arena, x []T, dim int, rows []uint32) []T {
	if lo, hi, ok := run(rows); ok {
		return x[lo*dim : hi*dim]
	}
	to := mapped.Make[T](a, len(rows)*dim)
	parallel(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := int(rows[i])
			copy(to[i*dim:(i+1)*dim], x[v*dim:(v+1)*dim])
		}
	})
	return to
}

// run reports whether ids are the consecutive numbers lo..hi-1. This is the case for contiguous
// partitions and for a single part, if the vertex order is natural.
func run(ids []uint32) (lo, hi int, ok bool) {
	n := len(ids)
	if n == 0 {
		return 0, 0, true
	}
	lo = int(ids[0])
	for i, v := range ids {
		if int(v) != lo+i {
			return 0, 0, false
		}
	}
	return lo, lo + n, true
}

// sparseRows returns the given rows of m. offsets [rows+1] are their offsets, of which the first may
// be above 0. Consecutive rows are not copied.
func sparseRows(a *mapped.Arena, m *graph.SparseRows, offsets []int64, rows []uint32) *graph.SparseRows {
	to := &graph.SparseRows{Offsets: offsets}
	if lo, hi, ok := run(rows); ok {
		to.Cols, to.Vals = m.Cols[m.Offsets[lo]:m.Offsets[hi]], m.Vals[m.Offsets[lo]:m.Offsets[hi]]
		return to
	}
	first := offsets[0]
	total := int(offsets[len(rows)] - first)
	to.Cols, to.Vals = mapped.Make[uint32](a, total), mapped.Make[float32](a, total)
	parallel(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := rows[i]
			copy(to.Cols[offsets[i]-first:], m.Cols[m.Offsets[v]:m.Offsets[v+1]])
			copy(to.Vals[offsets[i]-first:], m.Vals[m.Offsets[v]:m.Offsets[v+1]])
		}
	})
	return to
}

package partition

import (
	"runtime"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/internal/workers"
)

// sends sets the send lists: for each other rank, the own rows that are ghosts of that rank. These
// are the rows with an edge to a vertex of that rank. Rows are ascending in a send list. The other
// rank orders its ghosts of one owner in the order of the owner, so both ranks use the same order
// without communication.
func (c *carver) sends(a *mapped.Arena, s *shard.Shard) {
	chunks := runtime.GOMAXPROCS(0)
	bound := func(i int) int { return len(s.Own) * i / chunks }
	// next[i][q] is first the number of rows of chunk i for rank q, and later the index in
	// SendRows of the next of these rows.
	next := make([][]int64, chunks)
	workers.Each(chunks, func(i int) {
		next[i] = make([]int64, c.parts)
		c.eachSend(s, bound(i), bound(i+1), func(q uint32, _ int) { next[i][q]++ })
	})
	s.SendStart = make([]int64, c.parts+1)
	total := int64(0)
	for q := range c.parts {
		s.SendStart[q] = total
		for i := range next {
			next[i][q], total = total, total+next[i][q]
		}
	}
	s.SendStart[c.parts] = total
	s.SendRows = mapped.Make[uint32](a, int(total))
	workers.Each(chunks, func(i int) {
		c.eachSend(s, bound(i), bound(i+1), func(q uint32, row int) {
			s.SendRows[next[i][q]] = uint32(row)
			next[i][q]++
		})
	})
}

// eachSend calls visit for each own row in [lo, hi) and each rank q that gathers from the row. Each
// pair of q and row is visited once, with rows in ascending order.
func (c *carver) eachSend(s *shard.Shard, lo, hi int, visit func(q uint32, row int)) {
	last := make([]int, c.parts) // 1 + the last visited row of each rank
	for row := lo; row < hi; row++ {
		for _, u := range c.ds.Out.Row(int(s.Own[row])) {
			if q := c.owner[u]; q != uint32(s.Rank) && last[q] != row+1 {
				last[q] = row + 1
				visit(q, row)
			}
		}
	}
}

// degrees sets the degrees of own vertices and ghosts in the whole graph.
func (c *carver) degrees(a *mapped.Arena, s *shard.Shard) {
	in, out := c.ds.In.Offsets, c.ds.Out.Offsets
	n := len(s.Own)
	s.InDegree = mapped.Make[uint32](a, n+len(s.Ghosts))
	s.OutDegree = mapped.Make[uint32](a, n+len(s.Ghosts))
	set := func(i int, v uint32) {
		s.InDegree[i] = uint32(in[v+1] - in[v])
		s.OutDegree[i] = uint32(out[v+1] - out[v])
	}
	for i, v := range s.Own {
		set(i, v)
	}
	for g, v := range s.Ghosts {
		set(n+g, v)
	}
}

// features sets the features of the own vertices.
func (c *carver) features(a *mapped.Arena, s *shard.Shard) {
	f := c.ds.Features
	s.Features.Rows, s.Features.Dim = len(s.Own), f.Dim
	if f.Sparse != nil {
		s.Features.Sparse = sparseRows(a, f.Sparse, s.Own)
		return
	}
	if lo, hi, ok := run(s.Own); ok { // the dataset's rows are used without a copy
		s.Features.Dense = f.Dense[lo*f.Dim : hi*f.Dim]
		return
	}
	s.Features.Dense = mapped.Make[float32](a, len(s.Own)*f.Dim)
	parallel(len(s.Own), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := int(s.Own[i])
			copy(s.Features.Dense[i*f.Dim:(i+1)*f.Dim], f.Dense[v*f.Dim:(v+1)*f.Dim])
		}
	})
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

// sparseRows returns the given rows of m. Consecutive rows are not copied.
func sparseRows(a *mapped.Arena, m *graph.SparseRows, rows []uint32) *graph.SparseRows {
	to := &graph.SparseRows{Offsets: mapped.Make[int64](a, len(rows)+1)}
	for i, v := range rows {
		to.Offsets[i+1] = to.Offsets[i] + m.Offsets[v+1] - m.Offsets[v]
	}
	if lo, hi, ok := run(rows); ok {
		to.Cols, to.Vals = m.Cols[m.Offsets[lo]:m.Offsets[hi]], m.Vals[m.Offsets[lo]:m.Offsets[hi]]
		return to
	}
	total := int(to.Offsets[len(rows)])
	to.Cols, to.Vals = mapped.Make[uint32](a, total), mapped.Make[float32](a, total)
	parallel(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := rows[i]
			copy(to.Cols[to.Offsets[i]:], m.Cols[m.Offsets[v]:m.Offsets[v+1]])
			copy(to.Vals[to.Offsets[i]:], m.Vals[m.Offsets[v]:m.Offsets[v+1]])
		}
	})
	return to
}

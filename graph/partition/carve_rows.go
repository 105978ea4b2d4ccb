package partition

import (
	"runtime"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/internal/workers"
)

// sends finds the own rows that are ghosts of each other rank: rows with an out-edge into it.
// They ascend, and ghosts of one owner are in the owner's order, so both ranks get the same
// order without communication.
func (c *carver) sends(a *mapped.Arena, s *shard.Shard) {
	chunks := runtime.GOMAXPROCS(0)
	bound := func(i int) int { return len(s.Own) * i / chunks }
	// next[i][q] is the number of rows, and later the index of the next row, that chunk i
	// sends to q.
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

// eachSend calls visit once for each rank q and each own row in [lo, hi) that q gathers from,
// rows ascending.
func (c *carver) eachSend(s *shard.Shard, lo, hi int, visit func(q uint32, row int)) {
	last := make([]int, c.parts) // 1 + the last row sent to q
	for row := lo; row < hi; row++ {
		for _, u := range c.ds.Out.Row(int(s.Own[row])) {
			if q := c.owner[u]; q != uint32(s.Rank) && last[q] != row+1 {
				last[q] = row + 1
				visit(q, row)
			}
		}
	}
}

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

func (c *carver) features(a *mapped.Arena, s *shard.Shard) {
	f := c.ds.Features
	s.Features.Rows, s.Features.Dim = len(s.Own), f.Dim
	if f.Sparse != nil {
		s.Features.Sparse = sparseRows(a, f.Sparse, s.Own)
		return
	}
	if lo, hi, ok := run(s.Own); ok { // avoids a copy of possibly large data
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

// run reports whether ids are consecutive, lo to hi-1, as in a contiguous part or in a single part
// in natural order.
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

// sparseRows copies the given rows of m.
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

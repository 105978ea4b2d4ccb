package partition

import (
	"runtime"

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

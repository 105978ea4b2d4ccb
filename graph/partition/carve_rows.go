package partition

import (
	"math/bits"
	"runtime"

	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/internal/workers"
)

// sends sets the send lists: for each other rank, the own rows that are ghosts of that rank. readers
// has a bit set of these ranks for each own row. Rows are ascending in a send list. The other rank
// orders its ghosts of one owner in the order of the owner, so both ranks use the same order without
// communication.
func (c *carver) sends(a *mapped.Arena, s *shard.Shard, readers []uint64) {
	chunks := runtime.GOMAXPROCS(0)
	// each calls visit for the rows of chunk i and each rank that gathers from them, with rows in
	// ascending order.
	each := func(i int, visit func(q, row int)) {
		words := (c.parts + 63) / 64
		for row := len(s.Own) * i / chunks; row < len(s.Own)*(i+1)/chunks; row++ {
			for k, word := range readers[row*words : (row+1)*words] {
				for ; word != 0; word &= word - 1 {
					visit(k*64+bits.TrailingZeros64(word), row)
				}
			}
		}
	}
	// next[i][q] is first the number of rows of chunk i for rank q, and later the index in
	// SendRows of the next of these rows.
	next := make([][]int64, chunks)
	workers.Each(chunks, func(i int) {
		next[i] = make([]int64, c.parts)
		each(i, func(q, _ int) { next[i][q]++ })
	})
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
		each(i, func(q, row int) {
			s.SendRows[next[i][q]] = uint32(row)
			next[i][q]++
		})
	})
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

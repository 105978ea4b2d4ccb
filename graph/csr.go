package graph

import (
	"runtime"
	"slices"

	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/workers"
)

// EdgePairs is an EdgeSource in memory: src0, dst0, src1, dst1, …
type EdgePairs []uint32

// Each implements EdgeSource.
func (p EdgePairs) Each(yield func(src, dst uint32) error) error {
	for i := 0; i+1 < len(p); i += 2 {
		if err := yield(p[i], p[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// built is a CSR with what was dropped on the way.
type built struct {
	CSR
	duplicates, selfLoops int64
}

// buildCSR makes the in-edge CSR of n vertices in two passes over the edges:
// count, then fill; rows are sorted and freed of duplicates afterwards. It
// takes 8 bytes a vertex and 4 an edge of the arena, and no list of edges.
func buildCSR(src EdgeSource, n int64, symmetrise bool, a *mapped.Arena) (*built, error) {
	b := &built{CSR: CSR{Offsets: mapped.Make[int64](a, int(n)+1)}}
	if err := b.count(src, n, symmetrise); err != nil {
		return nil, err
	}
	for v := range int(n) {
		b.Offsets[v+1] += b.Offsets[v]
	}
	b.Cols = mapped.Make[uint32](a, int(b.Offsets[n]))
	if err := b.fill(src, n, symmetrise, a); err != nil {
		return nil, err
	}
	b.sortRows()
	b.compact()
	return b, nil
}

// count adds the in-degree of v to Offsets[v+1]; it checks every endpoint.
func (b *built) count(src EdgeSource, n int64, symmetrise bool) error {
	i := int64(0)
	return src.Each(func(s, d uint32) error {
		if int64(s) >= n || int64(d) >= n {
			return fault.New(fault.Data, "write dataset", "", "edge %d is %d → %d, but vertices are numbered 0 to %d", i, s, d, n-1).
				Then("correct the edge or the number of vertices")
		}
		i++
		if s == d {
			b.selfLoops++
			return nil
		}
		b.Offsets[d+1]++
		if symmetrise {
			b.Offsets[s+1]++
		}
		return nil
	})
}

func (b *built) fill(src EdgeSource, n int64, symmetrise bool, a *mapped.Arena) error {
	next := mapped.Make[int64](a, int(n))
	copy(next, b.Offsets)
	put := func(row, col uint32) error {
		if next[row] >= b.Offsets[row+1] {
			return fault.New(fault.Runtime, "write dataset", "", "the edges changed between two readings").
				Then("import again while nothing writes to the source")
		}
		b.Cols[next[row]] = col
		next[row]++
		return nil
	}
	return src.Each(func(s, d uint32) error {
		if s == d {
			return nil
		}
		if int64(s) >= n || int64(d) >= n {
			return put(0, 0)
		}
		if err := put(d, s); err != nil || !symmetrise {
			return err
		}
		return put(s, d)
	})
}

// sortRows sorts every row, in parallel by blocks of rows.
func (b *built) sortRows() {
	workers.Blocks(runtime.GOMAXPROCS(0), b.Rows(), 1<<12, func(_, lo, hi int) {
		for v := lo; v < hi; v++ {
			slices.Sort(b.Row(v))
		}
	})
}

// compact drops duplicates from the sorted rows, in place.
func (b *built) compact() {
	w, start := int64(0), int64(0)
	for v := range b.Rows() {
		end := b.Offsets[v+1]
		first := w
		for _, c := range b.Cols[start:end] {
			if w > first && b.Cols[w-1] == c {
				continue
			}
			b.Cols[w] = c
			w++
		}
		start, b.Offsets[v+1] = end, w
	}
	b.duplicates = int64(len(b.Cols)) - w
	b.Cols = b.Cols[:w]
}

// Transpose is the CSR of the reversed edges; its memory comes from a. Rows of
// the result are ascending.
func (c CSR) Transpose(a *mapped.Arena) CSR {
	n := c.Rows()
	t := CSR{Offsets: mapped.Make[int64](a, n+1), Cols: mapped.Make[uint32](a, len(c.Cols))}
	for _, u := range c.Cols {
		t.Offsets[u+1]++
	}
	for v := range n {
		t.Offsets[v+1] += t.Offsets[v]
	}
	next := mapped.Make[int64](a, n)
	copy(next, t.Offsets)
	for v := range n {
		for _, u := range c.Row(v) {
			t.Cols[next[u]] = uint32(v)
			next[u]++
		}
	}
	return t
}

// equal tells whether two CSRs hold the same edges.
func (c CSR) equal(d CSR) bool {
	return slices.Equal(c.Offsets, d.Offsets) && slices.Equal(c.Cols, d.Cols)
}

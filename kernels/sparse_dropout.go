package kernels

import (
	"math/bits"
	"sync"

	"siafu/kernels/internal/avx"
)

// Dropout of the non-zeros of a sparse matrix.
//
// Variant: words are drawn for a block of non-zeros across rows, because package avx draws
// several at once and a row may have few. Kept ones are compacted without a branch on the
// mask, and a bit per non-zero gives the counts per row. The memory is of the worker.
//
// Design note: storing the forward pass's mask for the backward pass would save the second
// draw, but the transposed order would need each non-zero's position in the other order: more
// memory than the values.

// filterBlock is the number of non-zeros that are drawn at once, unless one row has more.
const filterBlock = 512

// keptNonZeros has the non-zeros that dropout keeps, of a few rows of a sparseTask.
type keptNonZeros struct {
	index      []uint32
	vals       []float32
	ends       []int64  // of the rows in index and vals, which start at 0
	bits       []uint64 // of all non-zeros
	lines, ids []uint32 // counter words
	list       lister   // of the current row, if lists are computed
}

var keptNonZerosPool = sync.Pool{New: func() any { return new(keptNonZeros) }}

// draw filters the non-zeros [from, to) of rows [r, end).
func (s *keptNonZeros) draw(k *sparseTask, r, end int, from, to int64) {
	n := int(to - from)
	s.index, s.vals = scratch(&s.index, n+spareLanes), scratch(&s.vals, n+spareLanes)
	s.bits = scratch(&s.bits, n/64+1)
	lines := scratch(&s.lines, n+spareLanes)
	at := 0
	for row := r; row < end; row++ {
		stop, line := int(min(k.offsets[row+1], to)-from), k.line(row)
		for ; at < stop; at += 4 { // the next row overwrites the lanes beyond
			four := lines[at : at+4 : at+4]
			four[0], four[1], four[2], four[3] = line, line, line, line
		}
		at = stop
	}
	lines = lines[:n]
	index, vals := k.index[from:to], k.vals[from:to]
	ids, cols := lines, index
	if k.transposed {
		ids, cols = s.idsOf(k.set, &k.mask, index), lines
	}
	if k.set != avx.None {
		k.set.Sift(&k.mask.draw, s.index, s.vals, s.bits, ids, cols, index, vals)
	} else {
		s.sift(&k.mask, ids, cols, index, vals)
	}
	s.ends = append(s.ends[:0], 0)
	at, kept := 0, 0
	for row := r; row < end; row++ {
		stop := int(min(k.offsets[row+1], to) - from)
		kept += s.ones(at, stop)
		s.ends = append(s.ends, int64(kept))
		at = stop
	}
}

// ones returns the number of kept non-zeros of [from, to).
func (s *keptNonZeros) ones(from, to int) int {
	n := 0
	for from < to {
		count := min(64-from%64, to-from)
		n += bits.OnesCount64(s.bits[from/64] >> (from % 64) << (64 - count))
		from += count
	}
	return n
}

// spareLanes is the space for a vector after the last non-zero.
const spareLanes = 16

// line returns the counter word of row r: a dataset id or, transposed, a column.
func (k *sparseTask) line(r int) uint32 {
	if k.transposed {
		return uint32(r)
	}
	return k.mask.id(r)
}

// idsOf returns the dataset ids of vertices.
func (s *keptNonZeros) idsOf(set avx.Set, m *mask, vertices []uint32) []uint32 {
	if m.ids == nil {
		return vertices
	}
	ids := scratch(&s.ids, len(vertices))
	if set != avx.None {
		set.Lookup(ids, vertices, m.ids)
		return ids
	}
	for i, v := range vertices {
		ids[i] = m.ids[v]
	}
	return ids
}

// sift specifies Sift in package avx. Consecutive non-zeros often share a block of words.
func (s *keptNonZeros) sift(m *mask, ids, cols, index []uint32, vals []float32) {
	var words [4]uint32
	clear(s.bits[:])
	n := 0
	for i, id := range ids {
		block := cols[i] / 4
		if i == 0 || id != ids[i-1] || block != cols[i-1]/4 {
			words = Philox([4]uint32{id, block, m.epoch, m.layer}, m.key)
		}
		if words[cols[i]%4] <= m.draw.Last {
			s.index[n], s.vals[n] = index[i], vals[i]*m.scale
			s.bits[i/64] |= 1 << (i % 64)
			n++
		}
	}
}

package kernels

import (
	"math/bits"

	"siafu/kernels/internal/avx"
)

// Dropout of the non-zeros of a sparse matrix.
//
// Variant: words are drawn for a block of non-zeros across rows, because package avx draws
// several at once and a row may have few. Kept ones are compacted without a branch on the
// mask, and a bit per non-zero gives the counts per row. The memory is on the worker's stack.
//
// Design note: storing the forward pass's mask for the backward pass would save the second
// draw, but the transposed order would need each non-zero's position in the other order: more
// memory than the values.

// filterBlock is the number of non-zeros in a block, a multiple of 64.
const filterBlock = 256

// keptNonZeros has the non-zeros of [begin, end) of a sparseTask that dropout keeps.
type keptNonZeros struct {
	begin, end int64
	index      [filterBlock]uint32 // of retained non-zeros
	vals       [filterBlock]float32
	bits       [filterBlock / 64]uint64 // of all
	lines, ids [filterBlock]uint32      // counter words
	list       lister                   // of the current row, if lists are computed
}

// draw filters the non-zeros from e, in row r, up to last or until the block is full.
func (s *keptNonZeros) draw(k *sparseTask, r int, e, last int64) {
	s.begin, s.end = e, min(e+filterBlock, last)
	for at := e; at < s.end; r++ {
		stop := min(k.offsets[r+1], s.end)
		s.fill(k.line(r), at-e, stop-e)
		at = stop
	}
	index, vals := k.index[e:s.end], k.vals[e:s.end]
	ids, cols := s.lines[:len(index)], index
	if k.transposed {
		ids, cols = s.idsOf(&k.mask, index), ids
	}
	if k.set != avx.None {
		k.set.Sift(&k.mask.draw, s.index[:], s.vals[:], s.bits[:], ids, cols, index, vals)
		return
	}
	s.sift(&k.mask, ids, cols, index, vals)
}

// line returns the counter word of row r: a dataset id or, transposed, a column.
func (k *sparseTask) line(r int) uint32 {
	if k.transposed {
		return uint32(r)
	}
	return k.mask.id(r)
}

func (s *keptNonZeros) fill(line uint32, from, to int64) {
	lines := s.lines[from:to]
	for i := range lines {
		lines[i] = line
	}
}

// idsOf returns the dataset ids of vertices.
func (s *keptNonZeros) idsOf(m *mask, vertices []uint32) []uint32 {
	if m.ids == nil {
		return vertices
	}
	ids := s.ids[:len(vertices)]
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

// kept returns the kept non-zeros, scaled, of [from, to), a part of the block.
func (s *keptNonZeros) kept(from, to int64) (index []uint32, vals []float32) {
	first, end := s.before(from-s.begin), s.before(to-s.begin)
	return s.index[first:end], s.vals[first:end]
}

// before returns the number of kept ones among the first i of the block.
func (s *keptNonZeros) before(i int64) int {
	n := 0
	for _, w := range s.bits[:i/64] {
		n += bits.OnesCount64(w)
	}
	if rest := i % 64; rest > 0 {
		n += bits.OnesCount64(s.bits[i/64] << (64 - rest))
	}
	return n
}

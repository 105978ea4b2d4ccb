package kernels

import (
	"math/bits"

	"siafu/kernels/internal/avx"
)

// Dropout of the non-zeros of a sparse matrix.
//
// Variant: words are drawn for a block of non-zeros, whatever rows they are of,
// since package avx draws several at once and a row may have few; those that
// are kept are moved together, without a branch on the mask, and a bit for each
// non-zero tells which row has how many. The memory for that is on the stack of
// the worker.
//
// Design note: keeping the mask of the forward pass for the backward one would
// save the second draw, but the transposed order would need the place of each
// non-zero in the other: more memory than the values.

// sieveSize is the number of non-zeros in a block, a multiple of 64.
const sieveSize = 256

// keptNonZeros holds those of the non-zeros [begin, end) of a sparseTask that are
// kept.
type keptNonZeros struct {
	begin, end int64
	index      [sieveSize]uint32 // of those kept
	vals       [sieveSize]float32
	bits       [sieveSize / 64]uint64 // of all
	lines, ids [sieveSize]uint32      // what the words are drawn from
	list       lister                 // of the row in hand, where lists are wanted
}

// draw sifts the non-zeros from e, of row r, on, as far as there is room and
// below last.
func (s *keptNonZeros) draw(k *sparseTask, r int, e, last int64) {
	s.begin, s.end = e, min(e+sieveSize, last)
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

// line is what row r is in the counter: a dataset id or, transposed, a column.
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

// idsOf is the dataset ids of vertices.
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

// sift is the specification of Sift in package avx. The non-zeros that follow
// each other often share a block.
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

// kept is the non-zeros in [from, to), a part of the block, that dropout keeps,
// scaled.
func (s *keptNonZeros) kept(from, to int64) (index []uint32, vals []float32) {
	first, end := s.before(from-s.begin), s.before(to-s.begin)
	return s.index[first:end], s.vals[first:end]
}

// before is the number of kept ones among the first i of the block.
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

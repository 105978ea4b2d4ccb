package kernels

import "siafu/kernels/internal/avx"

// Dropout of the non-zeros of a sparse matrix.
//
// Variant: words are drawn for a block of non-zeros, whatever rows they are of,
// since package avx draws several at once and a row may have few; then the kept
// ones of each row are moved together, without a branch on the mask. The
// memory for that is on the stack of the worker.
//
// Design note: keeping the mask of the forward pass for the backward one would
// save the second draw, but the transposed order would need the place of each
// non-zero in the other: more memory than the values.

// sieveSize is the number of non-zeros in a block.
const sieveSize = 256

// sieve holds the words of the non-zeros [begin, end) of a sparseTask, and
// those that were kept last.
type sieve struct {
	begin, end int64
	words      [sieveSize]uint32
	rows       [sieveSize]uint32
	index      [sieveSize]uint32
	vals       [sieveSize]float32
}

// draw draws the words of the non-zeros from e, of row r, on, as far as there
// is room and below last.
func (s *sieve) draw(k *sparseTask, r int, e, last int64) {
	s.begin, s.end = e, min(e+sieveSize, last)
	for at := e; at < s.end; r++ {
		stop := min(k.offsets[r+1], s.end)
		s.fill(k.rowWord(r), at-e, stop-e)
		at = stop
	}
	n := s.end - e
	rows, index := s.rows[:n], k.index[e:s.end]
	if !k.transposed {
		k.mask.words(s.words[:n], rows, index)
		return
	}
	if k.mask.ids != nil {
		for i, v := range index {
			s.index[i&(sieveSize-1)] = k.mask.ids[v]
		}
		index = s.index[:n]
	}
	k.mask.words(s.words[:n], index, rows)
}

// rowWord is what row r is in the counter: a dataset id or, transposed, a column.
func (k *sparseTask) rowWord(r int) uint32 {
	if k.transposed {
		return uint32(r)
	}
	return k.mask.id(r)
}

func (s *sieve) fill(v uint32, from, to int64) {
	rows := s.rows[from:to]
	for i := range rows {
		rows[i] = v
	}
}

// kept is the non-zeros in [from, to), of which words were drawn, that dropout
// keeps, scaled. It is good until the next call.
func (s *sieve) kept(k *sparseTask, from, to int64) (cols []uint32, vals []float32) {
	words, index, values := s.words[from-s.begin:to-s.begin], k.index[from:to], k.vals[from:to]
	index, values = index[:len(words)], values[:len(words)]
	last, scale := uint64(k.mask.draw.Last), k.mask.scale
	n := uint(0)
	for i, w := range words {
		s.index[n%sieveSize], s.vals[n%sieveSize] = index[i], values[i]*scale
		n += 1 - uint((last-uint64(w))>>63) // 0 where last is less
	}
	return s.index[:n], s.vals[:n]
}

// words sets dst[i] to the word of the id and the column; the ones that follow
// each other often share a block.
func (m *mask) words(dst, ids, cols []uint32) {
	if m.set != avx.None {
		m.set.Words(&m.draw, dst, ids, cols)
		return
	}
	var words [4]uint32
	for i, id := range ids {
		block := cols[i] / 4
		if i == 0 || id != ids[i-1] || block != cols[i-1]/4 {
			words = Philox([4]uint32{id, block, m.epoch, m.layer}, m.key)
		}
		dst[i] = words[cols[i]%4]
	}
}

package kernels

import "siafu/kernels/internal/avx"

// Rows without their zeros, for gathers bound by memory and caches.
//
//	row   the non-zero values, from the start of the row on
//	bits  in separate memory, one for each column of each row
//
// Variant: a gather expands each row into the registers of its sum. Zeros are added too. Sums
// start with +0, which neither +0 nor -0 changes, so that the bits equal those of dense rows.
// The position of a row and of its bits follows from its number, and a packed row is not
// longer: rows can be packed in place.
//
// Design note: contiguous rows, each with its bits, would use less cache, but one more look-up
// per edge for their start. They take 0.8 to 1.2 times as long, and need separate memory.
// Prefetching exactly the lines of each row costs more than it saves.

// Packed has rows without their zeros. The zero value is empty.
type Packed struct {
	rows Mat
	bits []uint64 // PackedWords per row
}

// PackedWords is the size of a row's bits in words.
const PackedWords = avx.BitsWords

const floatsOfLine = avx.LineBytes / bytesOfFloat

// NewPacked uses rows, and PackedWords of bits for each, as memory for packed rows. Others may
// use rows while none is packed.
func NewPacked(rows Mat, bits []uint64) Packed {
	mustFit(len(bits) >= PackedWords*rows.Rows)
	return Packed{rows, bits}
}

// IsNil reports whether p is the zero value.
func (p Packed) IsNil() bool { return p.rows.IsNil() }

// lines returns the number of cache lines to prefetch per row if all rows have kept values in
// total. It covers an average row, half a vector read beyond the last value, and half a line for
// longer rows. An extra line costs less than a missing one.
func (p Packed) lines(kept int64) int {
	const beyond = floatsOfLine/2 + floatsOfLine
	floats := int(kept)/max(p.rows.Rows, 1) + beyond
	if p.rows.Cols%floatsOfLine != 0 { // rows are not aligned to lines
		floats += floatsOfLine
	}
	return (floats + floatsOfLine - 1) / floatsOfLine
}

// Packs implements Ops. Narrow rows would save little.
func (t *Team) Packs(width int) bool {
	const narrow = 3 * floatsOfLine
	return width >= narrow && width <= t.set.MostPacked()
}

// Pack implements Ops. It runs on the calling worker.
func (t *Team) Pack(p Packed, lo int, x Mat) (kept int) {
	mustFit(x.Cols == p.rows.Cols && t.Packs(x.Cols))
	dst := p.rows.Part(lo, lo+x.Rows)
	return t.set.Pack(dst.Host(), p.bits[PackedWords*lo:PackedWords*(lo+x.Rows)], x.Host(), x.Cols)
}

// SpMMPacked implements Ops.
func (t *Team) SpMMPacked(dst Mat, e Edges, p Packed, kept int64, add bool) {
	mustFit(t.Packs(p.rows.Cols))
	k := t.newSpMM(dst, e, p.rows, add)
	k.bits, k.lines = p.bits, p.lines(kept)
	t.gather(k)
}

// addPacked implements addEdge for a packed row.
func (k *spmmTask) addPacked(dst []float32, c uint32, scale float32) {
	row, bits, s := k.source(c), k.bits[PackedWords*int(c-k.Base):], k.edge(c, scale)
	for j := range dst {
		v := float32(0)
		if bits[j/64]>>(j%64)&1 != 0 {
			v, row = row[0], row[1:]
		}
		dst[j] += float32(s * v)
	}
}

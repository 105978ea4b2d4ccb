package kernels

import "siafu/kernels/internal/avx"

// Rows without their zeros, for gathers that memory and caches hold up.
//
//	row: the values that are no zeros, from where the row begins; beside all rows, a bit for
//	each column of a row
//
// Variant: a gather expands each row into the registers of its sum. Zeros are added
// where rows have them, so that a sum is the same bits as that of the rows: it
// begins with +0, which neither +0 nor -0 changes. Where a row and its bits are follows from
// its number, and the row takes no more than it did: rows can be packed where they stand.
//
// Design note: rows one after the other, each with its bits, take less of the caches, and
// another look-up an edge, of where they begin. They take 0.8 to 1.2 times as long as these, and need
// room of their own. To prefetch the lines of each row and no others costs more than it saves.

// Packed are rows without their zeros. None packs nothing.
type Packed struct {
	rows Mat
	bits []uint64 // PackedWords a row
}

// PackedWords is the size of a row's bits in words.
const PackedWords = avx.BitsWords

// Packing is an Ops that gathers packed rows.
type Packing interface {
	Ops
	// Packs reports whether it packs rows of this width.
	Packs(width int) bool
	// Pack packs x as the rows from lo on, and returns how many of its values are no zeros. x
	// may be those very rows, which it then overwrites.
	Pack(p Packed, lo int, x Mat) (kept int)
	// SpMMPacked is SpMM of the rows that have been packed in p, which hold about so many
	// values together. It gives the same bits where no scale is below zero.
	SpMMPacked(dst Mat, e Edges, p Packed, kept int64, add bool)
}

const floatsOfLine = avx.LineBytes / bytesOfFloat

// NewPacked packs into rows, which may serve others as long as none is packed, with
// PackedWords of bits for each.
func NewPacked(rows Mat, bits []uint64) Packed {
	mustFit(len(bits) >= PackedWords*rows.Rows)
	return Packed{rows, bits}
}

// IsNil reports whether there is no room.
func (p Packed) IsNil() bool { return p.rows.IsNil() }

// lines is how many lines of a row are prefetched where all hold N values: those of an
// average row and half a vector, which is read beyond the last value, and half a line for rows
// that are longer. A line too many costs less than one that is missing.
func (p Packed) lines(kept int64) int {
	const beyond = floatsOfLine/2 + floatsOfLine
	floats := int(kept)/max(p.rows.Rows, 1) + beyond
	if p.rows.Cols%floatsOfLine != 0 { // it begins somewhere in a line
		floats += floatsOfLine
	}
	return (floats + floatsOfLine - 1) / floatsOfLine
}

// Packs implements Packing. Of narrow rows little can be saved.
func (t *Team) Packs(width int) bool {
	const narrow = 3 * floatsOfLine
	return width >= narrow && width <= t.set.MostPacked()
}

// Pack implements Packing. The caller does all of it.
func (t *Team) Pack(p Packed, lo int, x Mat) (kept int) {
	mustFit(x.Cols == p.rows.Cols && t.Packs(x.Cols))
	dst := p.rows.Part(lo, lo+x.Rows)
	return t.set.Pack(dst.Host(), p.bits[PackedWords*lo:PackedWords*(lo+x.Rows)], x.Host(), x.Cols)
}

// SpMMPacked implements Packing.
func (t *Team) SpMMPacked(dst Mat, e Edges, p Packed, kept int64, add bool) {
	mustFit(t.Packs(p.rows.Cols))
	k := t.newSpMM(dst, e, p.rows, add)
	k.bits, k.lines = p.bits, p.lines(kept)
	t.gather(k)
}

// addPacked is addEdge of a packed row.
func (k *spmmTask) addPacked(dst []float32, c uint32, scale float32) {
	row, bits, s := k.source(c), k.bits[PackedWords*int(c-k.Base):], k.edge(c, scale)
	for j := range dst {
		v := float32(0)
		if bits[j/64]>>(j%64)&1 != 0 {
			v, row = row[0], row[1:]
		}
		dst[j] += s * v
	}
}

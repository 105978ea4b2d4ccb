package kernels

import "siafu/kernels/internal/avx"

// Rows without their zeros, for gathers that memory and caches hold up.
//
//	row: a bit for each column, in words of 32; the values whose bit is set
//
// Variant: a gather expands each row into the registers of its sum. Zeros are added
// where rows have them, so that a sum is the same bits as that of the rows: it
// begins with +0, which neither +0 nor -0 changes. A row begins with a line of the
// cache, and the rows of an interval lie one behind the other, so that the caches hold
// what there is and not what there could be.
//
// Design note: rows that begin at multiples of the longest need no list of where they
// begin, but take 0.67 to 1.07 of the time of the rows where these take 0.39 to 0.94
// (docs/performance.md); to prefetch as many lines as a row has mispredicts more than it
// saves.

// Packed is room for the rows of a matrix without their zeros. None packs nothing.
type Packed struct {
	room  Mat
	start []uint32 // by local id, the line of the room with which a row begins
}

// Packing is an Ops that gathers packed rows.
type Packing interface {
	Ops
	// Packs tells whether it packs rows of this width.
	Packs(width int) bool
	// Pack packs x as the rows from lo on. It is false where there is no room: that for
	// some rows takes as many that are three quarters full.
	Pack(p Packed, lo int, x Mat) bool
	// SpMMPacked is SpMM of x, of which p has all rows, without zeros. It gives the same
	// bits.
	SpMMPacked(dst Mat, e Edges, x Mat, p Packed, add bool)
}

const floatsOfLine = avx.LineBytes / bytesOfFloat

// NewPacked makes packed rows in a room [rows x width], which may serve others as long as no
// row is packed. start has an element for each column that edges have, those of other
// matrices too, as gathers look ahead.
func NewPacked(room Mat, start []uint32) Packed {
	fit(len(start) >= room.Rows)
	return Packed{room, start}
}

// IsNil tells whether there is no room.
func (p Packed) IsNil() bool { return p.room.IsNil() }

// lines are those of the room that belong to the rows [lo, hi) alone. A vector may reach
// beyond the last one.
func (p Packed) lines(lo, hi int) (first, end int) {
	return (lo*p.room.Cols + floatsOfLine - 1) / floatsOfLine, hi*p.room.Cols/floatsOfLine - 1
}

// Packs implements Packing. Of narrow rows little can be saved.
func (t *Team) Packs(width int) bool {
	const narrow = 3 * floatsOfLine
	return width >= narrow && width <= t.set.MostPacked()
}

// Pack implements Packing. The caller does all of it.
func (t *Team) Pack(p Packed, lo int, x Mat) bool {
	fit(x.Cols == p.room.Cols && lo+x.Rows <= p.room.Rows && t.Packs(x.Cols))
	first, end := p.lines(lo, lo+x.Rows)
	rows := t.set.Pack(p.room.Host(), p.start[lo:lo+x.Rows], x.Host(), x.Cols, first, end)
	return rows == x.Rows
}

// SpMMPacked implements Packing.
func (t *Team) SpMMPacked(dst Mat, e Edges, x Mat, p Packed, add bool) {
	fit(alike(x, p.room) && t.Packs(x.Cols))
	k := t.newSpMM(dst, e, x, add)
	k.packed, k.start = p.room.Host(), p.start
	t.gather(k)
}

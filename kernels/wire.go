package kernels

import (
	"unsafe"

	"siafu/internal/mapped"
)

// Wire is what an Ops may have beside whose memory is not the host's: rows for other
// ranks cross beside what it computes, and become the bytes that travel, and rows
// again, where it computes.
//
// The bytes of rows are payloads of package halo/codec, by the bits of an element:
// 16 are BF16, row by row; 8, 4 or 2 are the offsets of the Grids of each GridRows
// rows, the steps of these, and the codes of each row, rounded up to bytes. The slack after codes is not
// written. They begin at a multiple of 2.
type Wire interface {
	Ops
	// Crossing makes a Crossing, which lives as long as a.
	Crossing(a *mapped.Arena) Crossing
	// EncodeRows sets dst to the bytes of rows.
	EncodeRows(dst Vector[uint8], bits int, rows Outgoing)
	// DecodeRows sets rows to what src stands for, or adds it.
	DecodeRows(rows Incoming, bits int, src Vector[uint8])
}

// Outgoing are rows that are encoded: row i is row Index[i] of X or, after its last,
// of More; no Index is i. Where codes round at random they draw by IDs, row i of X by
// Rows and one of More by Sums.
type Outgoing struct {
	X, More    Mat
	Index, IDs Vector[uint32]
	Rows, Sums Rounding
	// Lost [n x X.Cols] is subtracted, and becomes what is lost of the difference: 0
	// of a row that is not finite; none: nothing is kept.
	Lost Mat
	// Raw [n x X.Cols] gets, in their places, rows whose Grid would not span them
	// all, and whose step is RawStep. It may be X where there is no Index.
	Raw Mat
}

// Part is the rows from..to-1.
func (r Outgoing) Part(from, to int) Outgoing {
	if r.Index.Len() == 0 {
		r.X = r.X.Part(from, to)
	}
	r.Index, r.IDs, r.Raw = r.Index.Part(from, to), r.IDs.Part(from, to), r.Raw.Part(from, to)
	if !r.Lost.IsNil() {
		r.Lost = r.Lost.Part(from, to)
	}
	return r
}

// Incoming are rows that are decoded, in their places: as Outgoing's. Rows are
// distinct. Raw [n x X.Cols] holds rows whose step is RawStep; none: they stay as
// they are.
type Incoming struct {
	X, More Mat
	Index   Vector[uint32]
	Len     int
	Raw     Mat
	Add     bool
}

// Part is the rows from..to-1.
func (r Incoming) Part(from, to int) Incoming {
	if r.Index.Len() == 0 {
		r.X = r.X.Part(from, to)
	}
	if !r.Raw.IsNil() {
		r.Raw = r.Raw.Part(from, to)
	}
	r.Index, r.Len = r.Index.Part(from, to), to-from
	return r
}

// RawStep is the step of rows that no Grid spans: NaN.
const RawStep BF16 = 0x7fc0

// Crossing is copies between the host's memory and that of an Ops, beside what is
// computed. Its methods are called by one goroutine at a time. Host memory belongs to
// a copy from when it is begun: Out's until Wait, In's until Settle.
type Crossing interface {
	// Pin page-locks an array that lives as long as the Crossing and has pages of its
	// own (mapped.MakeApart), where the system allows it: its copies are the faster.
	Pin(b []byte)
	// Mark lets copies that are begun from now on wait for what was called before, on
	// any Ops of the rank, and for nothing that is called later.
	Mark()
	// Out begins to set dst to memory of the Ops, and says which copy that is.
	Out(dst []byte, src unsafe.Pointer) int
	// Done reports whether a copy out is done, and Wait returns when it is.
	Done(copy int) bool
	Wait(copy int)
	// In begins to set memory of the Ops to src.
	In(dst unsafe.Pointer, src []byte)
	// Land lets everything that is called later find done what In has begun.
	Land()
	// Settle waits for all copies that were begun.
	Settle()
}

// CrossingOf is that of a Wire; of another Ops AtOnce.
func CrossingOf(o Ops, a *mapped.Arena) Crossing {
	if w, ok := o.(Wire); ok {
		return w.Crossing(a)
	}
	return SyncCrossing(o)
}

// SyncCrossing is a Crossing whose copies are Uploads and Downloads.
func SyncCrossing(o Ops) Crossing { return syncCrossing{o} }

// syncCrossing is copies that their caller waits for.
type syncCrossing struct{ Ops }

func (c syncCrossing) Pin([]byte)    {}
func (c syncCrossing) Mark()         {}
func (c syncCrossing) Wait(int)      {}
func (c syncCrossing) Done(int) bool { return true }
func (c syncCrossing) Land()         {}
func (c syncCrossing) Settle()       {}

func (c syncCrossing) Out(dst []byte, src unsafe.Pointer) int {
	if len(dst) > 0 {
		c.Download(dst, src)
	}
	return 0
}

func (c syncCrossing) In(dst unsafe.Pointer, src []byte) {
	if len(src) > 0 {
		c.Upload(dst, src)
	}
}

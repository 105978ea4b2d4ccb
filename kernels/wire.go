package kernels

import (
	"unsafe"

	"siafu/internal/mapped"
)

// Wire has the operations on rows for other ranks: an Ops with device memory copies
// them to the host during computation, and may encode and decode them on the device.
//
// Encoded rows are payloads of package halo/codec. With 16 bits an element they are BF16, row
// by row. With 8, 4 or 2 bits they are the offsets of Grids, one per GridRows rows, their
// steps, and the codes of each row, rounded up to bytes. The slack after codes is not written.
// Payloads start at a multiple of 2.
type Wire interface {
	// Copier makes a Copier. It is valid until a is freed.
	Copier(a *mapped.Arena) Copier
	// EncodeRows sets dst to the payload of rows.
	EncodeRows(dst Vector[uint8], bits int, rows Outgoing)
	// DecodeRows sets rows to the decoded src, or adds it.
	DecodeRows(rows Incoming, bits int, src Vector[uint8])
}

// Outgoing has rows to encode: row i is row Index[i] of X or, after its last, of More; without
// Index it is row i. Random rounding uses IDs, and the Rounding Rows for rows of X, Sums for
// rows of More.
type Outgoing struct {
	X, More    Mat
	Index, IDs Vector[uint32]
	Rows, Sums Rounding
	// Lost [n x X.Cols] is subtracted, and set to the encoding error of the difference: 0 for
	// a row that is not finite. none: no error feedback.
	Lost Mat
	// Raw [n x X.Cols] gets, at the same indices, the rows that no Grid spans, whose step is
	// RawStep. It may be X without Index.
	Raw Mat
}

// Part returns the rows from..to-1.
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

// Incoming has destinations of decoded rows, indexed like Outgoing's. Rows are distinct. Raw
// [n x X.Cols] has the rows whose step is RawStep; none: these stay unchanged.
type Incoming struct {
	X, More Mat
	Index   Vector[uint32]
	Len     int
	Raw     Mat
	Add     bool
}

// Part returns the rows from..to-1.
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

// Copier copies between host memory and the memory of an Ops, while the Ops computes. One
// goroutine at a time calls the methods. The caller must not touch the host memory of a running
// copy: of a download until Wait, of an upload until Settle.
type Copier interface {
	// Pin page-locks an array, if the system allows it, to make copies of the array faster. The
	// array must be valid as long as the Copier and have its own pages (mapped.MakeApart).
	Pin(b []byte)
	// Mark makes later copies wait for all earlier calls, on any Ops of the rank, but not for
	// later calls.
	Mark()
	// StartDownload starts to copy memory of the Ops to dst, and returns the number of the
	// download.
	StartDownload(dst []byte, src unsafe.Pointer) int
	// Done reports whether a download has ended. Wait returns when it has ended.
	Done(copy int) bool
	Wait(copy int)
	// StartUpload starts to copy src to memory of the Ops.
	StartUpload(dst unsafe.Pointer, src []byte)
	// AwaitUploads makes all later calls of the Ops wait for the started uploads.
	AwaitUploads()
	// Settle waits for all started copies.
	Settle()
}

// Copier implements Ops.
func (t *Team) Copier(*mapped.Arena) Copier { return SyncCopier(t) }

const noCoding = "kernels: this Ops has no RowCoding"

// EncodeRows and DecodeRows panic: package halo/codec encodes rows in host memory.
func (t *Team) EncodeRows(Vector[uint8], int, Outgoing) { panic(noCoding) }
func (t *Team) DecodeRows(Incoming, int, Vector[uint8]) { panic(noCoding) }

// SyncCopier returns a Copier whose copies are Uploads and Downloads.
func SyncCopier(m Memory) Copier { return syncCopier{m} }

// syncCopier copies synchronously.
type syncCopier struct{ Memory }

func (c syncCopier) Pin([]byte)    {}
func (c syncCopier) Mark()         {}
func (c syncCopier) Wait(int)      {}
func (c syncCopier) Done(int) bool { return true }
func (c syncCopier) AwaitUploads() {}
func (c syncCopier) Settle()       {}

func (c syncCopier) StartDownload(dst []byte, src unsafe.Pointer) int {
	if len(dst) > 0 {
		c.Download(dst, src)
	}
	return 0
}

func (c syncCopier) StartUpload(dst unsafe.Pointer, src []byte) {
	if len(src) > 0 {
		c.Upload(dst, src)
	}
}

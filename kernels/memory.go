package kernels

import (
	"unsafe"

	"siafu/internal/mapped"
)

// Memory of an Ops, and copies between it and host memory.

// NewMat returns a matrix [rows x cols] of zeros in the memory of o. It is valid as long as a.
func NewMat(o Ops, a *mapped.Arena, rows, cols int) Mat {
	at := o.Alloc(a, bytesOf(rows*cols, bytesOfFloat))
	return Mat{Rows: rows, Cols: cols, at: at, remote: o.Remote()}
}

// NewHalf allocates a matrix of BF16 like NewMat, with behind elements after its last row:
// HalfSlack for SpMM, else 0.
func NewHalf(o Ops, a *mapped.Arena, rows, cols, behind int) Mat {
	at := o.Alloc(a, bytesOf(rows*cols+behind, bytesOfHalf))
	return Mat{Rows: rows, Cols: cols, at: at, half: true, remote: o.Remote()}
}

// NewVector returns n zeros in the memory of o. They are valid as long as a.
func NewVector[T mapped.Elem](o Ops, a *mapped.Arena, n int) Vector[T] {
	var zero T
	return Vector[T]{at: o.Alloc(a, bytesOf(n, int(unsafe.Sizeof(zero)))), n: n, remote: o.Remote()}
}

// bytesOf returns the bytes of n elements.
func bytesOf(n, elem int) int {
	if n < 0 || n*elem/elem != n {
		panic("kernels: length overflows")
	}
	return n * elem
}

// Place returns x in the memory of o: x itself if that is this process's memory, else a copy,
// which is valid as long as a.
func Place[T mapped.Elem](o Ops, a *mapped.Arena, x []T) Vector[T] {
	if !o.Remote() || len(x) == 0 {
		return HostVector(x)
	}
	v := NewVector[T](o, a, len(x))
	o.Upload(v.at, mapped.Bytes(x))
	return v
}

// PlaceMat places a matrix [rows x cols] like Place. Read and Write copy between host and Ops
// memory.
func PlaceMat(o Ops, a *mapped.Arena, rows, cols int, x []float32) Mat {
	m := HostMat(rows, cols, x)
	if !o.Remote() || m.at == nil {
		m.remote = o.Remote()
		return m
	}
	v := Place(o, a, x[:rows*cols])
	m.at, m.remote = v.at, true
	return m
}

// PlaceHalf places a matrix [rows x cols] of BF16 like PlaceMat, but in the memory of a device as
// float32.
func PlaceHalf(o Ops, a *mapped.Arena, rows, cols int, x []BF16) Mat {
	if !o.Remote() {
		return HostHalf(rows, cols, x)
	}
	return Widened(o, a, HostHalf(rows, cols, x))
}

// widenedAtOnce is the number of elements that Widened copies to a device at a time.
const widenedAtOnce = 1 << 20

// Widened returns a float32 copy, in the memory of o, of a BF16 matrix in this process's memory. It is
// valid as long as a.
func Widened(o Ops, a *mapped.Arena, x Mat) Mat {
	dst := NewMat(o, a, x.Rows, x.Cols)
	a.Fill(func() {
		var buffer []float32
		for lo, rows := 0, max(widenedAtOnce/max(x.Cols, 1), 1); lo < x.Rows; lo += rows {
			part := dst.Part(lo, min(lo+rows, x.Rows))
			wide := scratch(&buffer, part.Rows*part.Cols)
			WidenRow(wide, x.Part(lo, lo+part.Rows).HostHalf(0), false)
			Write(o, part, wide)
		}
	})
	return dst
}

// Read sets dst, which may be the memory of src, to the elements of src.
func Read(o Ops, dst []float32, src Mat) {
	n := src.Rows * src.Cols
	if len(dst) < n {
		panic(shortDst)
	}
	switch {
	case n == 0 || src.at == unsafe.Pointer(unsafe.SliceData(dst)):
	case src.remote:
		o.Download(mapped.Bytes(dst[:n]), src.at)
	default:
		copy(dst, src.Host())
	}
}

// Write sets dst to src, which may be its memory.
func Write(o Ops, dst Mat, src []float32) {
	n := dst.Rows * dst.Cols
	if len(src) < n {
		panic(shortInput)
	}
	switch {
	case n == 0 || dst.at == unsafe.Pointer(unsafe.SliceData(src)):
	case dst.remote:
		o.Upload(dst.at, mapped.Bytes(src[:n]))
	default:
		copy(dst.Host(), src)
	}
}

// CopyAcross copies src to dst, which has the same shape and type. One is in this process's
// memory, the other in the memory of o.
func CopyAcross(o Ops, dst, src Mat) {
	n := dst.Bytes()
	switch {
	case n != src.Bytes():
		panic(shortInput)
	case n == 0:
	case src.remote:
		o.Download(unsafe.Slice((*byte)(dst.at), n), src.at)
	default:
		o.Upload(dst.at, unsafe.Slice((*byte)(src.at), n))
	}
}

// Fetch returns the elements of m for reading: in place if in this process's memory, else a
// copy, in *buffer if that is long enough.
func Fetch(o Ops, m Mat, buffer *[]float32) []float32 {
	if !m.remote {
		return m.Host()
	}
	dst := scratch(buffer, m.Rows*m.Cols)
	Read(o, dst, m)
	return dst
}

// WriteVector fills dst with src, of the same length.
func WriteVector[T mapped.Elem](o Ops, dst Vector[T], src []T) {
	switch {
	case len(src) != dst.n:
		panic(shortInput)
	case dst.remote:
		o.Upload(dst.at, mapped.Bytes(src))
	default:
		copy(dst.Host(), src)
	}
}

// FetchVector fetches a vector like Fetch.
func FetchVector[T mapped.Elem](o Ops, v Vector[T]) []T {
	if !v.remote {
		return v.Host()
	}
	dst := make([]T, v.n)
	o.Download(mapped.Bytes(dst), v.at)
	return dst
}

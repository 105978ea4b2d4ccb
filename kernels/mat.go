package kernels

import (
	"unsafe"

	"siafu/internal/mapped"
)

// Mat is a matrix [Rows x Cols], row-major and without gaps, of float32 or of BF16, in the
// memory of an Ops: this process's memory, or a device's, whose address only the Ops can
// dereference. It is a small value; copies are views of the same elements. The zero Mat means
// none, like nil.
//
//	at       its first element, nil where there is none
//	behind   rows that follow in the matrix that it is a part of
//
// Design note: an address is an unsafe.Pointer for both kinds of memory, so that views of rows
// are made in the same way, and the heap of tests under the race detector stays alive. Device
// addresses are outside Go's heap, so that the collector ignores them.
type Mat struct {
	Rows, Cols int

	at     unsafe.Pointer
	behind int
	half   bool
	remote bool
}

// Vector is n elements of T in the memory of an Ops, like a Mat. The zero Vector means none.
type Vector[T mapped.Elem] struct {
	at     unsafe.Pointer
	n      int
	remote bool
}

const (
	bytesOfFloat = 4
	bytesOfHalf  = 2
)

// HostMat returns x, of at least rows x cols floats, as a matrix.
func HostMat(rows, cols int, x []float32) Mat {
	checkMatrix(x, rows, cols, shortInput)
	return Mat{Rows: rows, Cols: cols, at: start(x, rows*cols)}
}

// HostHalf returns x, of at least rows x cols elements, as a matrix.
func HostHalf(rows, cols int, x []BF16) Mat {
	if len(x) < rows*cols {
		panic(shortInput)
	}
	return Mat{Rows: rows, Cols: cols, at: start(x, rows*cols), half: true}
}

// HostVector returns x as a vector.
func HostVector[T mapped.Elem](x []T) Vector[T] { return Vector[T]{at: start(x, len(x)), n: len(x)} }

// start returns the address of x's first element, or nil if wanted is 0: a pointer past the
// end would keep other memory alive.
func start[T any](x []T, wanted int) unsafe.Pointer {
	if wanted == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(x))
}

// IsNil reports whether m is the zero Mat. A matrix without rows is not.
func (m Mat) IsNil() bool { return m == Mat{} }

// Remote reports whether m is in device memory.
func (m Mat) Remote() bool { return m.remote }

// Half reports whether m holds BF16.
func (m Mat) Half() bool { return m.half }

// Address returns the address of the first element, for implementations of Ops.
func (m Mat) Address() unsafe.Pointer { return m.at }

// Bytes returns the size of m in bytes.
func (m Mat) Bytes() int { return m.Rows * m.Cols * m.elem() }

func (m Mat) elem() int {
	if m.half {
		return bytesOfHalf
	}
	return bytesOfFloat
}

// AsHost returns m as a matrix in this process's memory, for an Ops that has made its address
// accessible.
func (m Mat) AsHost() Mat {
	m.remote = false
	return m
}

// Host returns m [Rows·Cols], which must hold floats in this process's memory.
func (m Mat) Host() []float32 {
	if m.half {
		panic("kernels: a bfloat16 matrix, expected float32")
	}
	m.checkHost()
	return unsafe.Slice((*float32)(m.at), m.Rows*m.Cols)
}

// HostHalf returns a matrix of BF16 like Host, with the behind elements after its last row that
// NewHalf allocated.
func (m Mat) HostHalf(behind int) []BF16 {
	if !m.half {
		panic("kernels: a float32 matrix, expected bfloat16")
	}
	m.checkHost()
	if m.at == nil {
		return nil
	}
	return unsafe.Slice((*BF16)(m.at), m.Rows*m.Cols+behind)
}

// HostBytes returns m, of either type, as bytes in this process's memory.
func (m Mat) HostBytes() []byte {
	m.checkHost()
	if m.at == nil {
		return nil
	}
	return unsafe.Slice((*byte)(m.at), m.Bytes())
}

func (m Mat) checkHost() {
	if m.remote {
		panic("kernels: a device matrix is read without its Ops")
	}
}

// Part returns rows [lo, hi).
func (m Mat) Part(lo, hi int) Mat {
	if lo < 0 || lo > hi || hi > m.Rows {
		panic("kernels: rows out of range")
	}
	m.behind += m.Rows - hi
	m.at = shifted(m.at, lo*m.Cols*m.elem(), (hi-lo)*m.Cols)
	m.Rows = hi - lo
	return m
}

// shifted returns an address increased by bytes, or nil without elements.
func shifted(at unsafe.Pointer, bytes, elements int) unsafe.Pointer {
	if elements == 0 || at == nil {
		return nil
	}
	return unsafe.Add(at, bytes)
}

// Whole returns the matrix of the given number of rows that m is the first part of.
func (m Mat) Whole(rows int) Mat {
	if rows < 0 || rows > m.Rows+m.behind {
		panic("kernels: rows out of range")
	}
	if m.at == nil && rows*m.Cols > 0 {
		panic("kernels: an empty part does not locate its matrix")
	}
	m.behind += m.Rows - rows
	m.Rows = rows
	return m
}

// Reshape returns the first rows x cols elements of m as a matrix.
func (m Mat) Reshape(rows, cols int) Mat {
	if rows < 0 || cols < 0 || rows*cols > m.Rows*m.Cols {
		panic("kernels: matrix has too few elements")
	}
	m.Rows, m.Cols, m.behind = rows, cols, 0
	m.at = shifted(m.at, 0, rows*cols)
	return m
}

// Len returns the number of elements.
func (v Vector[T]) Len() int { return v.n }

// Remote reports whether v is in device memory.
func (v Vector[T]) Remote() bool { return v.remote }

// Address returns the address of the first element, for implementations of Ops.
func (v Vector[T]) Address() unsafe.Pointer { return v.at }

// Bytes returns the size of v in bytes.
func (v Vector[T]) Bytes() int {
	var zero T
	return v.n * int(unsafe.Sizeof(zero))
}

// AsHost returns v as a vector in this process's memory, like Mat.AsHost.
func (v Vector[T]) AsHost() Vector[T] {
	v.remote = false
	return v
}

// Host returns v, which must be in this process's memory; nil if it is empty.
func (v Vector[T]) Host() []T {
	if v.remote {
		panic("kernels: a device vector is read without its Ops")
	}
	return unsafe.Slice((*T)(v.at), v.n)
}

// Part returns elements [lo, hi); the zero Vector for the zero Vector.
func (v Vector[T]) Part(lo, hi int) Vector[T] {
	if v.n == 0 {
		return v
	}
	if lo < 0 || lo > hi || hi > v.n {
		panic("kernels: elements out of range")
	}
	var zero T
	v.at = shifted(v.at, lo*int(unsafe.Sizeof(zero)), hi-lo)
	v.n = hi - lo
	return v
}

// From returns the elements from lo on; the zero Vector for the zero Vector.
func (v Vector[T]) From(lo int) Vector[T] { return v.Part(lo, v.n) }

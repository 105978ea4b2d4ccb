package npy

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Array is one array in its format on disk.
type Array struct {
	Shape   []int
	Fortran bool   // column-major
	Type    string // NumPy's descriptor, such as "<f4"
	Data    []byte // product of Shape elements

	name string // its origin, for messages
}

// Called returns the array with another name for messages.
func (a Array) Called(name string) *Array { a.name = name; return &a }

// Len returns the number of elements: the product of the shape, 1 for a scalar.
func (a *Array) Len() int {
	n := 1
	for _, s := range a.Shape {
		n *= s
	}
	return n
}

func (a *Array) bad(format string, args ...any) error {
	return fault.New(fault.Data, "read npy", a.name, format, args...)
}

// layout checks that type, shape and bytes agree: a caller may have made the Array.
func (a *Array) layout() (element, int, error) {
	e, err := parseType(a.Type)
	if err != nil {
		return e, 0, a.bad("%v", err)
	}
	n, size, err := count(a.Shape, e.bytes)
	if err != nil {
		return e, 0, a.bad("%v", err)
	}
	if size != len(a.Data) {
		return e, 0, a.bad("shape %v of type %s needs %d bytes, there are %d", a.Shape, a.Type, size, len(a.Data))
	}
	return e, n, nil
}

// Float32s converts a to float32, row-major, from any boolean or numeric type. If a is float32,
// row-major and aligned, the result shares its memory.
func (a *Array) Float32s() ([]float32, error) {
	e, n, err := a.layout()
	if err != nil {
		return nil, err
	}
	if e == (element{kind: 'f', bytes: 4}) && a.inPlace(4) {
		return mapped.Cast[float32](a.Data), nil
	}
	out := make([]float32, n)
	return out, a.CopyFloat32s(out)
}

// CopyFloat32s copies the elements to dst [Len], converted as by Float32s.
func (a *Array) CopyFloat32s(dst []float32) error {
	e, n, err := a.layout()
	if err != nil {
		return err
	}
	if len(dst) != n {
		panic("npy: dst has the wrong length")
	}
	if e == (element{kind: 'f', bytes: 4}) && a.rowMajor() && nativeLittle {
		copy(mapped.Bytes(dst), a.Data)
		return nil
	}
	value, err := e.float()
	if err != nil {
		return a.bad("%v", err)
	}
	first, beyond := n, 0.0
	a.each(n, func(from, to int) {
		x := value(a.Data[from*e.bytes:])
		dst[to] = float32(x)
		if math.Abs(x) > math.MaxFloat32 && !math.IsInf(x, 0) && math.IsInf(float64(dst[to]), 0) && to < first {
			first, beyond = to, x
		}
	})
	if first < n {
		return a.bad("element %d is %g, which is beyond the range of float32, %.2g", first, beyond, math.MaxFloat32)
	}
	return nil
}

// Int64s converts a to int64, row-major: from integers and booleans, and from
// floats that are whole numbers.
func (a *Array) Int64s() ([]int64, error) { return wholes[int64](a, math.MinInt64, math.MaxInt64) }

// Uint32s converts a to uint32, row-major, from the types that Int64s converts. A value outside
// 0..2³²-1 is a fault. If a holds 32-bit integers, row-major and aligned, the result shares its
// memory.
func (a *Array) Uint32s() ([]uint32, error) {
	e, _, err := a.layout()
	if err != nil {
		return nil, err
	}
	if e.bytes == 4 && (e.kind == 'u' || e.kind == 'i') && !e.big && a.inPlace(4) {
		out := mapped.Cast[uint32](a.Data)
		if e.kind == 'u' || !slices.ContainsFunc(out, func(x uint32) bool { return int32(x) < 0 }) {
			return out, nil
		}
	}
	return wholes[uint32](a, 0, math.MaxUint32)
}

// wholes converts whole numbers from least to most.
func wholes[T int64 | uint32](a *Array, least, most int64) ([]T, error) {
	e, n, err := a.layout()
	if err != nil {
		return nil, err
	}
	value, err := e.integer()
	if err != nil {
		return nil, a.bad("%v", err)
	}
	out, first, where := make([]T, n), n, 0
	a.each(n, func(from, to int) {
		v, ok := value(a.Data[from*e.bytes:])
		if out[to] = T(v); (!ok || v < least || v > most) && to < first {
			first, where = to, from
		}
	})
	if first == n {
		return out, nil
	}
	if v, ok := value(a.Data[where*e.bytes:]); ok {
		return nil, a.bad("element %d is %d, expected %d to %d", first, v, least, most)
	}
	return nil, a.bad("element %d of type %s is not a whole number of 64 bits", first, a.Type)
}

// Strings returns the strings of an array of type U or S, row-major, without zero padding.
func (a *Array) Strings() ([]string, error) {
	e, n, err := a.layout()
	if err != nil {
		return nil, err
	}
	if e.kind != 'U' && e.kind != 'S' {
		return nil, &fault.Error{Op: "read npy", Kind: fault.Data, Path: a.name, Err: typeError("type " + a.Type + " holds no words")}
	}
	out := make([]string, n)
	a.each(n, func(from, to int) {
		out[to] = e.word(a.Data[from*e.bytes : (from+1)*e.bytes])
	})
	return out, nil
}

// rowMajor reports whether elements are in row-major order: with at most one dimension both
// orders are the same.
func (a *Array) rowMajor() bool { return !a.Fortran || len(a.Shape) < 2 }

// each calls f for every element with its position on disk and its row-major position.
func (a *Array) each(n int, f func(from, to int)) {
	if a.rowMajor() {
		for i := range n {
			f(i, i)
		}
		return
	}
	// The first index moves fastest on disk. stride is the step of each dimension in row-major
	// order.
	stride := make([]int, len(a.Shape))
	step := 1
	for d := len(a.Shape) - 1; d >= 0; d-- {
		stride[d] = step
		step *= a.Shape[d]
	}
	index := make([]int, len(a.Shape))
	to := 0
	for from := range n {
		f(from, to)
		for d := range index {
			index[d]++
			to += stride[d]
			if index[d] < a.Shape[d] {
				break
			}
			to -= index[d] * stride[d]
			index[d] = 0
		}
	}
}

// inPlace reports whether a's bytes are the elements of a row-major slice of little-endian
// numbers of the given size.
func (a *Array) inPlace(size uintptr) bool {
	return a.rowMajor() && nativeLittle && uintptr(unsafe.Pointer(unsafe.SliceData(a.Data)))%size == 0
}

var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Float16 returns the value of an IEEE 754 half.
func Float16(h uint16) float64 {
	// A half has the layout of a float32 with 13 fewer bits of fraction and 112 less in the
	// exponent.
	f := math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112
	if h&0x7c00 == 0x7c00 {
		f = math.Float32frombits(0x7f800000 | uint32(h&0x3ff)<<13)
	}
	return math.Copysign(float64(f), float64(int16(h)))
}

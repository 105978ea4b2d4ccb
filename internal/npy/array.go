package npy

import (
	"encoding/binary"
	"math"
	"unsafe"

	"siafu/internal/fault"
)

// Array is one array in its format on disk.
type Array struct {
	Shape   []int
	Fortran bool   // column-major
	Type    string // NumPy's descriptor, such as "<f4"
	Data    []byte // product of Shape elements

	name string // where it came from, for messages
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

// bad returns a Data fault about a.
func (a *Array) bad(format string, args ...any) error {
	return fault.New(fault.Data, "read npy", a.name, format, args...)
}

// layout checks that type, shape and bytes agree; an Array may have been put
// together by a caller.
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

// Float32s converts a to float32, row-major, from any boolean or numeric type.
// Where a is float32, row-major and aligned already, the result shares its
// memory.
func (a *Array) Float32s() ([]float32, error) {
	e, n, err := a.layout()
	if err != nil {
		return nil, err
	}
	if e == (element{kind: 'f', bytes: 4}) && a.rowMajor() && nativeLittle && aligned(a.Data, 4) {
		return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(a.Data))), n), nil
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
	value, err := e.float()
	if err != nil {
		return a.bad("%v", err)
	}
	a.each(n, func(from, to int) {
		dst[to] = float32(value(a.Data[from*e.bytes:]))
	})
	return nil
}

// Int64s converts a to int64, row-major: from integers and booleans, and from
// floats that are whole numbers.
func (a *Array) Int64s() ([]int64, error) {
	e, n, err := a.layout()
	if err != nil {
		return nil, err
	}
	out := make([]int64, n)
	value, err := e.integer()
	if err != nil {
		return nil, a.bad("%v", err)
	}
	wrong := -1
	a.each(n, func(from, to int) {
		v, ok := value(a.Data[from*e.bytes:])
		if !ok && (wrong < 0 || to < wrong) {
			wrong = to
		}
		out[to] = v
	})
	if wrong >= 0 {
		return nil, a.bad("element %d of type %s is not a whole number of 64 bits", wrong, a.Type)
	}
	return out, nil
}

// Uint32s converts a to uint32, row-major, from the types that Int64s takes;
// a value outside 0..2³²-1 is a fault. Where a holds 32-bit integers,
// row-major and aligned already, the result shares its memory.
func (a *Array) Uint32s() ([]uint32, error) {
	e, n, err := a.layout()
	if err != nil {
		return nil, err
	}
	if e.bytes == 4 && e.kind != 'f' && e.kind != 'U' && e.kind != 'S' && !e.big && a.rowMajor() && nativeLittle && aligned(a.Data, 4) {
		out := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(a.Data))), n)
		if e.kind == 'i' {
			return out, a.noNegative(out)
		}
		return out, nil
	}
	value, err := e.integer()
	if err != nil {
		return nil, a.bad("%v", err)
	}
	out := make([]uint32, n)
	var wrong error
	first := n
	a.each(n, func(from, to int) {
		v, ok := value(a.Data[from*e.bytes:])
		switch {
		case ok && v >= 0 && v <= math.MaxUint32:
			out[to] = uint32(v)
		case to >= first:
		case ok:
			wrong, first = a.bad("element %d is %d, expected 0 to %d", to, v, uint32(math.MaxUint32)), to
		default:
			wrong, first = a.bad("element %d of type %s is not a whole number", to, a.Type), to
		}
	})
	if wrong != nil {
		return nil, wrong
	}
	return out, nil
}

// noNegative refuses values that were negative as int32.
func (a *Array) noNegative(v []uint32) error {
	for i, x := range v {
		if int32(x) < 0 {
			return a.bad("element %d is %d, expected 0 to %d", i, int32(x), uint32(math.MaxUint32))
		}
	}
	return nil
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

// each calls f for every element with its position on disk and its row-major
// position.
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

// aligned reports whether b starts at a multiple of size.
func aligned(b []byte, size uintptr) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%size == 0
}

// nativeLittle reports whether this machine is little endian.
var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Float16 returns the value of an IEEE 754 half.
func Float16(h uint16) float64 {
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	exponent, fraction := int(h>>10&31), float64(h&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

package wire

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"siafu/internal/mapped"
)

// Writer appends numbers of 8 bytes, little-endian, and arrays after their length in bytes.
type Writer struct{ B []byte }

// Numbers appends numbers.
func (w *Writer) Numbers(list ...int) {
	for _, n := range list {
		w.B = binary.LittleEndian.AppendUint64(w.B, uint64(n))
	}
}

// Bit returns 1 or 0, which Reader.Flag reads.
func Bit(v bool) int {
	if v {
		return 1
	}
	return 0
}

// Bytes appends an array.
func (w *Writer) Bytes(x []byte) {
	w.Numbers(len(x))
	w.B = append(w.B, x...)
}

// Write implements io.Writer: it appends bytes without their length.
func (w *Writer) Write(x []byte) (int, error) {
	w.B = append(w.B, x...)
	return len(x), nil
}

// WriteArrays writes a list of arrays as a Writer appends them.
func WriteArrays(to io.Writer, list [][]byte) error {
	for _, x := range list {
		if err := binary.Write(to, binary.LittleEndian, uint64(len(x))); err != nil {
			return err
		}
		if _, err := to.Write(x); err != nil {
			return err
		}
	}
	return nil
}

// Arrays reads a list of arrays to the end of b, without a copy.
func Arrays(b []byte) (list [][]byte, err error) {
	r := Reader{Rest: b}
	for len(r.Rest) > 0 && r.Err == nil {
		list = append(list, slices.Clip(r.Bytes(0, len(b))))
	}
	return list, r.Err
}

// Reader reads what a Writer has appended. It never trusts the bytes. After its first error it returns
// zeros.
type Reader struct {
	Rest []byte
	Err  error
}

// Fail records an error, unless there is one already.
func (r *Reader) Fail(err error) { r.Err = cmp.Or(r.Err, err) }

// Take reads n bytes, without a copy.
func (r *Reader) Take(n int) []byte {
	if r.Err != nil || n < 0 || n > len(r.Rest) {
		r.Fail(io.ErrUnexpectedEOF)
		return nil
	}
	x := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return x
}

// Number reads a number.
func (r *Reader) Number() int {
	b := r.Take(8)
	if b == nil {
		return 0
	}
	return int(binary.LittleEndian.Uint64(b))
}

// Flag reads a flag.
func (r *Reader) Flag() bool { return r.Number() == 1 }

// Count reads the length of a list whose elements have at least 8 bytes.
func (r *Reader) Count() int {
	n := r.Number()
	if n < 0 || n > len(r.Rest)/8 {
		r.Fail(io.ErrUnexpectedEOF)
		return 0
	}
	return n
}

// Bytes reads an array of at least least and at most most bytes, without a copy.
func (r *Reader) Bytes(least, most int) []byte {
	n := r.Number()
	if r.Err == nil && (n < least || n > most || n > len(r.Rest)) {
		r.Fail(fmt.Errorf("an array has %d bytes of %d, want %d", n, len(r.Rest), most))
	}
	return r.Take(n)
}

// Array reads an array of n elements, or of any number if n is negative, to the heap.
func Array[T mapped.Elem](r *Reader, n int) []T {
	var one [1]T
	least, most := 0, len(r.Rest)
	if n >= 0 {
		least = n * len(mapped.Bytes(one[:]))
		most = least
	}
	b := r.Bytes(least, most)
	x := Elements[T](b)
	if len(mapped.Bytes(x)) != len(b) {
		r.Fail(io.ErrUnexpectedEOF)
	}
	return x
}

// Elements copies bytes to elements on the heap.
func Elements[T mapped.Elem](b []byte) []T {
	var one [1]T
	x := make([]T, len(b)/len(mapped.Bytes(one[:])))
	copy(mapped.Bytes(x), b)
	return x
}

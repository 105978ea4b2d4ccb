package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"siafu/graph/durable"
	"siafu/graph/fault"
)

const opWrite = "write npy"

// HeaderFloat32 is the header of a row-major float32 array [rows x cols],
// padded so that the data that follows it starts at a multiple of 64. Row r
// lies at byte len(header) + 4·cols·r of the file, so that several ranks can
// write their rows side by side.
func HeaderFloat32(rows, cols int) []byte { return encodeHeader("<f4", []int{rows, cols}) }

// encodeHeader is a version 1 header: magic, version, length, text.
func encodeHeader(descr string, shape []int) []byte {
	var dims strings.Builder
	for i, n := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		fmt.Fprint(&dims, n)
	}
	if len(shape) == 1 {
		dims.WriteByte(',') // Python's tuple of one
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	// The text ends in a newline and is padded with blanks before it.
	total := (10 + len(text) + 1 + 63) / 64 * 64
	h := make([]byte, 0, total)
	h = append(h, magic+"\x01\x00"...)
	h = binary.LittleEndian.AppendUint16(h, uint16(total-10))
	h = append(h, text...)
	for len(h) < total-1 {
		h = append(h, ' ')
	}
	return append(h, '\n')
}

// WriteFloat32 writes a row-major float32 array of the given shape to path;
// fill writes its values as little-endian bytes. The file appears whole or not
// at all.
func WriteFloat32(path string, shape []int, fill func(w io.Writer) error) error {
	return write(path, "<f4", shape, 4, fill)
}

// WriteFloat32s is WriteFloat32 of values that are in memory, [product of
// shape].
func WriteFloat32s(path string, shape []int, v []float32) error {
	return WriteFloat32(path, shape, func(w io.Writer) error {
		return eachBlock(w, len(v), 4, func(b []byte, i int) {
			binary.LittleEndian.PutUint32(b, math.Float32bits(v[i]))
		})
	})
}

// WriteInt64s writes a row-major int64 array to path, v being [product of
// shape].
func WriteInt64s(path string, shape []int, v []int64) error {
	return write(path, "<i8", shape, 8, func(w io.Writer) error {
		return eachBlock(w, len(v), 8, func(b []byte, i int) {
			binary.LittleEndian.PutUint64(b, uint64(v[i]))
		})
	})
}

// eachBlock writes n elements of the given size, each encoded by put.
func eachBlock(w io.Writer, n, size int, put func(b []byte, i int)) error {
	const most = 1 << 13
	block := make([]byte, 0, most*size)
	for i := 0; i < n; {
		m := min(most, n-i)
		block = block[:m*size]
		for k := range m {
			put(block[k*size:], i+k)
		}
		if _, err := w.Write(block); err != nil {
			return err
		}
		i += m
	}
	return nil
}

// write writes a header and what fill writes, which must be as long as the
// shape says.
func write(path, descr string, shape []int, elemBytes int, fill func(w io.Writer) error) error {
	_, size, err := count(shape, elemBytes)
	if err != nil {
		return fault.New(fault.Runtime, opWrite, path, "%v", err)
	}
	return durable.Write(opWrite, path, func(out io.Writer) error {
		if _, err := out.Write(encodeHeader(descr, shape)); err != nil {
			return err
		}
		w := &counter{w: out}
		if err := fill(w); err != nil {
			return err
		}
		if w.n != int64(size) {
			return fault.New(fault.Runtime, opWrite, path, "shape %v needs %d bytes, %d were written", shape, size, w.n)
		}
		return nil
	})
}

// counter counts what is written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

package npy

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Header returns the header of a row-major array in a file: version 1 of the format, padded so
// that the data start at a multiple of 64. descr is NumPy's name of the element type: <f4 is a
// float32, <i8 an int64. Several ranks can write rows of one array in parallel, each at its
// offset after the header.
func Header(descr string, shape ...int) []byte {
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

package history

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"siafu/kernels"
)

// Format is the storage format of rows. Every row of a given width takes the same
// number of bytes.
type Format uint8

// The formats: unchanged, rounded to bfloat16, or rounded stochastically to eight bits on a
// grid per row.
const (
	Float32 Format = iota
	BF16
	Int8
)

// Formats holds the name of each Format.
var Formats = [...]string{Float32: "float32", BF16: "bf16", Int8: "int8"}

// FormatOf returns the format with a name.
func FormatOf(name string) (Format, bool) {
	i := slices.Index(Formats[:], name)
	return Format(max(i, 0)), i >= 0
}

const int8Bits = 8

// Stride returns the bytes of a row of cols columns.
func (f Format) Stride(cols int) int {
	switch f {
	case BF16:
		return 2 * cols
	case Int8:
		return gridBytes + kernels.CodeBytes(cols, int8Bits)
	}
	return 4 * cols
}

// gridBytes is the size of offset and step of a row in eight bits. unbounded is the step of a
// row with a NaN, an infinity or numbers beyond any grid: it is read as NaN.
const (
	gridBytes = 4
	unbounded = kernels.BF16(0x7fc0)
)

// put writes row to dst [Stride bytes]. buffer holds the row's codes plus kernels.CodeSlack bytes.
func (f Format) put(dst []byte, row []float32, draws *kernels.Rounding, id uint32, buffer []byte) {
	switch f {
	case BF16:
		kernels.NarrowRow(halves(dst), row)
	case Int8:
		lo, hi, ok := kernels.Extent(row)
		grid := kernels.Grid{}
		if ok {
			grid, ok = kernels.NewGrid(lo, hi, int8Bits)
		}
		if !ok {
			grid = kernels.Grid{Step: unbounded}
		} else {
			draws.Codes(buffer, row, grid, int8Bits, id)
			copy(dst[gridBytes:], buffer)
		}
		binary.LittleEndian.PutUint16(dst, uint16(grid.Offset))
		binary.LittleEndian.PutUint16(dst[2:], uint16(grid.Step))
	default:
		copy(floats(dst), row)
	}
}

// get reads a row. src has kernels.CodeSlack more bytes after it.
func (f Format) get(row []float32, src []byte) {
	switch f {
	case BF16:
		kernels.WidenRow(row, halves(src[:2*len(row)]), false)
	case Int8:
		grid := kernels.Grid{Offset: kernels.BF16(binary.LittleEndian.Uint16(src)), Step: kernels.BF16(binary.LittleEndian.Uint16(src[2:]))}
		grid.Values(row, src[gridBytes:], int8Bits, false)
	default:
		copy(row, floats(src[:4*len(row)]))
	}
}

// floats and halves return b as numbers.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func halves(b []byte) []kernels.BF16 {
	return unsafe.Slice((*kernels.BF16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

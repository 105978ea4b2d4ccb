package codec

import (
	"encoding/binary"
	"slices"

	"siafu/kernels"
)

var int8Kind = kind{
	entry: entry{Name: "int8", Help: "numbers rounded at random to one of 255 steps s from a row's minimum to its maximum: " +
		"an error of at most s with mean 0 (Gupta et al., ICML'15, section 3)"},
	make: always(&uniform{4, "int8", 8}), class: "int8", auto: []string{"", "+s2"},
}

var int4Kind = kind{
	entry: entry{Name: "int4", Help: "as `int8`, with 15 steps"},
	make:  always(&uniform{3, "int4", 4}), class: "int4", auto: []string{"", "+s2", "+zstd"},
}

var int2Kind = kind{
	entry: entry{Name: "int2", Help: "as `int8`, with 3 steps"},
	make:  always(&uniform{2, "int2", 2}), hidden: true,
}

// uniform rounds rows to grids, stochastically, in some bits an element (kernels.Grid). A row
// of more than 32 columns has its own grid; kernels.GridRows consecutive narrower rows of a
// block share one. Its payload:
//
//	2 bytes a grid  offsets, bfloat16
//	2 bytes a grid  steps, bfloat16; NaN: its rows are sent raw
//	codes           cols·bits/8 bytes a row, rounded up
//	16 bytes        zero, which vector instructions may read
//	raw rows        4·cols bytes each, in order
//
// Rows of a grid are sent raw, unchanged, if one of them has a NaN, an infinity or numbers
// beyond about 10³⁸.
type uniform struct {
	id   byte // in block headers
	name string
	bits int
}

func (u *uniform) ID() ID         { return ID{Codec: u.id} }
func (u *uniform) Name() string   { return u.name }
func (u *uniform) Lossless() bool { return false }

func (u *uniform) Size(rows, cols int) (int, bool) {
	return gridsOf(rows, cols)*gridBytes + rows*kernels.CodeBytes(cols, u.bits) + kernels.CodeSlack, true
}

func (u *uniform) Encode(dst []byte, src Rows, k Key) []byte {
	at, stride := len(dst), kernels.CodeBytes(src.Cols, u.bits)
	size, _ := u.Size(src.Len, src.Cols)
	dst = slices.Grow(dst, size)[:at+size]
	each := kernels.GridRows(src.Cols)
	grids, codes := splitGrids(dst[at:], gridsOf(src.Len, src.Cols))
	draws := newRoundings(k)
	raw := false
	for from := 0; from < src.Len; from += each {
		to := min(from+each, src.Len)
		g, ok := gridOf(&src, from, to, u.bits)
		grids.put(from/each, g)
		if !ok {
			raw = true
			clear(codes[from*stride : to*stride])
			continue
		}
		for i := from; i < to; i++ {
			draws.of(&src, i).Codes(codes[i*stride:], src.Row(i), g, u.bits, src.id(i))
		}
	}
	clear(codes[src.Len*stride:])
	if raw {
		dst = grids.appendRaw(dst, &src, each)
	}
	return dst
}

func (u *uniform) Decode(dst Rows, payload []byte, add bool) error {
	size, _ := u.Size(dst.Len, dst.Cols)
	if len(payload) < size {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	raw, each := payload[size:], kernels.GridRows(dst.Cols)
	grids, codes := splitGrids(payload[:size], gridsOf(dst.Len, dst.Cols))
	if len(raw) != 4*dst.Cols*grids.countRaw(dst.Len, each) {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	stride := kernels.CodeBytes(dst.Cols, u.bits)
	for i := range dst.Len {
		g, row := grids.at(i/each), dst.Row(i)
		if g.Step == rawStep {
			raw = takeRaw(row, raw, add)
			continue
		}
		g.Values(row, codes[i*stride:], u.bits, add)
	}
	return nil
}

// gridBytes is the encoded size of a grid.
const gridBytes = 4

// rawStep is the step of rows that are sent raw.
const rawStep = kernels.RawStep

// gridsOf returns the number of grids of some rows.
func gridsOf(rows, cols int) int {
	each := kernels.GridRows(cols)
	return (rows + each - 1) / each
}

// gridOf returns the grid of rows from..to-1, or the grid that marks raw rows if none spans
// them.
func gridOf(src *Rows, from, to, bits int) (g kernels.Grid, ok bool) {
	lo, hi, ok := kernels.Extent(src.Row(from))
	for i := from + 1; i < to; i++ {
		l, h, finite := kernels.Extent(src.Row(i))
		lo, hi, ok = min(lo, l), max(hi, h), ok && finite
	}
	if ok {
		g, ok = kernels.NewGrid(lo, hi, bits)
	}
	if !ok {
		g = kernels.Grid{Step: rawStep}
	}
	return g, ok
}

// gridTable is the wire format of grids: all offsets, then all steps, which compress better
// than pairs.
type gridTable struct{ offsets, steps []byte }

// splitGrids splits the given number of grids from a payload.
func splitGrids(payload []byte, grids int) (gridTable, []byte) {
	return gridTable{payload[:2*grids], payload[2*grids : gridBytes*grids]}, payload[gridBytes*grids:]
}

func (t *gridTable) put(i int, g kernels.Grid) {
	binary.LittleEndian.PutUint16(t.offsets[2*i:], uint16(g.Offset))
	binary.LittleEndian.PutUint16(t.steps[2*i:], uint16(g.Step))
}

func (t *gridTable) at(i int) kernels.Grid {
	return kernels.Grid{
		Offset: kernels.BF16(binary.LittleEndian.Uint16(t.offsets[2*i:])),
		Step:   kernels.BF16(binary.LittleEndian.Uint16(t.steps[2*i:])),
	}
}

// countRaw returns the number of rows sent raw. Each grid has each rows.
func (t *gridTable) countRaw(rows, each int) int {
	n := 0
	for i := range len(t.steps) / 2 {
		if t.at(i).Step == rawStep {
			n += min(each, rows-i*each)
		}
	}
	return n
}

// appendRaw appends the raw rows of src; each rows share a grid. The table stays valid in its
// old memory if dst has been reallocated.
func (t *gridTable) appendRaw(dst []byte, src *Rows, each int) []byte {
	for i := range src.Len {
		if t.at(i/each).Step == rawStep {
			dst = appendRaw(dst, src.Row(i))
		}
	}
	return dst
}

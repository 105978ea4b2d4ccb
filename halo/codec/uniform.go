package codec

import (
	"encoding/binary"
	"slices"

	"siafu/kernels"
)

// uniform rounds each row to a grid of its own, stochastically, in some bits
// an element (kernels.Grid). Its payload:
//
//	2 bytes a row   offsets, bfloat16
//	2 bytes a row   steps, bfloat16; NaN: the row is sent raw
//	codes           cols·bits/8 bytes a row, rounded up
//	16 bytes        zero, which vector instructions may read
//	raw rows        4·cols bytes each, in order
//
// A row that holds a NaN or an infinity, or numbers beyond about 10³⁸, is sent
// raw: it arrives as it is.
type uniform struct {
	id   byte
	name string
	bits int
}

func (u *uniform) ID() ID         { return ID{Codec: u.id} }
func (u *uniform) Name() string   { return u.name }
func (u *uniform) Lossless() bool { return false }

func (u *uniform) Size(rows, cols int) (int, bool) {
	return rows*(gridBytes+kernels.CodeBytes(cols, u.bits)) + kernels.CodeSlack, true
}

func (u *uniform) Encode(dst []byte, src Rows, k Key) []byte {
	at, stride := len(dst), kernels.CodeBytes(src.Cols, u.bits)
	size, _ := u.Size(src.Len, src.Cols)
	dst = slices.Grow(dst, size)[:at+size]
	grids, codes := splitGrids(dst[at:], src.Len)
	draws := newDraws(k)
	raw := false
	for i := range src.Len {
		row := src.Row(i)
		g, ok := gridOf(row, u.bits)
		grids.put(i, g)
		if !ok {
			raw = true
			clear(codes[i*stride : (i+1)*stride])
			continue
		}
		draws.of(&src, i).Codes(codes[i*stride:], row, g, u.bits, src.id(i))
	}
	clear(codes[src.Len*stride:])
	if raw {
		dst = grids.appendRaw(dst, &src)
	}
	return dst
}

func (u *uniform) Decode(dst Rows, payload []byte, add bool) error {
	size, _ := u.Size(dst.Len, dst.Cols)
	if len(payload) < size {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	raw := payload[size:]
	grids, codes := splitGrids(payload[:size], dst.Len)
	if len(raw) != 4*dst.Cols*grids.raws() {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	stride := kernels.CodeBytes(dst.Cols, u.bits)
	for i := range dst.Len {
		g, row := grids.at(i), dst.Row(i)
		if g.Step == rawStep {
			raw = takeRaw(row, raw, add)
			continue
		}
		g.Values(row, codes[i*stride:], u.bits, add)
	}
	return nil
}

// gridBytes is what the grid of a row takes.
const gridBytes = 4

// rawStep is the step of a row that is sent raw.
const rawStep = kernels.RawStep

// gridOf is the grid of a row; one that cannot have one gets that of a row
// that is sent raw.
func gridOf(row []float32, bits int) (g kernels.Grid, ok bool) {
	lo, hi, ok := kernels.Extent(row)
	if ok {
		g, ok = kernels.NewGrid(lo, hi, bits)
	}
	if !ok {
		g = kernels.Grid{Step: rawStep}
	}
	return g, ok
}

// gridTable is the grids of some rows as they travel: all offsets, then all
// steps, which compress better than in pairs.
type gridTable struct{ offsets, steps []byte }

// splitGrids takes the grids of rows rows off a payload.
func splitGrids(payload []byte, rows int) (gridTable, []byte) {
	return gridTable{payload[:2*rows], payload[2*rows : gridBytes*rows]}, payload[gridBytes*rows:]
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

// raws is how many rows are sent raw.
func (t *gridTable) raws() int {
	n := 0
	for i := 0; i < len(t.steps); i += 2 {
		if kernels.BF16(binary.LittleEndian.Uint16(t.steps[i:])) == rawStep {
			n++
		}
	}
	return n
}

// appendRaw appends those of src. dst may have moved since the table was made:
// it is read in its old place, which still stands.
func (t *gridTable) appendRaw(dst []byte, src *Rows) []byte {
	for i := range src.Len {
		if t.at(i).Step == rawStep {
			dst = appendRaw(dst, src.Row(i))
		}
	}
	return dst
}

package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// Inverted dropout.
//
//	dst[r][c] = keep(r, c) ? x[r][c]/(1-P) : 0
//
// Variant: the mask is never stored; each use recomputes it from a counter. A
// block of four columns takes one Philox draw; package avx draws several blocks
// of two rows at once, and keeps the same elements as plain Go.
//
// Design note: vertex, column, epoch and layer fill the counter and the seed is the key, so
// that no two elements of a run share a random number. Hashing epoch and layer into the key
// would only make that likely.

// Dropout determines the elements that a layer drops: each with probability P, independently, as
// a function of (Seed, Epoch, Layer, dataset id, column). Retained elements are scaled by
// 1/(1-P). A nil *Dropout and P = 0 drop nothing.
type Dropout struct {
	Seed         uint64
	Epoch, Layer int
	P            float64        // in [0, 1)
	IDs          Vector[uint32] // dataset id of each row; none: the row itself
}

func (d *Dropout) active() bool { return d != nil && d.P > 0 }

// mask is a Dropout prepared for use: an element is kept when its word is at
// most draw.Last.
type mask struct {
	key   [2]uint32
	epoch uint32
	layer uint32
	scale float32
	draw  avx.Draw
	ids   []uint32
	set   avx.Set
}

// Mask has the parameters of a Dropout's random words, for an Ops that computes them on a
// device: element (row, col) is kept, times Scale, when word col mod 4 of
//
//	Philox({id of row, col/4, Epoch, Layer}, Key)
//
// is at most Last. Scale is 0 if nothing is dropped.
type Mask struct {
	Key          [2]uint32
	Epoch, Layer uint32
	Last         uint32
	Scale        float32
	IDs          Vector[uint32] // dataset id of each row; none: the row itself
}

// Mask returns the mask of d, which may be nil, for the given number of rows.
func (d *Dropout) Mask(rows int) Mask {
	if !d.active() {
		return Mask{}
	}
	if !(d.P < 1) {
		panic("kernels: dropout probability outside [0, 1)")
	}
	if d.IDs.Len() > 0 && d.IDs.Len() < rows {
		panic("kernels: fewer dropout ids than rows")
	}
	return Mask{
		Key:   philoxKey(d.Seed),
		Epoch: uint32(d.Epoch), Layer: uint32(d.Layer) | streamDropout,
		Last:  uint32(min(math.Ceil((1-d.P)*(1<<32)), 1<<32-1)) - 1,
		Scale: float32(1 / (1 - d.P)),
		IDs:   d.IDs,
	}
}

// prepare returns the mask for rows rows; d must be active.
func (d *Dropout) prepare(rows int) mask {
	return newMask(d.Mask(rows))
}

func newMask(c Mask) mask {
	m := mask{key: c.Key, epoch: c.Epoch, layer: c.Layer, scale: c.Scale, ids: c.IDs.Host(), set: avx.Best()}
	m.draw = newDraw(m.key, m.epoch, m.layer)
	m.draw.Last, m.draw.Scale = c.Last, c.Scale
	return m
}

// on returns m with the given instruction set.
func (m mask) on(set avx.Set) mask {
	m.set = set
	return m
}

func (m *mask) id(row int) uint32 {
	if m.ids == nil {
		return uint32(row)
	}
	return m.ids[row]
}

// apply drops and scales one row; dst and x have one length and may be one.
func (m *mask) apply(dst, x []float32, row int) {
	if m.set != avx.None {
		m.set.Dropout(&m.draw, dst, x, m.id(row))
		return
	}
	m.applyGo(dst, x, m.id(row))
}

func (m *mask) applyGo(dst, x []float32, id uint32) {
	last, scale := m.draw.Last, m.scale
	j := 0
	for ; j+4 <= len(dst); j += 4 {
		w0, w1, w2, w3 := philox(id, uint32(j/4), m.epoch, m.layer, m.key[0], m.key[1])
		d, x := dst[j:j+4:j+4], x[j:j+4:j+4]
		d[0] = keepOrZero(x[0]*scale, w0 <= last)
		d[1] = keepOrZero(x[1]*scale, w1 <= last)
		d[2] = keepOrZero(x[2]*scale, w2 <= last)
		d[3] = keepOrZero(x[3]*scale, w3 <= last)
	}
	if j < len(dst) {
		words := Philox([4]uint32{id, uint32(j / 4), m.epoch, m.layer}, m.key)
		for i, v := range x[j:len(dst)] {
			dst[j+i] = keepOrZero(v*scale, words[i] <= last)
		}
	}
}

// applyRows applies m to rows [lo, hi) of matrices of the given width.
func (m *mask) applyRows(dst, x []float32, width, lo, hi int) {
	if m.set != avx.None {
		for ; lo+2 <= hi; lo += 2 {
			m.set.DropoutPair(&m.draw, dst[lo*width:(lo+2)*width], x[lo*width:(lo+2)*width], m.id(lo), m.id(lo+1))
		}
	}
	for ; lo < hi; lo++ {
		m.apply(rowOf(dst, lo, width), rowOf(x, lo, width), lo)
	}
}

// keepOrZero returns v or 0. It compiles to a conditional move: a branch on a mask would be
// mispredicted every other time.
func keepOrZero(v float32, keep bool) float32 {
	b := math.Float32bits(v)
	if !keep {
		b = 0
	}
	return math.Float32frombits(b)
}

// DropoutRows implements Ops. dst may be x; without dropout it copies.
func (t *Team) DropoutRows(dst, x Mat, drop *Dropout) {
	mustFit(isSameShape(dst, x))
	switch {
	case dst.Rows == 0 || dst.Cols == 0:
	case x.half:
		t.CopyColumns(dst, x, 0)
		if drop.active() {
			t.DropoutRows(dst, dst, drop)
		}
	case !drop.active():
		copy(dst.Host(), x.Host())
	default:
		do(t, dropoutTask{dst.Host(), x.Host(), dst.Cols, drop.prepare(dst.Rows).on(t.set)}, dst.Rows, rowGrain(dst.Cols))
	}
}

type dropoutTask struct {
	dst, x []float32
	cols   int
	mask   mask
}

func (k *dropoutTask) chunk(lo, hi int) {
	k.mask.applyRows(k.dst, k.x, k.cols, lo, hi)
}

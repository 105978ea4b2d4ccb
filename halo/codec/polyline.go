package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// polyline is Google's encoded polyline algorithm on rows, as SAT compresses
// embeddings by it (section V-D): numbers are rounded to some decimals, each
// is the difference to the one before it in its row, the sign moves to the
// lowest bit, and groups of five bits follow, the lowest first, each with a
// sixth bit that tells whether more come.
//
// The groups are packed, four in three bytes; the algorithm's ASCII, which adds
// 63 to each and spends a byte on it, would be a third longer. An element is
// off by at most half a unit of the last decimal. A row is sent raw that holds
// a NaN, an infinity or a number beyond 2³⁰ units, or that would be longer
// than raw.
//
// Its payload:
//
//	1 bit a row     1: the row is sent raw; low bits first
//	groups          6 bits each, low bits first, rounded up to a byte
//	raw rows        4·cols bytes each, in order
type polyline struct {
	decimals int
	scale    float64
}

const (
	defaultDecimals = 4
	mostDecimals    = 9
	largestUnits    = 1 << 30
)

func newPolyline(decimals int) Codec {
	return &polyline{decimals, math.Pow10(decimals)}
}

func (p *polyline) ID() ID         { return ID{Codec: idPolyline, Param: byte(p.decimals)} }
func (p *polyline) Lossless() bool { return false }

func (p *polyline) Name() string {
	if p.decimals == defaultDecimals {
		return "polyline"
	}
	return "polyline:" + strconv.Itoa(p.decimals)
}

func (p *polyline) Size(rows, cols int) (int, bool) {
	return (rows+7)/8 + 4*rows*cols + 1, false
}

func (p *polyline) Encode(dst []byte, src Rows, _ Key) []byte {
	at := len(dst)
	most, _ := p.Size(src.Len, src.Cols)
	dst = slices.Grow(dst, most+8)
	flags := dst[at : at+(src.Len+7)/8]
	clear(flags)
	w := groupWriter{b: dst[:at+len(flags)]}
	raw := false
	for i := range src.Len {
		if before := w; !p.encodeRow(&w, src.Row(i)) {
			w, raw = before, true
			flags[i/8] |= 1 << (i % 8)
		}
	}
	dst = w.flush()
	for i := 0; raw && i < src.Len; i++ {
		if flags[i/8]>>(i%8)&1 != 0 {
			dst = appendRaw(dst, src.Row(i))
		}
	}
	return dst
}

// encodeRow is false where the row is to be sent raw.
func (p *polyline) encodeRow(w *groupWriter, row []float32) bool {
	most, last := len(w.b)+4*len(row), int64(0)
	for _, x := range row {
		units := math.RoundToEven(float64(x) * p.scale)
		if !(math.Abs(units) <= largestUnits) || len(w.b) > most {
			return false
		}
		delta := int64(units) - last
		last = int64(units)
		w.put(uint64(delta<<1 ^ delta>>63))
	}
	return len(w.b) <= most
}

func (p *polyline) Decode(dst Rows, payload []byte, add bool) error {
	head := (dst.Len + 7) / 8
	if len(payload) < head {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	flags, raws := payload[:head], 0
	for i := range dst.Len {
		raws += int(flags[i/8] >> (i % 8) & 1)
	}
	rest := payload[head:]
	if len(rest) < 4*dst.Cols*raws {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	groups := len(rest) - 4*dst.Cols*raws
	r, raw := groupReader{b: rest[:groups]}, rest[groups:]
	for i := range dst.Len {
		if flags[i/8]>>(i%8)&1 != 0 {
			raw = takeRaw(dst.Row(i), raw, add)
		} else {
			p.decodeRow(&r, dst.Row(i), add)
		}
	}
	return r.end()
}

func (p *polyline) decodeRow(r *groupReader, row []float32, add bool) {
	units := int64(0)
	for j := range row {
		z := r.take()
		units += int64(z>>1) ^ -int64(z&1)
		v := float32(float64(units) / p.scale)
		if add {
			v += row[j]
		}
		row[j] = v
	}
}

// Numbers in groups of five bits.
const (
	groupBits = 5
	more      = 1 << groupBits
	mostBits  = 32 // of the difference of two numbers of units
)

// groupWriter appends groups to b, which has room for them and eight bytes.
type groupWriter struct {
	b    []byte
	rest uint64 // bits not written yet
	n    uint   // how many, less than 8
}

func (w *groupWriter) put(z uint64) {
	for z >= more {
		w.group(z&(more-1) | more)
		z >>= groupBits
	}
	w.group(z)
}

func (w *groupWriter) group(g uint64) {
	w.rest |= g << w.n
	w.n += groupBits + 1
	if w.n >= 8 {
		w.b = append(w.b, byte(w.rest))
		w.rest >>= 8
		w.n -= 8
	}
}

func (w *groupWriter) flush() []byte {
	if w.n > 0 {
		return append(w.b, byte(w.rest))
	}
	return w.b
}

// groupReader takes groups off b. What is not there reads as zero and is an
// error in the end.
type groupReader struct {
	b     []byte
	rest  uint64
	n     uint // bits in rest
	short bool // b has ended too early, or a number is too long
}

func (r *groupReader) take() (z uint64) {
	for shift := uint(0); ; shift += groupBits {
		if r.n < groupBits+1 {
			r.fill()
		}
		g := r.rest & (2*more - 1)
		r.rest >>= groupBits + 1
		r.n -= groupBits + 1
		z |= g & (more - 1) << shift
		if g < more {
			return z
		}
		if shift > mostBits {
			r.short = true
			return 0
		}
	}
}

// fill reads up to seven bytes more.
func (r *groupReader) fill() {
	if len(r.b) >= 8 {
		r.rest |= binary.LittleEndian.Uint64(r.b) << r.n
		taken := (63 - r.n) / 8
		r.b = r.b[taken:]
		r.n += 8 * taken
		r.rest &= 1<<r.n - 1
		return
	}
	for ; r.n < groupBits+1; r.n += 8 {
		if len(r.b) == 0 {
			r.short = true
			continue
		}
		r.rest |= uint64(r.b[0]) << r.n
		r.b = r.b[1:]
	}
}

// end tells whether all of b was taken and nothing beyond it.
func (r *groupReader) end() error {
	switch {
	case r.short:
		return errors.New("numbers go on behind the end")
	case len(r.b) > 0 || bits.Len64(r.rest) > 0 || r.n >= 8:
		return errors.New("bytes behind the last number")
	}
	return nil
}

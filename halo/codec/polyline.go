package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
)

const idPolyline = 6 // in block headers

var polylineKind = kind{
	entry: entry{Name: "polyline", Form: "polyline[:DECIMALS]",
		Help: "numbers in units of 10 to the power of -DECIMALS (0 to 9, default 4), " +
			"as differences of neighbouring columns, in groups of 5 bits and a continuation bit: an error of at most " +
			"half a unit (SAT, section V-D)"},
	make: newPolyline, param: &parameter{defaultDecimals, 0, mostDecimals},
}

// polyline applies Google's encoded polyline algorithm to rows, as SAT does to embeddings
// (section V-D). Numbers are rounded to some decimals and replaced by the difference to the
// preceding one in the row. The sign moves to the lowest bit. Groups of five bits follow,
// lowest first, each with a sixth bit that reports whether more follow.
//
// The groups are packed, four in three bytes; the algorithm's ASCII, which adds 63 to each and
// spends a byte on it, would be a third longer. The error of an element is at most half a unit
// of the last decimal. A row is sent raw if it has a NaN, an infinity or a number beyond 2³⁰
// units, or if its encoding would be longer.
//
// Its payload:
//
//	1 bit a row     1: the row is sent raw; low bits first
//	groups          6 bits each, low bits first, rounded up to a byte
//	raw rows        4·cols bytes each, in order
type polyline struct {
	decimals    int
	scale, unit float64 // units in 1, and the value of one
}

const (
	defaultDecimals = 4
	mostDecimals    = 9
	largestUnits    = 1 << 30
)

func newPolyline(decimals int) Codec {
	return &polyline{decimals, math.Pow10(decimals), math.Pow10(-decimals)}
}

func (p *polyline) ID() ID         { return ID{Codec: idPolyline, Param: byte(p.decimals)} }
func (p *polyline) Lossless() bool { return false }
func (p *polyline) Name() string   { return withParameter("polyline", p.decimals, defaultDecimals) }

func (p *polyline) Size(rows, cols int) (int, bool) {
	return (rows+7)/8 + 4*rows*cols + 1, false
}

func (p *polyline) Encode(dst []byte, src Rows, _ Key) []byte {
	at := len(dst)
	most, _ := p.Size(src.Len, src.Cols)
	dst = slices.Grow(dst, most+groupSlack)
	flags := dst[at : at+(src.Len+7)/8]
	clear(flags)
	w := groupWriter{b: dst[at+len(flags) : cap(dst)]}
	raw := false
	for i := range src.Len {
		if before := w; !p.encodeRow(&w, src.Row(i)) {
			w, raw = before, true
			flags[i/8] |= 1 << (i % 8)
		}
	}
	dst = dst[:at+len(flags)+w.finish()]
	for i := 0; raw && i < src.Len; i++ {
		if flags[i/8]>>(i%8)&1 != 0 {
			dst = appendRaw(dst, src.Row(i))
		}
	}
	return dst
}

// encodeRow returns false if the row must be sent raw.
func (p *polyline) encodeRow(w *groupWriter, row []float32) bool {
	most, last := w.bits+32*len(row), int64(0)
	for _, x := range row {
		units := math.RoundToEven(float64(x) * p.scale)
		if !(math.Abs(units) <= largestUnits) || w.bits > most {
			return false
		}
		delta := int64(units) - last
		last = int64(units)
		w.put(uint64(delta<<1 ^ delta>>63))
	}
	return w.bits <= most
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
		v := float32(float64(units) * p.unit)
		if add {
			v += row[j]
		}
		row[j] = v
	}
}

// Numbers in groups of five bits and a sixth, at most seven of them: the
// differences of numbers of units have 33 bits with their sign.
const (
	groupsMost = 7
	// groupSlack is the number of bytes that a writer may write after its output: the last
	// number of a row that is too long, and the rest of a word.
	groupSlack = 16
)

// sixths is the sixth bit of each group.
const sixths = 1<<5 | 1<<11 | 1<<17 | 1<<23 | 1<<29 | 1<<35 | 1<<41

// groupWriter writes numbers to b, which must have groupSlack extra bytes.
type groupWriter struct {
	b    []byte
	bits int    // written
	rest uint64 // bits of the last, incomplete byte
}

func (w *groupWriter) put(z uint64) {
	n := uint(6 * ((bits.Len64(z|1) + 4) / 5))
	spread := z&31 | z<<1&(31<<6) | z<<2&(31<<12) | z<<3&(31<<18) | z<<4&(31<<24) | z<<5&(31<<30) | z<<6&(31<<36)
	spread |= sixths & (1<<(n-6) - 1)
	at := uint(w.bits % 8)
	w.rest |= spread << at
	binary.LittleEndian.PutUint64(w.b[w.bits/8:], w.rest)
	w.rest >>= (at + n) &^ 7
	w.bits += int(n)
}

// finish completes the last byte and returns the number of bytes.
func (w *groupWriter) finish() int {
	w.b[w.bits/8] = byte(w.rest)
	return (w.bits + 7) / 8
}

// groupReader reads numbers from b. Reads past the end give zeros, and end then returns an
// error.
type groupReader struct {
	b    []byte
	bits int // taken
	bad  bool
}

func (r *groupReader) take() uint64 {
	w := r.word() >> (r.bits % 8)
	n := uint(bits.TrailingZeros64(^w&sixths)) + 1
	if n > 6*groupsMost {
		r.bad = true
		return 0
	}
	r.bits += int(n)
	w &= 1<<n - 1
	return w&31 | w>>1&(31<<5) | w>>2&(31<<10) | w>>3&(31<<15) | w>>4&(31<<20) | w>>5&(31<<25) | w>>6&(31<<30)
}

// word returns eight bytes, starting with the first byte that has unread bits.
func (r *groupReader) word() uint64 {
	if at := r.bits / 8; at+8 <= len(r.b) {
		return binary.LittleEndian.Uint64(r.b[at:])
	}
	var last [8]byte
	copy(last[:], r.b[min(r.bits/8, len(r.b)):])
	return binary.LittleEndian.Uint64(last[:])
}

// end returns an error unless b was read exactly to its end.
func (r *groupReader) end() error {
	switch {
	case r.bad || r.bits > 8*len(r.b):
		return errors.New("truncated: the last number is incomplete")
	case r.bits+8 <= 8*len(r.b) || r.word()>>(r.bits%8) != 0:
		return errors.New("unexpected bytes after the last number")
	}
	return nil
}

package codec

import (
	"slices"
	"unsafe"

	"siafu/kernels"
)

const idNone = 0 // in block headers

var noneKind = kind{
	entry: entry{Name: "none", Help: "numbers unchanged"},
	make:  always(none{}), bytes: 4, class: lossless, auto: []string{""},
}

// none is the identity.
type none struct{}

func (none) ID() ID         { return ID{Codec: idNone} }
func (none) Name() string   { return "none" }
func (none) Lossless() bool { return true }

func (none) Size(rows, cols int) (int, bool) { return 4 * rows * cols, true }

func (none) Encode(dst []byte, src Rows, _ Key) []byte {
	dst = slices.Grow(dst, 4*src.Len*src.Cols)
	for i := range src.Len {
		dst = appendRaw(dst, src.Row(i))
	}
	return dst
}

func (none) Decode(dst Rows, payload []byte, add bool) error {
	if len(payload) != 4*dst.Len*dst.Cols {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	for i := range dst.Len {
		payload = takeRaw(dst.Row(i), payload, add)
	}
	return nil
}

const idBF16 = 1 // in block headers

var bf16Kind = kind{
	entry: entry{Name: "bf16", Help: "numbers rounded to 8 bits of mantissa, nearest even: a relative error of at most 2⁻⁸"},
	make:  always(bfloat16{}), bytes: 2, class: "bf16", auto: []string{"", "+s2"},
}

// bfloat16 rounds to bfloat16, the nearest, ties to even: a relative error of at
// most 2⁻⁸, infinities stay, a NaN stays one.
type bfloat16 struct{}

func (bfloat16) ID() ID         { return ID{Codec: idBF16} }
func (bfloat16) Name() string   { return "bf16" }
func (bfloat16) Lossless() bool { return false }

func (bfloat16) Size(rows, cols int) (int, bool) { return 2 * rows * cols, true }

func (bfloat16) Encode(dst []byte, src Rows, _ Key) []byte {
	at, size := len(dst), 2*src.Len*src.Cols
	dst = slices.Grow(dst, size)[:at+size]
	to := halves(dst[at:])
	for i := range src.Len {
		kernels.NarrowRow(to[i*src.Cols:(i+1)*src.Cols], src.Row(i))
	}
	return dst
}

func (bfloat16) Decode(dst Rows, payload []byte, add bool) error {
	if len(payload) != 2*dst.Len*dst.Cols {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	from := halves(payload)
	for i := range dst.Len {
		kernels.WidenRow(dst.Row(i), from[i*dst.Cols:(i+1)*dst.Cols], add)
	}
	return nil
}

// halves returns b as bfloat16 numbers.
func halves(b []byte) []kernels.BF16 {
	return unsafe.Slice((*kernels.BF16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

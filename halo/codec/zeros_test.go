package codec_test

import (
	"testing"

	"siafu/halo/codec"
)

// Encoded rows have a bit per column and the non-zeros. Payloads that are longer, shorter or
// name columns out of range are refused.
func TestZerosAreLeftOut(t *testing.T) {
	const rows, cols = 3, 13
	c := named(t, "zeros")
	x, left := noise(rows*cols, 1), rows*cols
	for i := range x {
		if i%4 != 0 {
			x[i] = 0
			left--
		}
	}
	src := codec.Rows{X: x, Cols: cols, Len: rows}
	payload := c.Encode(nil, src, codec.Key{})
	if want := rows*2 + 4*left; len(payload) != want {
		t.Fatalf("%d bytes, want %d", len(payload), want)
	}
	into := func() codec.Rows { return codec.Rows{X: make([]float32, rows*cols), Cols: cols, Len: rows} }
	if err := c.Decode(into(), payload, false); err != nil {
		t.Fatal(err)
	}
	for n := range payload {
		if c.Decode(into(), payload[:n], false) == nil {
			t.Errorf("the first %d bytes of %d are rows", n, len(payload))
		}
	}
	if c.Decode(into(), append(payload, 0), true) == nil {
		t.Error("a byte more is rows too")
	}
	payload[1] |= 1 << 5 // the column after the last one
	if c.Decode(into(), append(payload, 0, 0, 0, 0), false) == nil {
		t.Error("a number of no column is one of the row's")
	}
}

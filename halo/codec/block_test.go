package codec_test

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"siafu/halo/codec"
	"siafu/internal/testkit/decodertest"
)

// A flipped bit anywhere, or a block of another codec, is an error.
func TestDamagedBlock(t *testing.T) {
	src := codec.Rows{X: noise(24, 1), Cols: 12, Len: 2}
	for _, name := range names {
		c := named(t, name)
		block := codec.EncodeBlock(nil, c, src, 6, codec.Key{}, nil)
		b, err := codec.Open(block, c)
		if err != nil || b.First != 6 || b.Rows != 2 || b.Cols != 12 {
			t.Fatalf("%s: %v %v", name, b, err)
		}
		for _, dst := range []codec.Rows{{X: make([]float32, 12), Cols: 12, Len: 1}, {X: make([]float32, 24), Cols: 6, Len: 4}} {
			if b.Decode(c, dst, false) == nil {
				t.Errorf("%s: a block of 2 rows of 12 is taken for %d of %d", name, dst.Len, dst.Cols)
			}
		}
		for i := range 8 * len(block) {
			block[i/8] ^= 1 << (i % 8)
			if _, err := codec.Open(block, c); err == nil {
				t.Errorf("%s: bit %d flipped is not noticed", name, i)
			}
			block[i/8] ^= 1 << (i % 8)
		}
		if _, err := codec.Open(block[:len(block)-1], c); err == nil {
			t.Errorf("%s: a block without its last byte is not noticed", name)
		}
	}
}

// A payload's length fields never cause more allocation than its rows and columns justify.
func TestBombs(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zeros := enc.EncodeAll(make([]byte, 64<<20), nil)
	long := binary.AppendUvarint(nil, 1<<40)
	dst := codec.Rows{X: make([]float32, 24), Cols: 12, Len: 2}
	for name, body := range map[string][]byte{"zstd": zeros, "int4+zstd": zeros, "s2": long, "int4+s2": long,
		"polyline:2+s2": binary.AppendUvarint(nil, 64<<20)} {
		c, payload := named(t, name), append([]byte{1}, body...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.Decode(dst, payload, false)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: a bomb is taken for rows", name)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%s: %d bytes allocated for two rows", name, n)
		}
	}
}

// Any bytes decode to rows or an error, and nothing is written after the rows.
func FuzzDecode(f *testing.F) {
	x := kinds(12)
	for i, name := range names {
		c := named(f, name)
		for _, rows := range [][]float32{x[:24], x[9*12 : 11*12]} {
			src := codec.Rows{X: rows, Cols: 12, Len: 2}
			f.Add(i, codec.EncodeBlock(nil, c, src, 0, codec.Key{}, nil), false, false)
			f.Add(i, c.Encode(nil, src, codec.Key{}), true, true)
		}
	}
	f.Fuzz(func(t *testing.T, which int, b []byte, payload, add bool) {
		c := named(t, names[uint(which)%uint(len(names))])
		all := slices.Repeat([]float32{7}, 26)
		dst := codec.Rows{X: all[1:25], Cols: 12, Len: 2, Index: []uint32{1, 0}}
		b = slices.Clip(b)
		var err error
		decodertest.Heap(t, int64(len(b)), func() {
			if payload { // past the frame's checksum
				err = c.Decode(dst, b, add)
			} else if block, e := codec.Open(b, c); e == nil {
				err = block.Decode(c, dst, add)
			}
		})
		if all[0] != 7 || all[25] != 7 {
			t.Fatalf("written round the rows (%v)", err)
		}
	})
}

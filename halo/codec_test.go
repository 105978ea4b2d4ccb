package halo_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/kernels"
)

// patterns are rows of every kind of bits.
func patterns() map[string][]float32 {
	odd := []uint32{0, 1 << 31, 1, 0x7f800000, 0xff800000, 0x7fc00001, 0xffc12345, 0x007fffff, 0x3f800000, 0x12345678, 0xffffffff, 2}
	bits := make([]float32, len(odd))
	for i, b := range odd {
		bits[i] = math.Float32frombits(b)
	}
	smooth, sparse := make([]float32, 1200), make([]float32, 1200)
	for i := range smooth {
		smooth[i] = float32(math.Sin(float64(i) / 9))
		sparse[i] = max(smooth[i], 0)
	}
	return map[string][]float32{"empty": {}, "bits": bits, "smooth": smooth, "sparse": sparse}
}

// Every codec is exact to the bit, also for numbers that are none.
func TestCodecsAreLossless(t *testing.T) {
	for _, name := range halo.CodecNames() {
		codec, err := halo.CodecByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if !codec.Lossless() {
			t.Errorf("%s says that it loses", name)
		}
		for what, x := range patterns() {
			cols := 12
			rows := len(x) / cols
			block := halo.EncodeBlock([]byte("before"), codec, x, rows, cols, halo.Key{})
			got := make([]float32, len(x))
			if err := halo.DecodeBlock(got, codec, rows, cols, block[len("before"):]); err != nil {
				t.Fatalf("%s %s: %v", name, what, err)
			}
			if !slices.Equal(mapped.Bytes(got), mapped.Bytes(x)) {
				t.Errorf("%s changes %s", name, what)
			}
		}
	}
	if _, err := halo.CodecByName("gzip"); err == nil || !strings.Contains(err.Error(), "none, s2, zstd") {
		t.Errorf("an unknown codec: %v", err)
	}
}

// Any bytes are rows or an error.
func FuzzDecodeBlock(f *testing.F) {
	x := patterns()["sparse"][:24]
	for i, name := range halo.CodecNames() {
		codec, err := halo.CodecByName(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, halo.EncodeBlock(nil, codec, x, 2, 12, halo.Key{}), false)
		f.Add(i, codec.Encode(nil, x, 2, 12, halo.Key{}), true)
	}
	f.Fuzz(func(t *testing.T, which int, b []byte, payload bool) {
		names := halo.CodecNames()
		codec, err := halo.CodecByName(names[uint(which)%uint(len(names))])
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]float32, 26)
		dst[24], dst[25] = 7, 7
		if payload { // past the frame's checksum
			err = codec.Decode(dst[:24], 2, 12, b)
		} else {
			err = halo.DecodeBlock(dst[:24], codec, 2, 12, b)
		}
		if dst[24] != 7 || dst[25] != 7 {
			t.Fatalf("written behind the rows (%v)", err)
		}
	})
}

func BenchmarkCodecs(b *testing.B) {
	const rows, cols = 4096, 128
	x := make([]float32, rows*cols)
	for i := range x {
		u := kernels.Philox([4]uint32{uint32(i)}, [2]uint32{1})
		sum := float32(0)
		for _, v := range u {
			sum += float32(v)/(1<<32) - 0.5
		}
		x[i] = max(sum, 0) // half of the values are 0, as behind a ReLU
	}
	for _, name := range halo.CodecNames() {
		codec, err := halo.CodecByName(name)
		if err != nil {
			b.Fatal(err)
		}
		block := halo.EncodeBlock(nil, codec, x, rows, cols, halo.Key{})
		b.Run(name+"/encode", func(b *testing.B) {
			b.SetBytes(4 * rows * cols)
			b.ReportMetric(float64(4*rows*cols)/float64(len(block)), "ratio")
			for b.Loop() {
				block = halo.EncodeBlock(block[:0], codec, x, rows, cols, halo.Key{})
			}
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(4 * rows * cols)
			for b.Loop() {
				if err := halo.DecodeBlock(x, codec, rows, cols, block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

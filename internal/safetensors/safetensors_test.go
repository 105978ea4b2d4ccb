package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	want := []Tensor{
		{"layers.0.weight", []int{2, 3}, []float32{1, -2, 3, 4, float32(math.Inf(1)), 6}},
		{"empty", []int{0, 4}, []float32{}},
		{"bias \"quoted\"", []int{3}, []float32{0.5, 0, -0.25}},
		{"scalar", []int{}, []float32{7}},
	}
	md := map[string]string{"b": "2", "a": "1"}
	if err := Write(path, want, md); err != nil {
		t.Fatal(err)
	}
	got, gotMD, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	byName := cmp.Transformer("byName", func(list []Tensor) map[string]Tensor {
		m := map[string]Tensor{}
		for _, x := range list {
			m[x.Name] = x
		}
		return m
	})
	if d := cmp.Diff(want, got, byName) + cmp.Diff(md, gotMD); d != "" {
		t.Error(d)
	}
	if string(encode(want, md)) != string(encode(want, map[string]string{"a": "1", "b": "2"})) {
		t.Error("equal input gives other bytes")
	}
	if info, err := os.Stat(path); err != nil || (8+info.Size())%4 != 0 {
		t.Errorf("%v", err)
	}
}

// No change of a bit remains unnoticed, except in the name of the checksum: without it, the file is like that of another
// program.
func TestChecksum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	tensors := []Tensor{{"a", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}}, {"b", []int{1}, []float32{7}}}
	if err := Write(path, tensors, map[string]string{"model": "gcn", "dims": "[2,3]"}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := bytes.Index(b, []byte(checksumKey))
	for i := range b {
		b[i] ^= 1 << (i % 8)
		if _, _, err := Decode(b); err == nil && (i < name || i >= name+len(checksumKey)) {
			t.Errorf("a changed bit of byte %d of %d is not noticed", i, len(b))
		}
		b[i] ^= 1 << (i % 8)
	}
	got, md, err := Decode(b)
	if d := cmp.Diff(tensors, got) + cmp.Diff(map[string]string{"model": "gcn", "dims": "[2,3]"}, md); d != "" || err != nil {
		t.Error(d, err)
	}
	if _, _, err := Decode(encode(tensors, md)); err != nil {
		t.Errorf("without a checksum: %v", err)
	}
}

// file returns a file of a header and data.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// Files of other programs: other types, any order, blanks after the header.
func TestDecodeOthers(t *testing.T) {
	half := []byte{0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0x00, 0x7c} // 1, -2, 2^-24, inf
	brain := []byte{0x80, 0x3f}                                    // 1
	double := binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1))
	b := file(`{"d":{"dtype":"F64","shape":[1],"data_offsets":[10,18]},"h":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]}}   `,
		append(append(half, brain...), double...)...)
	got, md, err := Decode(b)
	if err != nil || md != nil {
		t.Fatal(md, err)
	}
	want := []Tensor{
		{"h", []int{2, 2}, []float32{1, -2, float32(math.Ldexp(1, -24)), float32(math.Inf(1))}},
		{"b", []int{1}, []float32{1}},
		{"d", []int{1}, []float32{0.1}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDamaged(t *testing.T) {
	four := []byte{0, 0, 0, 0}
	for _, tc := range []struct {
		name string
		b    []byte
		says string
	}{
		{"empty", nil, "too few"},
		{"short header", file(`{}`)[:9], "header of 2 bytes"},
		{"huge header", append(binary.LittleEndian.AppendUint64(nil, 1<<62), '{'), "header of"},
		{"no JSON", file(`{"a":`), "header:"},
		{"no tensor", file(`{"a":7}`), `tensor "a"`},
		{"metadata", file(`{"__metadata__":{"a":1}}`), "metadata:"},
		{"type", file(`{"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}`, four...), `"I32"`},
		{"shape", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, four...), "shape [2]"},
		{"negative shape", file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, four...), "shape [-1]"},
		{"overflowing shape", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,4]}}`, four...), "shape"},
		{"outside", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, four...), "bytes 0 to 8 of 4"},
		{"overlap", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
			four...), `tensor "b" begins at 0`},
		{"gap", file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}}`, four...), "begins at 2"},
		{"rest", file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0, 0, 1), "5 bytes of data"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.safetensors")
			if err := os.WriteFile(path, tc.b, 0o644); err != nil {
				t.Fatal(err)
			}
			_, _, err := Read(path)
			if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), tc.says) || !strings.Contains(fmt.Sprint(err), path) {
				t.Errorf("%v; want %q", err, tc.says)
			}
		})
	}
	if _, _, err := Read(filepath.Join(t.TempDir(), "none")); fault.KindOf(err) != fault.Missing {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode([]Tensor{{"a", []int{2}, []float32{1, 2}}}, map[string]string{"k": "v"}))
	f.Add(file(`{"a":{"dtype":"F32","shape":[1099511627776,0],"data_offsets":[0,0]}}`))
	f.Add(file(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		var tensors []Tensor
		var md map[string]string
		var err error
		decodertest.Heap(t, int64(len(b)), func() { tensors, md, err = Decode(b) })
		if err != nil {
			return
		}
		again, _, err := Decode(encode(tensors, md))
		if err != nil || len(again) != len(tensors) {
			t.Fatalf("%v does not survive a round trip: %v", tensors, err)
		}
	})
}

// encode returns the file of tensors.
func encode(tensors []Tensor, metadata map[string]string) []byte {
	var b bytes.Buffer
	_ = Stream(&b, tensors, metadata) // memory takes everything
	return b.Bytes()
}

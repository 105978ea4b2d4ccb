package npy

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"siafu/internal/fault"
)

// file builds an npy file by hand, in NumPy's format, for comparison with the package's
// encoder.
func file(version byte, dict string, data ...byte) []byte {
	b := []byte("\x93NUMPY" + string(version) + "\x00")
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(dict)))
	}
	return append(append(b, dict...), data...)
}

func dict(descr, fortran, shape string) string {
	return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n"
}

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		descr  string
		data   string
		floats []float32
		ints   []int64 // nil: not whole numbers
	}{
		{"|b1", "\x00\x01", []float32{0, 1}, []int64{0, 1}},
		{"|i1", "\xff\x7f", []float32{-1, 127}, []int64{-1, 127}},
		{"<i2", "\xfe\xff\x00\x01", []float32{-2, 256}, []int64{-2, 256}},
		{">i2", "\xff\xfe\x01\x00", []float32{-2, 256}, []int64{-2, 256}},
		{"<i4", "\xfd\xff\xff\xff\x01\x00\x00\x00", []float32{-3, 1}, []int64{-3, 1}},
		{">i8", "\xff\xff\xff\xff\xff\xff\xff\xfc\x00\x00\x00\x01\x00\x00\x00\x00", []float32{-4, 1 << 32}, []int64{-4, 1 << 32}},
		{"|u1", "\x00\xff", []float32{0, 255}, []int64{0, 255}},
		{">u2", "\x00\x01\xff\xff", []float32{1, 65535}, []int64{1, 65535}},
		{"<u4", "\xff\xff\xff\xff\x02\x00\x00\x00", []float32{math.MaxUint32, 2}, []int64{math.MaxUint32, 2}},
		{"<u8", "\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80", []float32{5, 1 << 63}, nil},
		{"<f2", "\x00\xc0\x00\x3c", []float32{-2, 1}, []int64{-2, 1}},
		{">f2", "\x00\x01\x7c\x00", []float32{1.0 / (1 << 24), float32(math.Inf(1))}, nil},
		{"<f4", "\x00\x00\x80\x3f\x00\x00\x00\xc0", []float32{1, -2}, []int64{1, -2}},
		{">f4", "\x3f\x80\x00\x00\xc0\x20\x00\x00", []float32{1, -2.5}, nil},
		{"<f8", "\x00\x00\x00\x00\x00\x00\xe0\xc3\x00\x00\x00\x00\x00\x00\x00\x40", []float32{-1 << 63, 2}, []int64{math.MinInt64, 2}},
		{">f8", "\x43\xe0\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00", []float32{1 << 63, 2}, nil},
	} {
		t.Run(c.descr, func(t *testing.T) {
			a, err := Read(bytes.NewReader(file(1, dict(c.descr, "False", "(2,)"), []byte(c.data)...)), "x.npy")
			if err != nil {
				t.Fatal(err)
			}
			floats, err := a.Float32s()
			if err != nil || !reflect.DeepEqual(floats, c.floats) {
				t.Errorf("Float32s = %v, %v, want %v", floats, err, c.floats)
			}
			copied := make([]float32, 2)
			if err := a.CopyFloat32s(copied); err != nil || !reflect.DeepEqual(copied, c.floats) {
				t.Errorf("CopyFloat32s = %v, %v, want %v", copied, err, c.floats)
			}
			ints, err := a.Int64s()
			if c.ints == nil {
				if fault.KindOf(err) != fault.Data {
					t.Errorf("Int64s = %v, %v, want a Data fault", ints, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(ints, c.ints) {
				t.Errorf("Int64s = %v, %v, want %v", ints, err, c.ints)
			}
			small, err := a.Uint32s()
			fits := true
			for _, v := range c.ints {
				fits = fits && v >= 0 && v <= math.MaxUint32
			}
			switch {
			case !fits && fault.KindOf(err) != fault.Data:
				t.Errorf("Uint32s = %v, %v, want a Data fault", small, err)
			case fits && (err != nil || int64(small[0]) != c.ints[0] || int64(small[1]) != c.ints[1]):
				t.Errorf("Uint32s = %v, %v, want %v", small, err, c.ints)
			}
		})
	}
}

func TestLayouts(t *testing.T) {
	bytes24 := make([]byte, 24)
	for i := range bytes24 {
		bytes24[i] = byte(i)
	}
	for _, c := range []struct {
		name string
		file []byte
		want []int64
	}{
		{"version 2", file(2, dict("|u1", "False", "(2,)"), 7, 8), []int64{7, 8}},
		{"version 3", file(3, dict("|u1", "False", "(2,)"), 7, 8), []int64{7, 8}},
		{"scalar", file(1, dict("|u1", "False", "()"), 7), []int64{7}},
		{"empty", file(1, dict("<f8", "False", "(0, 5)")), []int64{}},
		{"long", file(1, dict("|u1", "False", "(2L, 1L)"), 7, 8), []int64{7, 8}},
		{"other quotes and order", file(1, `{"shape":(1,),"fortran_order":False,"descr":"|u1"}`, 9), []int64{9}},
		{"fortran vector", file(1, dict("|u1", "True", "(3,)"), 1, 2, 3), []int64{1, 2, 3}},
		// Column-major [2 x 3]: the columns (0 1), (2 3), (4 5).
		{"fortran matrix", file(1, dict("|u1", "True", "(2, 3)"), bytes24[:6]...), []int64{0, 2, 4, 1, 3, 5}},
		// numpy.arange(24).reshape(2, 3, 4, order="F").ravel()
		{"fortran cube", file(1, dict("|u1", "True", "(2, 3, 4)"), bytes24...),
			[]int64{0, 6, 12, 18, 2, 8, 14, 20, 4, 10, 16, 22, 1, 7, 13, 19, 3, 9, 15, 21, 5, 11, 17, 23}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := Read(bytes.NewReader(c.file), "x.npy")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := a.Int64s(); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
			path := filepath.Join(t.TempDir(), "x.npy")
			os.WriteFile(path, c.file, 0o600)
			b, err := ReadFile(path)
			if err != nil || !bytes.Equal(a.Data, b.Data) || !reflect.DeepEqual(a.Shape, b.Shape) {
				t.Errorf("ReadFile gives another array: %v", err)
			}
		})
	}
}

func TestStrings(t *testing.T) {
	for _, c := range []struct {
		name, descr, shape, data string
		want                     []string
	}{
		{"bytes", "|S3", "(2,)", "csrab\x00", []string{"csr", "ab"}},
		{"scalar bytes", "|S3", "()", "csr", []string{"csr"}},
		{"little", "<U2", "(2,)", "K\x00\x00\x00\x1f\xf3\x01\x00x\x00\x00\x00\x00\x00\x00\x00", []string{"K\U0001f31f", "x"}},
		{"big", ">U2", "()", "\x00\x00\x00\xe4\x00\x00\x00\x00", []string{"ä"}},
		{"zero inside", "<U2", "()", "\x00\x00\x00\x00b\x00\x00\x00", []string{"\x00b"}},
		{"no code point", "<U1", "()", "\x00\xd8\x00\x00", []string{"\ufffd"}},
		{"empty words", "<U0", "(2,)", "", []string{"", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := Read(bytes.NewReader(file(1, dict(c.descr, "False", c.shape), []byte(c.data)...)), "x.npy")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := a.Strings(); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			if _, err := a.Float32s(); fault.KindOf(err) != fault.Data {
				t.Errorf("words became numbers: %v", err)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "truncated after 0 bytes"},
		{"no magic", []byte("PK\x03\x04 and more than twelve"), "byte 0: \"PK"},
		{"version", file(4, dict("<f4", "False", "(1,)")), "byte 6: npy version 4"},
		{"half a header", file(1, dict("<f4", "False", "(1,)"))[:40], "inside the header"},
		{"endless header", append([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), make([]byte, 99)...), "header longer than"},
		{"objects", file(1, dict("|O", "False", "(1,)")), `type "|O" is not supported`},
		{"complex", file(1, dict("<c8", "False", "(1,)"), make([]byte, 8)...), `type "<c8" is not supported`},
		{"structured", file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), "structured types"},
		{"no shape", file(1, "{'descr': '<f4', 'fortran_order': False, }"), "is missing"},
		{"no dict", file(1, "import os           "), "header byte 0: expected '{'"},
		{"negative", file(1, dict("<f4", "False", "(-1,)")), "expected a dimension"},
		{"overflow", file(1, dict("<f4", "False", "(4294967296, 4294967296)")), "overflows"},
		{"bytes overflow", file(1, dict("<f8", "False", "(2305843009213693952,)")), "overflows"},
		{"bomb", file(1, dict("<f4", "False", "(1099511627776,)"), 1, 2, 3, 4), "needs 4398046511104 bytes, but there are 4"},
		{"short", file(1, dict("<f4", "False", "(2,)"), 1, 2, 3, 4, 5), "needs 8 bytes, but there are 5"},
		{"tail", file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x"), "text after the closing brace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.npy")
			os.WriteFile(path, c.file, 0o600)
			_, streamed := Read(bytes.NewReader(c.file), "bad.npy")
			_, mapped := ReadFile(path)
			for how, err := range map[string]error{"Read": streamed, "ReadFile": mapped} {
				if err == nil || fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "bad.npy") {
					t.Fatalf("%s: %v, want a Data fault that names the file", how, err)
				}
				// A mapped file without 12 bytes has no header to be inside of.
				if !strings.Contains(err.Error(), c.want) && len(c.file) >= 12 {
					t.Errorf("%s: %v, want %q", how, err, c.want)
				}
			}
		})
	}
	t.Run("more than the array", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bad.npy")
		os.WriteFile(path, file(1, dict("|u1", "False", "(1,)"), 1, 2, 3), 0o600)
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "2 bytes follow") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("is missing", func(t *testing.T) {
		if _, err := ReadFile(filepath.Join(t.TempDir(), "no.npy")); fault.KindOf(err) != fault.Missing {
			t.Errorf("got %v, want Missing", err)
		}
	})
}

func TestHeader(t *testing.T) {
	got := string(Header("<f4", 3, 4))
	want := "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
	if len(got) != 128 || !strings.HasPrefix(got, want) || strings.TrimSpace(got[len(want):]) != "" || got[127] != '\n' {
		t.Errorf("header is %q", got)
	}
}

// written is a file with an array.
func written(t *rapid.T, path, descr string, shape []int, values any) {
	file, err := binary.Append(Header(descr, shape...), binary.LittleEndian, values)
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRoundTrip: writing and reading are inverse, for any shape and values.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 4).Draw(t, "shape")
		n, _, _ := count(shape, 1)
		floats := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "floats")
		written(t, path, "<f4", shape, floats)
		a, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Float32s()
		if err != nil || len(got) != n || len(a.Shape) != len(shape) {
			t.Fatalf("%v: shape %v, %d values", err, a.Shape, len(got))
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(floats[i]) {
				t.Fatalf("element %d is %v, want %v", i, got[i], floats[i])
			}
		}
		ints := rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "ints")
		written(t, path, "<i8", shape, ints)
		if a, err = ReadFile(path); err != nil {
			t.Fatal(err)
		}
		if back, err := a.Int64s(); err != nil || n > 0 && !reflect.DeepEqual(back, ints) {
			t.Fatalf("%v: %v, want %v", err, back, ints)
		}
	})
}

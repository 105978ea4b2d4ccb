package npy

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
	"siafu/internal/testkit/realdata"
)

// packed returns a zip of arrays; odd ones are compressed.
func packed(t testing.TB, files ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		method := zip.Store
		if i/2%2 == 1 {
			method = zip.Deflate
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: files[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, files[i+1])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZip(t *testing.T) {
	b := packed(t,
		"stored.npy", string(file(1, dict("<i4", "False", "(2,)"), 1, 0, 0, 0, 2, 0, 0, 0)),
		"small.npy", string(file(1, dict("|u1", "False", "(3,)"), 1, 2, 3)),
		"readme.txt", "not an array",
		"long.npy", string(file(1, dict("|u1", "False", "(1,)"), 1, 2, 3)))
	path := filepath.Join(t.TempDir(), "x.npz")
	os.WriteFile(path, b, 0o600)
	z, err := OpenZip(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if got := strings.Join(z.Names(), " "); got != "stored small long" || !z.Has("small") || z.Has("readme.txt") {
		t.Errorf("names are %q", got)
	}
	for name, want := range map[string][]int64{"stored": {1, 2}, "small": {1, 2, 3}} {
		a, err := z.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.Int64s(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, %v, want %v", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"long": "x.npz[long]: 2 bytes follow",
		"none": `array "none" is missing, the arrays are stored, small, long`} {
		if _, err := z.Get(name); err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Data {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	t.Run("damaged", func(t *testing.T) {
		at := bytes.Index(b, []byte("\x01\x00\x00\x00\x02\x00\x00\x00"))
		broken := bytes.Clone(b)
		broken[at] ^= 1
		z, err := newZip(broken, "x.npz")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Get("stored"); err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("got %v, want a checksum error", err)
		}
	})
	for name, b := range map[string][]byte{"truncated": b[:len(b)-9], "empty": {}, "twice": packed(t, "a.npy", "", "a.npy", "")} {
		if _, err := newZip(b, "x.npz"); fault.KindOf(err) != fault.Data {
			t.Errorf("%s: %v, want a Data fault", name, err)
		}
	}
}

func TestRealFiles(t *testing.T) {
	z, err := OpenZip(realdata.File(t, "originals/gnn-benchmark_cora.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	a, err := z.Get("class_names")
	if err != nil {
		t.Fatal(err)
	}
	names, err := a.Strings()
	if err != nil || len(names) != 7 || !strings.Contains(strings.Join(names, " "), "Theory") {
		t.Errorf("class names are %q, %v", names, err)
	}
	tolokers, err := OpenZip(realdata.File(t, "originals/tolokers.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer tolokers.Close()
	if a, err = tolokers.Get("train_masks"); err != nil {
		t.Fatal(err)
	}
	mask, err := a.Int64s()
	sum := int64(0)
	for _, v := range mask[:min(len(mask), 11758)] {
		sum += v
	}
	if err != nil || sum != 5879 {
		t.Errorf("the first training mask marks %d vertices, %v, want 5879", sum, err)
	}
}

// exercise reads everything that an array can give.
func exercise(t *testing.T, a *Array) {
	if len(a.Data) > 1<<20 {
		return // widened eightfold, it would only be slow
	}
	floats, err := a.Float32s()
	if err == nil && len(floats) != a.Len() {
		t.Fatalf("%d floats of %d elements", len(floats), a.Len())
	}
	ints, err := a.Int64s()
	if err == nil && len(ints) != a.Len() {
		t.Fatalf("%d integers of %d elements", len(ints), a.Len())
	}
	small, err := a.Uint32s()
	for i := range small {
		if err == nil && int64(small[i]) != ints[i] {
			t.Fatalf("element %d is %d and %d", i, small[i], ints[i])
		}
	}
	if words, err := a.Strings(); err == nil && len(words) != a.Len() {
		t.Fatalf("%d words of %d elements", len(words), a.Len())
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(1, dict("<f4", "False", "(1,)"), 1, 2, 3, 4))
	f.Add(file(2, dict(">f2", "True", "(2, 1)"), 1, 2, 3, 4))
	f.Add(file(3, dict("<U1", "False", "()"), 1, 0, 0, 0))
	f.Add(file(1, dict("|b1", "True", "(1L, 2L)"), 1, 2))
	f.Add(file(1, dict("|S0", "False", "(1000000000000,)")))
	f.Add(file(1, dict("<U0", "True", "(1000, 100000)")))
	f.Add(file(1, dict("<f4", "False", "(4611686018427387904, 0)")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a *Array
		var err error
		decodertest.Heap(t, int64(len(b)), func() { a, err = Read(bytes.NewReader(b), "fuzz") })
		if v, verr := view(b, "fuzz"); verr == nil {
			if err != nil || !bytes.Equal(a.Data, v.Data) {
				t.Fatalf("a view is an array, a stream is not: %v", err)
			}
		}
		if err != nil {
			if fault.KindOf(err) != fault.Data {
				t.Fatalf("%v is no Data fault", err)
			}
			return
		}
		decodertest.Heap(t, int64(len(b)), func() { exercise(t, a) })
	})
}

func FuzzZip(f *testing.F) {
	f.Add(packed(f, "a.npy", string(file(1, dict("<f4", "False", "(1,)"), 1, 2, 3, 4)), "b.npy",
		string(file(1, dict("|u1", "False", "(1,)"), 1))))
	f.Fuzz(func(t *testing.T, b []byte) {
		z, err := newZip(b, "fuzz")
		if err != nil {
			return
		}
		defer z.Close()
		for _, name := range z.Names() {
			var a *Array
			// Deflate makes at most 1032 bytes of one.
			decodertest.Heap(t, 1032*int64(len(b)), func() { a, err = z.Get(name) })
			if err == nil {
				exercise(t, a)
			} else if fault.KindOf(err) != fault.Data {
				t.Fatalf("%v is no Data fault", err)
			}
		}
	})
}

// claiming returns a zip with one deflated array, whose directory claims these sizes.
func claiming(t *testing.T, text string, packed, unpacked uint64) []byte {
	t.Helper()
	var deflatedText, b bytes.Buffer
	d, _ := flate.NewWriter(&deflatedText, flate.BestCompression)
	io.WriteString(d, text)
	d.Close()
	if packed == 0 {
		packed = uint64(deflatedText.Len())
	}
	w := zip.NewWriter(&b)
	f, err := w.CreateRaw(&zip.FileHeader{Name: "a.npy", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(text)),
		CompressedSize64: packed, UncompressedSize64: unpacked})
	if err != nil {
		t.Fatal(err)
	}
	f.Write(deflatedText.Bytes())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSwollenZip: an array takes no more memory than its own bytes, and sizes that the file
// cannot hold are refused before memory is taken for them.
func TestSwollenZip(t *testing.T) {
	const zeros = 48 << 20
	text := string(file(1, dict("|u1", "False", "("+strconv.Itoa(zeros)+",)"))) + strings.Repeat("\x00", zeros)
	z, err := newZip(claiming(t, text, 0, uint64(len(text))), "x.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var a *Array
	before := new(runtime.MemStats)
	runtime.ReadMemStats(before)
	if a, err = z.Get("a"); err != nil || len(a.Data) != zeros || z.arena.Bytes() > zeros+zeros/4 {
		t.Fatalf("%v, %d bytes in an arena of %d", err, len(a.Data), z.arena.Bytes())
	}
	after := new(runtime.MemStats)
	if runtime.ReadMemStats(after); after.TotalAlloc-before.TotalAlloc > zeros/4 {
		t.Errorf("%d bytes of the heap for an array of %d", after.TotalAlloc-before.TotalAlloc, zeros)
	}
	huge := string(file(1, dict("|u1", "False", "(1000000000000,)"), 1, 2, 3))
	for name, c := range map[string]struct {
		packed, unpacked uint64
		want             string
	}{
		"more than deflate can make":  {0, 1e12 + 80, "x.npz[a]: it claims 1000000000080 bytes, too many for"},
		"more than the directory has": {0, uint64(len(huge)), "truncated: shape [1000000000000] of type |u1 needs 1000000000000 bytes"},
		"more than the file":          {1 << 40, 1e12, "its files overlap"},
	} {
		z, err := newZip(claiming(t, huge, c.packed, c.unpacked), "x.npz")
		if err == nil {
			_, err = z.Get("a")
			z.Close()
		}
		if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

package importers

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// tryImport imports files within their memory limit; refusals must be Data faults.
func tryImport(t *testing.T, from, src string, contents map[string][]byte) error {
	t.Helper()
	return tryFolder(t, from, filepath.Join(files(t, contents), src), contents)
}

// tryFolder is tryImport of files that are at src already.
func tryFolder(t *testing.T, from, src string, contents map[string][]byte) error {
	t.Helper()
	given := int64(0)
	for _, b := range contents {
		given += int64(len(b))
	}
	var err error
	decodertest.Bounded(t, given, func() {
		_, err = Import(from, Options{Src: src, Dst: filepath.Join(filepath.Dir(src), "out"), Symmetrise: true, Force: true})
	})
	if err != nil && fault.KindOf(err) != fault.Data {
		t.Errorf("%v is of kind %d, want %d", err, fault.KindOf(err), fault.Data)
	}
	return err
}

// lies returns copies of a file with one number replaced by a huge one, also inside compressed
// files.
func lies(name string, b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		switch filepath.Ext(name) {
		case ".npz":
			npzLies(b, yield)
		case ".pt":
			torchLies(b, yield)
		case ".npy":
			npyLies(b, yield)
		case ".dgl": // most of its head is not read
			const head = 4096
			for lie := range decodertest.BinaryLies(b[head:]) {
				if !yield(slices.Concat(b[:head], lie)) {
					return
				}
			}
		case ".gz":
			for lie := range decodertest.Lies(gunzip(b)) {
				if !yield(gz(string(lie))) {
					return
				}
			}
		case ".json", ".txt", ".csv", ".parts", ".index":
			decodertest.Lies(b)(yield)
		default:
			decodertest.BinaryLies(b)(yield)
		}
	}
}

// npyLies lie in the header, which keeps its length field true, and in the data.
func npyLies(b []byte, yield func([]byte) bool) bool {
	const preamble = 10
	end := preamble + int(b[8]) + int(b[9])<<8
	for lie := range decodertest.Lies(b[preamble:end]) {
		if !yield(npyFile(lie, b[end:])) {
			return false
		}
	}
	// Elements of width zero have no bytes that prove their number.
	for _, descr := range []string{"|S0", "<U0"} {
		for _, shape := range []string{"(1000000000000,)", "(4, 1000000000000)", "(1000000000000, 0)", "(4, 0)"} {
			if !yield(array(descr, shape, nil)) {
				return false
			}
		}
	}
	for lie := range decodertest.BinaryLies(b[end:]) {
		if !yield(npyFile(b[preamble:end], lie)) {
			return false
		}
	}
	return true
}

func npyFile(header, data []byte) []byte {
	b := []byte("\x93NUMPY\x01\x00\x00\x00")
	b[8], b[9] = byte(len(header)), byte(len(header)>>8)
	return append(append(b, header...), data...)
}

// npzLies lie in each array of an archive.
func npzLies(b []byte, yield func([]byte) bool) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		panic(err)
	}
	var whole []any
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			panic(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			panic(err)
		}
		whole = append(whole, strings.TrimSuffix(f.Name, ".npy"), content)
	}
	for i := 1; i < len(whole); i += 2 {
		honest := whole[i].([]byte)
		if !npyLies(honest, func(lie []byte) bool { whole[i] = lie; return yield(bundle(whole...)) }) {
			return
		}
		whole[i] = honest
	}
}

// torchLies lie in each part of a file of torch.save.
func torchLies(b []byte, yield func([]byte) bool) {
	parts := unzipped(b)
	for i := 1; i < len(parts); i += 2 {
		honest := parts[i].([]byte)
		for lie := range decodertest.BinaryLies(honest) {
			if parts[i] = lie; !yield(zipped(parts...)) {
				return
			}
		}
		parts[i] = honest
	}
}

func gunzip(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return text
}

// inMemory puts temporary folders on a file system where sync is free.
func inMemory(t *testing.T) {
	if exists("/dev/shm") {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// TestLies: with any number of any file replaced, the import uses no more memory than the
// files can fill.
func TestLies(t *testing.T) {
	inMemory(t)
	for _, f := range formats() {
		dir := files(t, f.files)
		for name, honest := range f.files {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				for lie := range lies(name, honest) {
					if err := os.WriteFile(filepath.Join(dir, name), lie, 0o600); err != nil {
						t.Fatal(err)
					}
					tryFolder(t, f.name, filepath.Join(dir, f.src), with(f.files, name, lie))
					if t.Failed() {
						t.Fatalf("with %q", lie)
					}
				}
				if err := os.WriteFile(filepath.Join(dir, name), honest, 0o600); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestClaims: sizes that several files claim and none proves.
func TestClaims(t *testing.T) {
	const many = "4000000000"
	empty := array("<f4", "("+many+", 0)", nil)
	nothing := array("|S0", "("+many+",)", nil)
	coo := bundle("row", i8s(), "col", i8s(), "shape", i8s(4_000_000_000, 4_000_000_000), "format", array("|S3", "()", []byte("coo")))
	line := func(first string, lines int) []byte { return gz(first + strings.Repeat("\n", lines)) }
	shared := newPickler().raw("}(").int(0).raw("](").raw(strings.Repeat("K\x01", 20_000)).raw("eq\x00")
	for range 20_000 {
		shared.raw("K\x02h\x00")
	}
	for _, c := range []struct {
		name, from, src string
		files           map[string][]byte
		says            string
	}{
		{"classes", "raw", "", with(tinyRaw(), "meta.json",
			`{"nodes": 4, "edges": 4, "feature_dim": 2, "classes": 1000000000000}`), "classes"},
		{"a stray label", "raw", "", with(tinyRaw(), "meta.json", `{"nodes": 4, "edges": 4, "feature_dim": 2}`, "labels.bin",
			little([]int32{0, 1, 2147483646, 0})), "label of vertex 2 is 2147483646"},
		{"rows of a matrix without columns", "graphsaint", "", with(tinySAINT(), "adj_full.npz", coo, "feats.npy", empty),
			"features have shape [" + many + " 0]"},
		{"posts without columns", "reddit-npz", "", with(tinyReddit(), "reddit_graph.npz", coo, "reddit_data.npz",
			bundle("feature", empty, "label", nothing, "node_types", nothing)), "features have shape"},
		{"vertices without columns", "snap", "",
			with(tinySnap(), "edges.txt", "", "features.npy", empty, "labels.npy", nothing), "features have shape"},
		{"labels without width", "npz", "h.npz", map[string][]byte{"h.npz": bundle("edges", array("<i8", "(0, 2)", nil), "node_features",
			empty, "node_labels", nothing)}, "elements without bytes"},
		{"ragged features", "ogb", "",
			with(tinyOGB(), "raw/node-feat.csv.gz", line(strings.Repeat("0,", 250_000)+"0\n", 250_000)), "node-feat.csv.gz"},
		{"ragged edges", "ogb", "", with(tinyOGB(), "raw/edge.csv.gz", line(strings.Repeat("0,", 250_000)+"0\n", 250_000)), "edge.csv.gz"},
		{"wide features", "ogb", "", with(tinyOGB(),
			"raw/num-node-list.csv.gz", gz("100000"), "raw/node-label.csv.gz", gz(strings.Repeat("0\n", 100_000)),
			"raw/node-feat.csv.gz", gz(strings.Repeat("0,", 400_000)+"0\n")), "node-feat.csv.gz"},
		{"kinds of label", "bsnap", "", with(tinyBsnap(), "labels.bsnap", little(uint32(1<<31-1), []uint32{0, 1, 1, 0})), "labels.bsnap"},
		{"one list for all vertices", "planetoid", "", with(tinyPlanetoid(), "ind.tiny.graph", shared.raw("u").done()), "ind.tiny.graph"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := tryImport(t, c.from, c.src, c.files)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// packedTar returns a .tar.zst of entries.
func packedTar(t *testing.T, fill func(w *tar.Writer, raw io.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	fill(w, z)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tarEntry writes one plain file.
func tarEntry(w *tar.Writer, name string, size int64, r io.Reader) {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, Typeflag: tar.TypeReg}); err != nil {
		panic(err)
	}
	if _, err := io.Copy(w, r); err != nil {
		panic(err)
	}
}

// pax is an extended header of records and the file that it is about, whose
// bytes are body.
func pax(raw io.Writer, body string, records ...string) {
	var text strings.Builder
	for _, r := range records {
		n := len(r) + 3
		if n >= 9 {
			n++
		}
		fmt.Fprintf(&text, "%d %s\n", n, r)
	}
	block := func(kind byte, name, content string) {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], "0000600\x000000000\x000000000\x00")
		copy(h[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", len(content)))
		h[156] = kind
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		raw.Write(h)
		io.WriteString(raw, content+strings.Repeat("\x00", (512-len(content)%512)%512))
	}
	block('x', "PaxHeaders/x", text.String())
	block('0', "x", body)
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestArchiveGrows: sparse files and decompression bombs in an archive are not written out.
func TestArchiveGrows(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(w *tar.Writer, raw io.Writer)
		says string
	}{
		{"hole", func(_ *tar.Writer, raw io.Writer) {
			pax(raw, "1\n0\n0\n"+strings.Repeat("\x00", 506), "GNU.sparse.major=1", "GNU.sparse.minor=0",
				"GNU.sparse.name=features.bin", "GNU.sparse.realsize=4294967296")
		}, "features.bin"},
		{"zeros", func(w *tar.Writer, _ io.Writer) {
			tarEntry(w, "features.bin", 256<<20, io.LimitReader(zeros{}, 256<<20))
		}, "unpack it yourself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := packedTar(t, c.fill)
			err := tryImport(t, "raw", "x.tar.zst", map[string][]byte{"x.tar.zst": b})
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "x.tar.zst") {
				t.Errorf("%d bytes: got %v, want %q", len(b), err, c.says)
			}
		})
	}
}

// TestArchiveWithoutFiles: a fault about a file of an archive names the archive, not the temporary
// folder in which it was unpacked.
func TestArchiveWithoutFiles(t *testing.T) {
	valid := tinyRaw()
	for name, c := range map[string]struct {
		files []any
		says  string
	}{
		"empty":         {nil, "x.tar.zst: it has no file meta.json; pack the files of a dataset"},
		"without edges": {[]any{"meta.json", valid["meta.json"]}, "x.tar.zst: it has no file graph.edges.bin"},
		"damaged":       {[]any{"meta.json", []byte("{")}, "x.tar.zst[meta.json]: "},
		"of wrong lengths": {[]any{"meta.json", valid["meta.json"], "graph.edges.bin", []byte("1")},
			"x.tar.zst[graph.edges.bin]: 1 bytes, expected"},
	} {
		archive := packedTar(t, func(w *tar.Writer, _ io.Writer) {
			for i := 0; i < len(c.files); i += 2 {
				b := c.files[i+1].([]byte)
				tarEntry(w, c.files[i].(string), int64(len(b)), bytes.NewReader(b))
			}
		})
		err := tryImport(t, "raw", "x.tar.zst", map[string][]byte{"x.tar.zst": archive})
		if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), unpackName) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
	if err := tryImport(t, "raw", "x.tar.zst", map[string][]byte{"x.tar.zst": nil}); fault.KindOf(err) != fault.Data ||
		!strings.Contains(err.Error(), "x.tar.zst: it has no file meta.json") {
		t.Errorf("a file without bytes: %v", err)
	}
}

package importers

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
)

// files writes a folder of files, by their paths in it.
func files(t testing.TB, contents map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with returns m with changed contents of some files; nil removes a file.
func with(m map[string][]byte, changes ...any) map[string][]byte {
	out := map[string][]byte{}
	for name, b := range m {
		out[name] = b
	}
	for i := 0; i < len(changes); i += 2 {
		switch b := changes[i+1].(type) {
		case nil:
			delete(out, changes[i].(string))
		case string:
			out[changes[i].(string)] = []byte(b)
		case []byte:
			out[changes[i].(string)] = b
		}
	}
	return out
}

// little returns numbers as little-endian bytes.
func little(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func gz(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.Bytes()
}

// array returns an npy file.
func array(descr string, shape string, data []byte) []byte {
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	// Padded like NumPy's files, so that the data is aligned.
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(text)))
	return append(append(b, text...), data...)
}

func i8s(values ...int64) []byte {
	return array("<i8", fmt.Sprintf("(%d,)", len(values)), little(values))
}

func f4s(rows, cols int, values ...float32) []byte {
	return array("<f4", fmt.Sprintf("(%d, %d)", rows, cols), little(values))
}

// bundle returns an npz file of name, npy file pairs.
func bundle(contents ...any) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(contents); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: contents[i].(string) + ".npy", Method: zip.Store})
		if err != nil {
			panic(err)
		}
		f.Write(contents[i+1].([]byte))
	}
	w.Close()
	return b.Bytes()
}

// loaded is a dataset in plain slices that outlive its source.
type loaded struct {
	graph.Content
	edges [][2]uint32 // sorted, in both directions where symmetrised, without duplicates and loops
	dense []float32   // [Vertices x Dim]
	log   string
}

// load runs an importer up to the input of graph.Write.
func load(t testing.TB, from string, o Options) (*loaded, error) {
	t.Helper()
	out := &loaded{}
	o.Log = func(format string, args ...any) { out.log += fmt.Sprintf(format, args...) + "\n" }
	if o.Dst == "" {
		o.Dst = filepath.Join(t.TempDir(), "out")
	}
	f, err := find(from, o)
	if err != nil {
		return nil, err
	}
	k := newResources(input{"import " + f.Name, o.Src})
	defer k.release()
	c, err := f.load(k, o)
	if err != nil {
		return nil, err
	}
	out.Content = *c
	out.Labels, out.Split = slices.Clone(c.Labels), slices.Clone(c.Split)
	out.dense = spread(c.Features)
	err = c.Edges.Each(func(u, v uint32) error {
		if u != v {
			out.edges = append(out.edges, [2]uint32{u, v})
			if c.Symmetrise {
				out.edges = append(out.edges, [2]uint32{v, u})
			}
		}
		return nil
	})
	slices.SortFunc(out.edges, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
	out.edges = slices.Compact(out.edges)
	return out, err
}

// caught returns the result of a function, or the error with which it ended the import.
func caught[T any](f func() T) (v T, err error) {
	defer catch(&err)
	return f(), nil
}

func mustLoad(t testing.TB, from string, o Options) *loaded {
	t.Helper()
	c, err := load(t, from, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// spread returns features as one dense matrix.
func spread(f graph.Features) []float32 {
	if f.Sparse == nil {
		return slices.Clone(f.Dense)
	}
	x := make([]float32, f.Rows*f.Dim)
	for r := range f.Rows {
		for i := f.Sparse.Offsets[r]; i < f.Sparse.Offsets[r+1]; i++ {
			x[r*f.Dim+int(f.Sparse.Cols[i])] = f.Sparse.Vals[i]
		}
	}
	return x
}

// same compares two datasets.
func same(t *testing.T, got, want *loaded) {
	t.Helper()
	if got.Vertices != want.Vertices || got.Features.Dim != want.Features.Dim {
		t.Fatalf("%d vertices of %d features, want %d of %d", got.Vertices, got.Features.Dim, want.Vertices, want.Features.Dim)
	}
	if !slices.Equal(got.edges, want.edges) {
		t.Errorf("edges differ: %d, want %d", len(got.edges), len(want.edges))
	}
	if !slices.Equal(got.dense, want.dense) {
		t.Error("features differ")
	}
	if !slices.Equal(got.Labels, want.Labels) {
		t.Error("labels differ")
	}
	if !slices.Equal(got.Split, want.Split) {
		t.Error("splits differ")
	}
}

// counts returns the number of vertices per split value.
func counts(split []uint8) [4]int {
	var n [4]int
	for _, s := range split {
		n[s]++
	}
	return n
}

// The fixtures below are one graph of four vertices in every format: the directed edges 0→1,
// 1→2, 2→0, 3→0, two features, the labels 0 1 1 0, and 0 and 1 for training, 2 for validation,
// 3 for the test if the format stores a split.
var tinyFeatures = []float32{1, 2, 3, 4, 5, 6, 7, 8}

func tinyRaw() map[string][]byte {
	return map[string][]byte{
		"meta.json": []byte(`{"name": "Tiny", "nodes": 4, "edges": 4, "undirected": false, "feature_dim": 2, "classes": 2, ` +
			`"license": "CC0", "synthetic": true}`),
		"graph.edges.bin": little([]uint32{0, 1, 1, 2, 2, 0, 3, 0}),
		"features.bin":    little(tinyFeatures),
		"labels.bin":      little([]int32{0, 1, 1, 0}),
		"split.bin":       {1, 1, 2, 3},
		"splits2.bin":     {1, 1, 2, 3, 3, 2, 1, 0},
	}
}

func tinyCSR(data []byte) []any {
	return []any{"adj_data", data, "adj_indices", array("<i4", "(4,)", little([]int32{1, 2, 0, 0})),
		"adj_indptr", array("<i4", "(5,)", little([]int32{0, 1, 2, 3, 4})), "adj_shape", i8s(4, 4)}
}

func tinyNpz(extra ...any) []byte {
	return bundle(append(append(tinyCSR(i8s(1, 1, 1, 1)), "attr_matrix", f4s(4, 2, tinyFeatures...), "labels",
		i8s(0, 1, 1, 0)), extra...)...)
}

func tinyHetero(train ...byte) []byte {
	return bundle(
		"edges", array("<i8", "(4, 2)", little([]int64{0, 1, 1, 2, 2, 0, 3, 0})),
		"node_features", f4s(4, 2, tinyFeatures...), "node_labels", i8s(0, 1, 1, 0),
		"train_masks", array("|b1", "(2, 4)", train),
		"val_masks", array("|b1", "(2, 4)", []byte{0, 0, 1, 0, 0, 1, 0, 0}),
		"test_masks", array("|b1", "(2, 4)", []byte{0, 0, 0, 1, 1, 0, 0, 0}))
}

func tinyOGB() map[string][]byte {
	return map[string][]byte{
		"raw/num-node-list.csv.gz":  gz("4\n"),
		"raw/num-edge-list.csv.gz":  gz("4\n"),
		"raw/edge.csv.gz":           gz("0,1\n1,2\n2,0\n3,0\n"),
		"raw/node-feat.csv.gz":      gz("1.0,2\n3,4e0\n0.5e1,6.000\n7,8"),
		"raw/node-label.csv.gz":     gz("0\n1\n1\n0\n"),
		"split/time/train.csv.gz":   gz("0\n1\n"),
		"split/time/valid.csv.gz":   gz("2\n"),
		"split/time/test.csv.gz":    gz("3\n"),
		"mapping/labelidx2x.csv.gz": gz("unused"),
	}
}

// tinyPapers returns the layout of ogbn-papers100M.
func tinyPapers() map[string][]byte {
	m := map[string][]byte{
		"raw/data.npz": bundle("edge_index", array("<i8", "(2, 4)", little([]int64{0, 1, 2, 3, 1, 2, 0, 0})),
			"node_feat", f4s(4, 2, tinyFeatures...),
			"node_year", i8s(1, 2, 3, 4), "num_nodes_list", i8s(4), "num_edges_list", i8s(4)),
		"raw/node-label.npz": bundle("node_label", f4s(4, 1, 0, 1, 1, 0)),
	}
	for name, b := range tinyOGB() {
		if filepath.Dir(name) == "split/time" {
			m[name] = b
		}
	}
	return m
}

func tinySAINT() map[string][]byte {
	return map[string][]byte{
		"adj_full.npz": bundle("data", i8s(1, 1, 1, 1), "indices", i8s(1, 2, 0, 0), "indptr", i8s(0, 1, 2, 3, 4), "shape", i8s(4, 4),
			"format", array("|S3", "()", []byte("csr"))),
		"feats.npy":      array("<f8", "(4, 2)", little([]float64{1, 2, 3, 4, 5, 6, 7, 8})),
		"class_map.json": []byte(`{"3": 0, "0": 0, "1": 1, "2": 1}`),
		"role.json":      []byte(`{"tr": [0, 1], "va": [2], "te": [3]}`),
	}
}

func tinyReddit() map[string][]byte {
	return map[string][]byte{
		"reddit_graph.npz": bundle("row", array("<i4", "(4,)", little([]int32{3, 0, 1, 2})), "col",
			array("<i4", "(4,)", little([]int32{0, 1, 2, 0})),
			"format", array("|S3", "()", []byte("coo")), "shape", i8s(4, 4), "data", i8s(1, 1, 1, 1)),
		"reddit_data.npz": bundle("feature", f4s(4, 2, tinyFeatures...), "label", i8s(0, 1, 1, 0), "node_types",
			i8s(1, 1, 2, 3), "node_ids", i8s(9, 8, 7, 6)),
	}
}

func tinyBsnap() map[string][]byte {
	return map[string][]byte{
		"graph.bsnap":                little(int32(4), uint32(4), uint64(4), []uint32{0, 1, 1, 2, 2, 0, 3, 0}),
		"features.bsnap":             little(uint32(2), tinyFeatures),
		"labels.bsnap":               little(uint32(2), []uint32{0, 1, 1, 0}),
		"parts_2/graph.bsnap.parts":  []byte("1\n0\n\n1\n0\n"),
		"parts_2/graph.bsnap.nparts": []byte("unused"),
	}
}

func tinySnap() map[string][]byte {
	return map[string][]byte{
		"edges.txt":    []byte("# Directed graph\n-5 10\n10\t1000000000000\n% a comment\n1000000000000,-5\r\n\n7000000000000   -5"),
		"features.npy": f4s(4, 2, tinyFeatures...),
		"labels.npy":   array("|u1", "(4, 1)", []byte{0, 1, 1, 0}),
		"split.npy":    array("|u1", "(4,)", []byte{1, 1, 2, 3}),
	}
}

func tinyCSV() map[string][]byte {
	return map[string][]byte{
		"nodes.csv": []byte("\xef\xbb\xbfid;\"a\";label;split;b\r\n\"a;1\";1;no;train;2\r\n\r\nb;3;yes;Training;4e0\nc; 5 " +
			";yes;val;\"6\"\nd;.7e1;no;test;8"),
		"edges.csv.gz":  gz("dst\tsrc\n\"b\"\ta;1\nc\tb\na;1\tc\na;1\td\n"),
		"features.list": []byte("unused"),
	}
}

// tinyParquet was written by DuckDB 1.5: a column of integers, one of decimals, one
// of texts that are all different, dictionaries and pages in Snappy and gzip.
func tinyParquet() map[string][]byte {
	m := map[string][]byte{}
	for _, name := range []string{"nodes.parquet", "edges.parquet"} {
		m[name] = testFile(name)
	}
	return m
}

// testFile returns a file of testdata.
func testFile(name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		panic(err)
	}
	return b
}

// tinyPyG returns the tiny graph under the names of PyTorch Geometric's Data.
func tinyPyG(extra ...any) []byte {
	return bundle(append([]any{"x", f4s(4, 2, tinyFeatures...), "edge_index",
		array("<i8", "(2, 4)", little([]int64{0, 1, 2, 3, 1, 2, 0, 0})), "y", i8s(0, 1, 1, 0),
		"train_mask", array("|b1", "(4,)", []byte{1, 1, 0, 0}), "val_mask", array("|b1", "(4,)", []byte{0, 0, 1, 0}), "test_mask",
		array("|b1", "(4,)", []byte{0, 0, 0, 1})}, extra...)...)
}

// zipped returns a file of torch.save with the given names and parts.
func zipped(parts ...any) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: "tiny/" + parts[i].(string), Method: zip.Store})
		if err != nil {
			panic(err)
		}
		f.Write(parts[i+1].([]byte))
	}
	w.Close()
	return b.Bytes()
}

// unzipped returns the reverse of zipped.
func unzipped(b []byte) (parts []any) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		panic(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			panic(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			panic(err)
		}
		_, name, _ := strings.Cut(f.Name, "/")
		parts = append(parts, name, content)
	}
	return parts
}

package importers

import (
	"archive/zip"
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/pickle"
	"siafu/internal/testkit/realdata"
)

// imported runs a whole import, and reads the result like the user's next command.
func imported(t *testing.T, from string, o Options) (*graph.Dataset, string) {
	t.Helper()
	var log strings.Builder
	o.Dst = filepath.Join(t.TempDir(), "out")
	o.Log = func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }
	if _, err := Import(from, o); err != nil {
		t.Fatal(err)
	}
	d, err := graph.Open(o.Dst)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, log.String()
}

// TestPublished: files in the form published by their projects can be imported.
func TestPublished(t *testing.T) {
	for _, c := range []struct {
		file, from string
		names      int
		left       string
	}{
		{"originals/gnn-benchmark_cora.npz", "npz", 7, "left_out=node_names\n"},
		{"originals/tolokers.npz", "npz", 0, ""},
		{"originals/planetoid/ind.cora.graph", "planetoid", 0, ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			d, log := imported(t, "auto", Options{Src: realdata.File(t, c.file), Symmetrise: true})
			if !strings.Contains(log, "format="+c.from+"\n") || !strings.Contains(log, c.left) || len(d.Meta.ClassNames) != c.names {
				t.Errorf("%d class names, log:\n%s", len(d.Meta.ClassNames), log)
			}
		})
	}
}

// object returns an array of objects in NumPy 1.24's format: the header and a pickle, here of
// None as in np.savez(…, class_names=None).
func object(shape string) []byte {
	return array("|O", shape,
		[]byte("\x80\x03cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nq\x01K\x00\x85q\x02C\x01bq\x03\x87q\x04Rq\x05"+
			"(K\x01)cnumpy\ndtype\nq\x06X\x02\x00\x00\x00O8q\x07\x89\x88\x87q\x08Rq\t(K\x03X\x01\x00\x00\x00|q\nNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tq\x0bb\x89]q\x0cNatq\rb."))
}

// words4 returns an array of words of at most four characters.
func words4(words ...string) []byte {
	data := make([]int32, 4*len(words))
	for i, w := range words {
		for j, r := range []rune(w) {
			data[4*i+j] = r
		}
	}
	return array("<U4", fmt.Sprintf("(%d,)", len(words)), little(data))
}

// compressed is bundle in the format of np.savez_compressed and SciPy's save_npz.
func compressed(contents ...any) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(contents); i += 2 {
		f, err := w.Create(contents[i].(string) + ".npy")
		if err != nil {
			panic(err)
		}
		f.Write(contents[i+1].([]byte))
	}
	w.Close()
	return b.Bytes()
}

// dotted returns the ppnp style of keys: "adj_matrix.data" for "adj_data".
func dotted(contents []any) []any {
	out := slices.Clone(contents)
	for i := 0; i < len(out); i += 2 {
		for _, matrix := range []string{"adj", "attr"} {
			if part, ok := strings.CutPrefix(out[i].(string), matrix+"_"); ok && part != "matrix" && part != "names" {
				out[i] = matrix + "_matrix." + part
			}
		}
	}
	return out
}

// saved returns SciPy's save_npz file of the tiny graph.
func saved(form string, more ...any) []byte {
	one := array("|b1", "(4,)", []byte{1, 1, 1, 1})
	places := []any{"indices", array("<i4", "(4,)", little([]int32{1, 2, 0, 0})), "indptr",
		array("<i4", "(5,)", little([]int32{0, 1, 2, 3, 4}))}
	if form == "coo" {
		places = []any{"row", array("<i4", "(4,)", little([]int32{0, 1, 2, 3})), "col", array("<i4", "(4,)", little([]int32{1, 2, 0, 0}))}
	}
	places = append(places, "format", array("|S3", "()", []byte(form)), "shape", i8s(4, 4), "data", one)
	return compressed(append(places, more...)...)
}

// TestWriters: the tiny graph in the exact format of each project, with every optional array,
// type and form, is the same dataset.
func TestWriters(t *testing.T) {
	want := mustLoad(t, "raw", Options{Src: files(t, tinyRaw())})
	attributes := []any{"attr_data", array("<f4", "(8,)", little(tinyFeatures)), "attr_indices",
		array("<i4", "(8,)", little([]int32{0, 1, 0, 1, 0, 1, 0, 1})),
		"attr_indptr", array("<i4", "(5,)", little([]int32{0, 2, 4, 6, 8})), "attr_shape", i8s(4, 2)}
	adjacency := tinyCSR(array("<f4", "(4,)", little([]float32{1, 1, 1, 1})))
	labels := []any{"labels", array("|i1", "(4,)", []byte{0, 1, 1, 0})}
	oneHot := []any{"labels_data", i8s(1, 1, 1, 1), "labels_indices", array("<i4", "(4,)", little([]int32{0, 1, 1, 0})),
		"labels_indptr", array("<i4", "(5,)", little([]int32{0, 1, 2, 3, 4})), "labels_shape", i8s(4, 2)}
	names := []any{"node_names", words4("a", "b", "c", "d"), "attr_names", object("(2,)"), "metadata", object("()")}
	npz := func(contents ...[]any) map[string][]byte {
		return map[string][]byte{"a.npz": bundle(slices.Concat(contents...)...)}
	}
	fortran := array("<f8", "(4, 2)", little([]float64{1, 3, 5, 7, 2, 4, 6, 8}))
	fortran = bytes.Replace(fortran, []byte("False"), []byte("True "), 1)
	for _, c := range []struct {
		name, from, src string
		files           map[string][]byte
		classes         []string
		says            string // in the log
	}{
		{"gnn-benchmark", "npz", "a.npz", npz(adjacency, attributes, labels, names, []any{"class_names", words4("odd", "even")}),
			[]string{"odd", "even"}, "left_out=node_names,attr_names,metadata\n"},
		{"gnn-benchmark, class names are objects", "npz", "a.npz", npz(adjacency, attributes, labels, []any{"class_names", object("(2,)")}),
			nil, `left_out=class_names (read npy: `},
		{"gnn-benchmark, class names are numbers", "npz", "a.npz", npz(adjacency, attributes, labels, []any{"class_names", i8s(0, 1)}),
			nil, "type <i8 holds no words"},
		{"gnn-benchmark, names of more classes", "npz", "a.npz",
			npz(adjacency, attributes, labels, []any{"class_names", words4("a", "b", "c")}), []string{"a", "b", "c"}, ""},
		{"gnn-benchmark, names of fewer classes", "npz", "a.npz", npz(adjacency, attributes, labels, []any{"class_names", words4("a")}),
			nil, "left_out=class_names (1 names for 2 classes)"},
		{"gnn-benchmark, labels are a matrix", "npz", "a.npz", npz(adjacency, attributes, oneHot), nil, ""},
		{"gnn-benchmark, features by column", "npz", "a.npz", npz(adjacency, labels, []any{"attr_matrix", fortran}), nil, ""},
		{"ppnp", "npz", "a.npz", npz(dotted(adjacency), dotted(attributes), labels, names, []any{"class_names", object("()")}),
			nil, "left_out=class_names"},
		{"ppnp, compressed", "npz", "a.npz",
			map[string][]byte{"a.npz": compressed(slices.Concat(dotted(adjacency), dotted(attributes), labels)...)}, nil, ""},
		{"scipy's matrix", "graphsaint", "", with(tinySAINT(), "adj_full.npz", saved("csr"), "feats.npy", fortran), nil, ""},
		{"scipy's array", "graphsaint", "",
			with(tinySAINT(), "adj_full.npz", saved("csr", "_is_array", array("|b1", "()", []byte{1}))), nil, ""},
		{"scipy's coordinates", "reddit-npz", "", with(tinyReddit(), "reddit_graph.npz", saved("coo")), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Src: filepath.Join(files(t, c.files), c.src)}
			got := mustLoad(t, c.from, o)
			got.Split = want.Split // drawn, or as in the fixture
			same(t, got, want)
			d, log := imported(t, "auto", o)
			if !slices.Equal(d.Meta.ClassNames, c.classes) || !strings.Contains(log, c.says) {
				t.Errorf("classes are named %q, log:\n%s", d.Meta.ClassNames, log)
			}
		})
	}
	for _, form := range []string{"csc", "bsr", "dia"} {
		t.Run("form "+form, func(t *testing.T) {
			_, err := load(t, "graphsaint", Options{Src: files(t, with(tinySAINT(), "adj_full.npz", saved(form)))})
			if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), `format is ["`+form+`"]`) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("several labels", func(t *testing.T) {
		two := slices.Clone(oneHot)
		two[3], two[5] = array("<i4", "(4,)", little([]int32{0, 1, 1, 0})), array("<i4", "(5,)", little([]int32{0, 2, 3, 4, 4}))
		_, err := load(t, "npz", Options{Src: filepath.Join(files(t, npz(adjacency, attributes, two)), "a.npz")})
		if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), "vertex 0 has the labels 0 and 1") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("damaged class names", func(t *testing.T) {
		b := bundle(slices.Concat(adjacency, attributes, labels, []any{"class_names", words4("odd", "even")})...)
		b[bytes.Index(b, []byte("e\x00\x00\x00v"))]++
		_, err := load(t, "npz", Options{Src: filepath.Join(files(t, map[string][]byte{"a.npz": b}), "a.npz")})
		if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), "checksum") {
			t.Errorf("got %v", err)
		}
	})
}

// TestPandasLabels: pandas writes a missing number that is alone in its line as
// an empty field in quotes.
func TestPandasLabels(t *testing.T) {
	m := with(tinyOGB(), "raw/node-label.csv.gz", gz("0.0\n1.0\n1.0\n\"\"\n"), "split/time/test.csv.gz", gz(""))
	if c := mustLoad(t, "ogb", Options{Src: files(t, m)}); !slices.Equal(c.Labels, []int32{0, 1, 1, -1}) {
		t.Errorf("labels are %v", c.Labels)
	}
}

// pickles has the array [[1 0] [0 255]] of int32 as CPython 3.11 and NumPy 1.24 write it in
// each protocol: with the bytes as encoded text, as bytes, and as the buffer that the array is
// a view of.
var pickles = map[string]string{
	"2": "\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nq\x01K\x00\x85q\x02c_codecs\nencode\nq\x03X\x01\x00\x00\x00bq\x04X\x06\x00\x00\x00latin1q\x05\x86q\x06Rq\x07\x87q\x08Rq\t(K\x01K\x02K\x02\x86q\ncnumpy\ndtype\nq\x0bX\x02\x00\x00\x00i4q\x0c\x89\x88\x87q\rRq\x0e(K\x03X\x01\x00\x00\x00<q\x0fNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x10b\x89h\x03X\x11\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc3\xbf\x00\x00\x00q\x11h\x05\x86q\x12Rq\x13tq\x14b.",
	"4": "\x80\x04\x95\x9a\x00\x00\x00\x00\x00\x00\x00\x8c\x15numpy.core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07ndarray\x94\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01K\x02K\x02\x86\x94h\x03\x8c\x05dtype\x94\x93\x94\x8c\x02i4\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01<\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94b\x89C\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\x00\x00\x00\x94t\x94b.",
	"5": "\x80\x05\x95\x85\x00\x00\x00\x00\x00\x00\x00\x8c\x12numpy.core.numeric\x94\x8c\x0b_frombuffer\x94\x93\x94(\x96\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\x00\x00\x00\x94\x8c\x05numpy\x94\x8c\x05dtype\x94\x93\x94\x8c\x02i4\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01<\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94bK\x02K\x02\x86\x94\x8c\x01C\x94t\x94R\x94.",
}

func TestPickledArrays(t *testing.T) {
	read := func(b string) ([]int64, error) {
		v, err := pickle.Decode([]byte(b))
		if err != nil {
			return nil, err
		}
		a, err := pickle.NumPy(v)
		if err != nil {
			return nil, err
		}
		return a.Int64s()
	}
	for protocol, b := range pickles {
		t.Run("protocol "+protocol, func(t *testing.T) {
			if got, err := read(b); err != nil || !slices.Equal(got, []int64{1, 0, 0, 255}) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	t.Run("empty in protocol 2", func(t *testing.T) {
		b, _, _ := strings.Cut(pickles["2"], "h\x03X\x11")
		b = strings.Replace(b, "K\x02K\x02\x86q\n", "K\x00\x85q\n", 1) + "c__builtin__\nbytes\nq\x11)Rq\x12tq\x13b."
		if got, err := read(b); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("no bytes", func(t *testing.T) {
		b := strings.Replace(pickles["2"], "\xc3\xbf", "\xc4\x80", 1)
		if got, err := read(b); err == nil {
			t.Errorf("got %v", got)
		}
	})
}

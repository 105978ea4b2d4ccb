package importers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/pickle"
	"siafu/internal/testkit/decodertest"
)

// TestTorch: the tiny graph written by PyTorch, in each of PyTorch Geometric's forms, is the
// same dataset.
func TestTorch(t *testing.T) {
	want := mustLoad(t, "raw", Options{Src: files(t, tinyRaw())})
	for _, c := range []struct {
		file, split, left string
	}{
		{"data.pt", "1", "left_out=name\n"}, {"pair.pt", "", ""}, {"dict.pt", "", ""}, {"old.pt", "", ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			src := filepath.Join("testdata", c.file)
			got := mustLoad(t, "auto", Options{Src: src, Split: c.split})
			same(t, got, want)
			if !strings.Contains(got.log, "format=torch") || !strings.Contains(got.log, c.left) ||
				c.left == "" && strings.Contains(got.log, "left_out") {
				t.Errorf("log:\n%s", got.log)
			}
		})
	}
	got := mustLoad(t, "torch", Options{Src: filepath.Join("testdata", "data.pt")})
	if got.IDs == nil || got.IDs.At(2) != "c" || !slices.Equal(got.Split, []uint8{0, 2, 1, 3}) {
		t.Errorf("ids %+v, split 0 is %v", got.IDs, got.Split)
	}
}

// TestPyGArrays: an npz with the same names, with ids of each type, and without the arrays
// that prediction does not need.
func TestPyGArrays(t *testing.T) {
	want := mustLoad(t, "raw", Options{Src: files(t, tinyRaw())})
	dir := files(t, map[string][]byte{
		"plain.npz": tinyPyG(), "words.npz": tinyPyG("ids", words4("d", "c", "b", "a"), "class_names", words4("no", "yes")),
		"numbers.npz": tinyPyG("ids", i8s(9, 8, 7, 6), "num_nodes", array("<i8", "()", little(int64(4)))),
		"bare.npz":    bundle("x", f4s(4, 2, tinyFeatures...), "edge_index", array("<i8", "(2, 0)", nil)),
		"drawn.npz": bundle("x", f4s(4, 2, tinyFeatures...), "edge_index", array("<i8", "(2, 0)", nil), "y",
			i8s(0, 1, -1, 0), "edge_weight", i8s()),
	})
	for name, ids := range map[string]string{"plain": "3", "words": "a", "numbers": "6"} {
		got := mustLoad(t, "auto", Options{Src: filepath.Join(dir, name+".npz")})
		same(t, got, want)
		if id := got.IDs.At(3); id != ids || name == "words" && !slices.Equal(got.ClassNames, []string{"no", "yes"}) {
			t.Errorf("%s: vertex 3 is %s, classes %q", name, id, got.ClassNames)
		}
	}
	if got := mustLoad(t, "npz", Options{Src: filepath.Join(dir, "bare.npz")}); counts(got.Split)[0] != 4 || got.Labels[0] != -1 ||
		strings.Contains(got.log, "drawn") {
		t.Errorf("labels %v, split %v, log\n%s", got.Labels, got.Split, got.log)
	}
	if got := mustLoad(t, "npz", Options{Src: filepath.Join(dir, "drawn.npz")}); counts(got.Split)[1] != 2 ||
		!strings.Contains(got.log, "split=random") {
		t.Errorf("split %v, log\n%s", got.Split, got.log)
	}
}

// tensorOf pickles the call that makes a tensor [shape] of the storage key.
func (p *pickler) tensorOf(class, key string, elements, offset int, shape, stride []int) *pickler {
	p.raw("ctorch._utils\n_rebuild_tensor_v2\n((").str("storage").raw("ctorch\n" + class + "\n").str(key).str("cpu").
		int(elements).raw("tQ").int(offset)
	for _, list := range [][]int{shape, stride} {
		p.raw("(")
		for _, n := range list {
			p.int(n)
		}
		p.raw("t")
	}
	return p.raw("\x89ccollections\nOrderedDict\n)RtR")
}

// TestBadTorch: errors name the file, the position and a remedy.
func TestBadTorch(t *testing.T) {
	x, ends := little(tinyFeatures), little([]int64{0, 1, 2, 3, 1, 2, 0, 0})
	saved := func(pickle *pickler, storages ...any) []byte {
		return zipped(append([]any{"data.pkl", pickle.done()}, storages...)...)
	}
	dict := func(fill func(p *pickler)) []byte {
		p := newPickler().raw("}(").str("x").tensorOf("FloatStorage", "0", 8, 0, []int{4, 2}, []int{2, 1})
		fill(p)
		p.raw("u")
		return saved(p, "data/0", x, "data/1", ends)
	}
	whole := testFile("pair.pt")
	hurt := bytes.Replace(whole, little([]int32{0, 1, 2, 3, 1, 2, 0, 0}), little([]int32{0, 1, 2, 7, 1, 2, 0, 0}), 1)
	for _, c := range []struct {
		name string
		file []byte
		want []string
	}{
		{"empty", nil, []string{"not a complete file of torch.save"}},
		{"truncated", whole[:len(whole)-9], []string{"not a complete file of torch.save", "save it again"}},
		{"text", []byte("import torch\n"), []string{"not a complete file of torch.save"}},
		{"a bit", hurt, []string{"data/", "checksum", "fetch the file again"}},
		{"before 1.6", testFile("legacy.pt"), []string{"before version 1.6", "save it with PyTorch 1.6 or later"}},
		{"another archive", zipped("a.txt", []byte("hello")), []string{"no data.pkl"}},
		{"TorchScript", zipped("constants.pkl", []byte("\x80\x02).")), []string{"TorchScript", "state_dict"}},
		{"hostile", saved(newPickler().raw("cposix\nsystem\n").str("rm -rf /").raw("\x85R")),
			[]string{"tiny/data.pkl: byte 2", `"posix system"`, "save tensors"}},
		{"eval", saved(newPickler().raw("c__builtin__\neval\n").str("1").raw("\x85R")), []string{`"__builtin__ eval"`}},
		{"a module", saved(newPickler().raw("c__main__\nNet\n)\x81}b")),
			[]string{"byte 2", `"__main__ Net"`, "no objects of other classes"}},
		{"instruction", saved(newPickler().raw("P0\n")), []string{"byte 2: instruction 0x50"}},
		{"a number", saved(newPickler().int(7)), []string{"it holds 7 instead of a PyTorch Geometric Data", "to_dict()"}},
		{"several graphs", saved(newPickler().raw("](}}e")), []string{"a list of 2", "save one graph"}},
		{"itself", saved(newPickler().raw("]q\x00h\x00a")), []string{"a list of 1 instead of a PyTorch Geometric Data"}},
		{"slices of several", zipped("data.pkl", newPickler().raw("}}(").str("x").tensorOf("LongStorage", "0", 3, 0, []int{3}, []int{1}).
			raw("u\x86").done(), "data/0", little([]int64{0, 2, 4})), []string{"it holds 2 graphs", "dataset[0]"}},
		{"types of vertices", saved(newPickler().raw("ctorch_geometric.data.hetero_data\nHeteroData\n)\x81}b")),
			[]string{"HeteroData", "instead of a PyTorch Geometric Data"}},
		{"no x", saved(newPickler().raw("}")), []string{`no "x" among its tensors`}},
		{"no edges", dict(func(p *pickler) { p.str("adj_t").raw("K\x01") }),
			[]string{`no "edge_index" among its tensors: x, adj_t`, "data.adj_t"}},
		{"pairs", dict(func(p *pickler) { p.str("edge_index").tensorOf("LongStorage", "1", 8, 0, []int{4, 2}, []int{2, 1}) }),
			[]string{"[edge_index]", "shape is [4 2], expected [2 edges]", "transpose"}},
		{"beyond", dict(func(p *pickler) { p.str("edge_index").tensorOf("LongStorage", "1", 8, 1, []int{2, 4}, []int{4, 1}) }),
			[]string{"edge_index reaches to element 8 of a storage of 8"}},
		{"expanded", dict(func(p *pickler) {
			p.str("edge_index").tensorOf("LongStorage", "1", 8, 0, []int{2, 1 << 30}, []int{0, 0})
		}), []string{"edge_index has the shape [2 1073741824] in a storage of 8", "contiguous()"}},
		{"negative", dict(func(p *pickler) { p.str("edge_index").tensorOf("LongStorage", "1", 8, 0, []int{2, 4}, []int{-4, 1}) }),
			[]string{"strides [-4 1]"}},
		{"no storage", dict(func(p *pickler) { p.str("edge_index").tensorOf("LongStorage", "5", 8, 0, []int{2, 4}, []int{4, 1}) }),
			[]string{"no data/5, which stores edge_index"}},
		{"complex", dict(func(p *pickler) {
			p.str("edge_index").tensorOf("ComplexFloatStorage", "1", 8, 0, []int{2, 4}, []int{4, 1})
		}), []string{`edge_index has elements of "torch ComplexFloatStorage"`, "to(torch.int64)"}},
		{"fractions", dict(func(p *pickler) { p.str("edge_index").tensorOf("FloatStorage", "0", 8, 0, []int{2, 4}, []int{4, 1}) }),
			[]string{"edge 3: source 4 is outside the vertices 0..3"}},
		{"sparse", dict(func(p *pickler) { p.str("edge_index").raw("ctorch._utils\n_rebuild_sparse_tensor\n)R") }),
			[]string{"edge_index is an object of", "instead of a dense tensor", "to_dense()"}},
		{"labels", dict(func(p *pickler) {
			p.str("edge_index").tensorOf("LongStorage", "1", 8, 0, []int{2, 4}, []int{4, 1})
			p.str("y").tensorOf("LongStorage", "1", 8, 0, []int{4, 2}, []int{2, 1})
		}), []string{"[y]", "labels have shape [4 2]"}},
		{"ids", dict(func(p *pickler) {
			p.str("edge_index").tensorOf("LongStorage", "1", 8, 0, []int{2, 4}, []int{4, 1})
			p.str("ids").raw("](").str("a").str("b").str("a").str("c").raw("e")
		}), []string{`id 2 is "a", the same as id 0`, "a unique id"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.pt")
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := load(t, "torch", Options{Src: path})
			if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), path) {
				t.Fatalf("got %v, want a Data fault about %s", err, path)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// A file that declares big-endian numbers is read.
func TestBigEndianTorch(t *testing.T) {
	parts := append(unzipped(testFile("pair.pt")), "byteorder", []byte("big"))
	path := filepath.Join(t.TempDir(), "x.pt")
	if err := os.WriteFile(path, zipped(parts...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := load(t, "torch", Options{Src: path})
	if fault.KindOf(err) != fault.Data ||
		!strings.Contains(fmt.Sprint(err), "[edge_index]") && !strings.Contains(fmt.Sprint(err), "slices of") {
		t.Errorf("little-endian numbers as big ones: %v", err)
	}
}

func FuzzTorch(f *testing.F) {
	for _, name := range []string{"data.pt", "pair.pt", "dict.pt", "old.pt"} {
		parts := unzipped(testFile(name))
		f.Add(parts[1].([]byte))
	}
	storage := little([]int64{0, 1, 2, 3, 1, 2, 0, 0})
	f.Fuzz(func(t *testing.T, pickled []byte) {
		b := zipped("data.pkl", pickled, "data/0", storage, "data/1", storage, "data/2", storage[:9])
		decodertest.Heap(t, int64(len(b)), func() {
			file, err := pickle.NewTorch(b, "x.pt")
			if err == nil {
				k := newResources(input{"import torch", "x.pt"})
				defer k.release()
				_, err = caught(func() *graph.Content { return torchGraph(k, Options{Src: "x.pt", Log: func(string, ...any) {}}, file) })
			}
			if err != nil && fault.KindOf(err) != fault.Data {
				t.Errorf("%v is of kind %d, want %d", err, fault.KindOf(err), fault.Data)
			}
		})
	})
}

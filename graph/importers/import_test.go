package importers

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/realdata"
)

// fixture is the tiny graph in a format; src is the path in the folder.
type fixture struct {
	name  string
	files map[string][]byte
	src   string
	drawn bool // the format has no split
}

// moreFixtures are fixtures of formats whose tests are in a file of their own.
var moreFixtures []fixture

// formats returns the fixtures of all formats.
func formats() []fixture {
	hetero := tinyHetero(1, 1, 0, 0, 0, 0, 1, 1)
	return append([]fixture{
		{"raw", tinyRaw(), "", false},
		{"npz", map[string][]byte{"tiny.npz": tinyNpz()}, "tiny.npz", true},
		{"npz", map[string][]byte{"h.npz": hetero}, "h.npz", false},
		{"npz", map[string][]byte{"p.npz": tinyPyG()}, "p.npz", false},
		{"torch", map[string][]byte{"tiny.pt": testFile("old.pt")}, "tiny.pt", false},
		{"dgl", map[string][]byte{"tiny.dgl": testFile("coo.dgl")}, "tiny.dgl", false},
		{"planetoid", tinyPlanetoid(), "", false},
		{"ogb", tinyOGB(), "", false},
		{"ogb", tinyPapers(), "", false},
		{"graphsaint", tinySAINT(), "", false},
		{"reddit-npz", tinyReddit(), "", false},
		{"bsnap", tinyBsnap(), "", true},
		{"snap", tinySnap(), "", false},
		{"csv", tinyCSV(), "", false},
		{"parquet", tinyParquet(), "", false},
	}, moreFixtures...)
}

// TestEveryFormat: one graph in every format is one dataset, and auto knows
// each of them.
func TestEveryFormat(t *testing.T) {
	for _, name := range Names() {
		if name != "debian" && name != "triples" && !slices.ContainsFunc(formats(), func(f fixture) bool { return f.name == name }) {
			t.Errorf("there is no fixture in format %s", name)
		}
	}
	for _, symmetrise := range []bool{false, true} {
		want := mustLoad(t, "raw", Options{Src: files(t, tinyRaw()), Symmetrise: symmetrise})
		for _, f := range formats() {
			t.Run(f.name+" "+f.src, func(t *testing.T) {
				src := filepath.Join(files(t, f.files), f.src)
				got := mustLoad(t, "auto", Options{Src: src, Symmetrise: symmetrise})
				if !strings.Contains(got.log, "format="+f.name+"\n") {
					t.Errorf("auto took it for %s", got.log)
				}
				if f.drawn {
					if !strings.Contains(got.log, "split=random") {
						t.Errorf("log does not tell of the drawn split: %s", got.log)
					}
					got.Split = want.Split
				}
				w := want
				if got.Symmetrise && !symmetrise { // the format lists edges in one direction
					w = mustLoad(t, "raw", Options{Src: files(t, tinyRaw()), Symmetrise: true})
				}
				same(t, got, w)
			})
		}
	}
}

func TestDetails(t *testing.T) {
	t.Run("ids", func(t *testing.T) {
		c := mustLoad(t, "snap", Options{Src: files(t, tinySnap())})
		if want := []int64{-5, 10, 1000000000000, 7000000000000}; c.IDs == nil || !slices.Equal(c.IDs.Ints, want) {
			t.Errorf("ids of snap are %v, want %v", c.IDs, want)
		}
		c = mustLoad(t, "reddit-npz", Options{Src: files(t, tinyReddit())})
		if want := []int64{9, 8, 7, 6}; c.IDs == nil || !slices.Equal(c.IDs.Ints, want) {
			t.Errorf("ids of reddit are %v, want %v", c.IDs, want)
		}
	})
	t.Run("snap ids are rows", func(t *testing.T) {
		m := with(tinySnap(), "edges.txt", nil, "edges.csv", "from,to\n0,3\n", "split.npy", nil)
		c := mustLoad(t, "auto", Options{Src: files(t, m)})
		if want := [][2]uint32{{0, 3}}; c.IDs != nil || !slices.Equal(c.edges, want) {
			t.Errorf("edges %v, ids %v", c.edges, c.IDs)
		}
		if counts(c.Split) != [4]int{0, 3, 1, 0} {
			t.Errorf("drawn split is %v", c.Split)
		}
	})
	t.Run("splits", func(t *testing.T) {
		c := mustLoad(t, "raw", Options{Src: files(t, tinyRaw()), Split: "splits2.bin:1"})
		if want := []uint8{3, 2, 1, 0}; !slices.Equal(c.Split, want) {
			t.Errorf("row 1 is %v, want %v", c.Split, want)
		}
		src := filepath.Join(files(t, map[string][]byte{"h.npz": tinyHetero(1, 1, 0, 0, 0, 0, 1, 1)}), "h.npz")
		c = mustLoad(t, "npz", Options{Src: src, Split: "1"})
		if want := []uint8{3, 2, 1, 1}; !slices.Equal(c.Split, want) {
			t.Errorf("mask 1 is %v, want %v", c.Split, want)
		}
	})
	t.Run("raw meta", func(t *testing.T) {
		c := mustLoad(t, "raw", Options{Src: files(t, tinyRaw()), Normalize: true})
		if c.Licence != "CC0" || !c.Synthetic || c.Classes != 2 || !c.Normalize {
			t.Errorf("content is %+v", c.Content)
		}
	})
	t.Run("zero weights are no edges", func(t *testing.T) {
		m := with(tinySAINT(), "adj_full.npz",
			bundle("data", i8s(1, 0, 1, 1), "indices", i8s(1, 2, 0, 0), "indptr", i8s(0, 1, 2, 3, 4), "shape", i8s(4, 4)))
		c := mustLoad(t, "graphsaint", Options{Src: files(t, m)})
		if want := [][2]uint32{{0, 1}, {2, 0}, {3, 0}}; !slices.Equal(c.edges, want) {
			t.Errorf("edges %v", c.edges)
		}
	})
	t.Run("reddit has no weights", func(t *testing.T) {
		m := with(tinyReddit(), "reddit_graph.npz",
			bundle("row", i8s(3, 0), "col", i8s(0, 1), "format", array("|S3", "()", []byte("coo")), "shape", i8s(4, 4), "data", i8s(2, 1)))
		c := mustLoad(t, "reddit-npz", Options{Src: files(t, m)})
		if _, weighted := c.Edges.(graph.WeightedSource); weighted || !strings.Contains(c.log, "weights of edges are dropped") {
			t.Errorf("edges %T, log %s", c.Edges, c.log)
		}
	})
	t.Run("bsnap counts an undirected edge twice", func(t *testing.T) {
		m := with(tinyBsnap(), "graph.bsnap", little(int32(4), uint32(4), uint64(8), []uint32{0, 1, 1, 2, 2, 0, 3, 0}))
		if c := mustLoad(t, "bsnap", Options{Src: files(t, m)}); len(c.edges) != 8 {
			t.Errorf("%d edges, want 8", len(c.edges))
		}
	})
	t.Run("unsorted sparse features", func(t *testing.T) {
		m := &matrix{rows: 2, cols: 5, indptr: []int64{0, 4, 5}, indices: []uint32{4, 1, 4, 0, 2}, data: []float32{1, 2, 3, 4, 5}}
		s, err := caught(m.sparseRows)
		want := &graph.SparseRows{Offsets: []int64{0, 3, 4}, Cols: []uint32{0, 1, 4, 2}, Vals: []float32{4, 2, 4, 5}}
		if err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("rows are %+v, %v, want %+v", s, err, want)
		}
	})
	t.Run("ogb labels", func(t *testing.T) {
		m := with(tinyOGB(), "raw/node-label.csv.gz", gz("0.0\n1.0\n1\nnan\n"), "split/time/test.csv.gz", gz(""))
		if c := mustLoad(t, "ogb", Options{Src: files(t, m)}); !slices.Equal(c.Labels, []int32{0, 1, 1, -1}) {
			t.Errorf("labels are %v", c.Labels)
		}
	})
}

// TestName: a dataset is named after its own folder, for any name of its source, or by --name.
func TestName(t *testing.T) {
	src := files(t, tinyRaw()) // whose meta.json has a name, too
	for name, want := range map[string]string{"": "my-graph", "Other": "other"} {
		dst := filepath.Join(t.TempDir(), "My-Graph")
		if _, err := Import("raw", Options{Src: src, Dst: dst + "/", Name: name}); err != nil {
			t.Fatal(err)
		}
		if m, err := graph.ReadMeta(dst); err != nil || m.Name != want {
			t.Errorf("%v, named %q, want %q", err, m.Name, want)
		}
	}
}

// TestDrawn: a random split has the requested sizes, and depends only on the seed.
func TestDrawn(t *testing.T) {
	labels := make([]int32, 1000)
	for v := range labels {
		labels[v] = int32(v%3) - 1 // a third without
	}
	labels[0], labels[3] = 2, 2 // a class of two
	per := drawPerClass(labels, 20, 30, 7)
	perClass := map[int32]*[4]int{}
	for v, s := range per {
		if perClass[labels[v]] == nil {
			perClass[labels[v]] = new([4]int)
		}
		perClass[labels[v]][s]++
	}
	for l, want := range map[int32][4]int{-1: {332, 0, 0, 0}, 0: {0, 20, 30, 283}, 1: {0, 20, 30, 283}, 2: {0, 2, 0, 0}} {
		if *perClass[l] != want {
			t.Errorf("class %d: %v, want %v", l, *perClass[l], want)
		}
	}
	percent, _ := drawPercent(labels, percentages{66, 10}, false, 7)
	if want := [4]int{332, 441, 67, 160}; counts(percent) != want {
		t.Errorf("66/10/24: %v, want %v", counts(percent), want)
	}
	if !slices.Equal(per, drawPerClass(labels, 20, 30, 7)) || slices.Equal(per, drawPerClass(labels, 20, 30, 8)) {
		t.Error("the split does not depend on the seed alone")
	}
}

// TestPlanetoidIsRaw: the pickles of cora and the flat arrays converted from them by other
// software are the same dataset.
func TestPlanetoidIsRaw(t *testing.T) {
	want := mustLoad(t, "raw", Options{Src: realdata.Dir(t, "cora")})
	got := mustLoad(t, "auto", Options{Src: filepath.Dir(realdata.File(t, "originals/planetoid/ind.cora.graph"))})
	same(t, got, want)
	if len(got.edges) != 10556 || counts(got.Split) != [4]int{1068, 140, 500, 1000} {
		t.Errorf("%d edges, split %v", len(got.edges), counts(got.Split))
	}
}

func TestTolokersIsRaw(t *testing.T) {
	dir, src := realdata.Dir(t, "tolokers"), realdata.File(t, "originals/tolokers.npz")
	for split, raw := range map[string]string{"": "", "9": "splits10.bin:9"} {
		same(t, mustLoad(t, "auto", Options{Src: src, Split: split}), mustLoad(t, "raw", Options{Src: dir, Split: raw}))
	}
}

func TestBenchmarkCora(t *testing.T) {
	c := mustLoad(t, "auto", Options{Src: realdata.File(t, "originals/gnn-benchmark_cora.npz"), Symmetrise: true})
	// The same citations as planetoid's cora, in another order of vertices.
	if c.Vertices != 2708 || len(c.edges) != 10556 || c.Features.Dim != 1433 || len(c.Features.Sparse.Cols) != 49216 {
		t.Errorf("%d vertices, %d edges, %d of %d features", c.Vertices, len(c.edges), len(c.Features.Sparse.Cols), c.Features.Dim)
	}
	if want := [4]int{0, 140, 210, 2358}; counts(c.Split) != want || len(c.ClassNames) != 7 {
		t.Errorf("split %v, want %v; classes %q", counts(c.Split), want, c.ClassNames)
	}
	sizes := make([]int, 7)
	for _, l := range c.Labels {
		sizes[l]++
	}
	slices.Sort(sizes)
	if want := []int{180, 217, 298, 351, 418, 426, 818}; !slices.Equal(sizes, want) {
		t.Errorf("classes have %v vertices, want %v", sizes, want)
	}
}

// TestArchive: an archive gives the same dataset as its folder, and leaves no temporary files.
func TestArchive(t *testing.T) {
	dir, archive := realdata.Dir(t, "cora"), realdata.File(t, "cora.tar.zst")
	parent := t.TempDir()
	got := mustLoad(t, "auto", Options{Src: archive, Dst: filepath.Join(parent, "not", "yet", "out")})
	same(t, got, mustLoad(t, "raw", Options{Src: dir}))
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	}
}

// A graph to predict on needs no labels.
func TestUnlabelled(t *testing.T) {
	for _, c := range []struct {
		from  string
		files map[string][]byte
	}{
		{"raw", with(tinyRaw(), "labels.bin", nil, "split.bin", nil)},
		{"raw", with(tinyRaw(), "meta.json", `{"nodes": 4, "edges": 4, "feature_dim": 2}`, "labels.bin", little([]int32{-1, -1, -1, -1}),
			"split.bin", []byte{0, 0, 0, 0})},
		{"snap", with(tinySnap(), "labels.npy", nil, "split.npy", nil)},
	} {
		d, log := imported(t, c.from, Options{Src: files(t, c.files)})
		if !slices.Equal(d.Labels, []int32{-1, -1, -1, -1}) || d.Meta.Classes > 2 || d.Meta.Train > 0 {
			t.Errorf("%s: labels %v of %d classes", c.from, d.Labels, d.Meta.Classes)
		}
		if d.Meta.Classes == 0 && !strings.Contains(log, "warning: no vertex has a label") {
			t.Errorf("%s says nothing of it:\n%s", c.from, log)
		}
	}
	if _, err := load(t, "raw", Options{Src: files(t, with(tinyRaw(), "labels.bin", nil))}); fault.KindOf(err) != fault.Missing {
		t.Errorf("a split of no labels: %v", err)
	}
}

// Labels of ogbn-papers100M are floats, nan for none.
func TestPapersLabels(t *testing.T) {
	nan := float32(math.NaN())
	set := func(labels ...float32) map[string][]byte {
		return with(tinyPapers(), "raw/node-label.npz", bundle("node_label", f4s(len(labels), 1, labels...)),
			"split/time/test.csv.gz", gz(""))
	}
	if c := mustLoad(t, "ogb", Options{Src: files(t, set(0, 1, 1, nan))}); !slices.Equal(c.Labels, []int32{0, 1, 1, -1}) {
		t.Errorf("labels are %v", c.Labels)
	}
	for says, m := range map[string]map[string][]byte{"label of vertex 1 is 1.5": set(0, 1.5, 1, 0),
		"3 labels for 4 vertices": set(0, 1, 1)} {
		if _, err := load(t, "ogb", Options{Src: files(t, m)}); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

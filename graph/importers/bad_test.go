package importers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// TestBadInputs: each bad input is refused with a message that names the file,
// the position and the value, and leaves nothing.
func TestBadInputs(t *testing.T) {
	nan := "\x00\x00\xc0\x7f"
	npz := func(b []byte) map[string][]byte { return map[string][]byte{"a.npz": b} }
	hetero := tinyHetero(1, 1, 0, 0, 0, 0, 1, 1)
	for _, c := range []struct {
		name  string
		from  string
		files map[string][]byte
		src   string
		split string
		kind  fault.Kind
		want  []string
	}{
		{"raw/no meta", "raw", with(tinyRaw(), "meta.json", nil), "", "", fault.Missing, []string{"meta.json", "no such file"}},
		{"raw/meta is no json", "raw", with(tinyRaw(), "meta.json", "{"), "", "", fault.Data, []string{"meta.json", "JSON"}},
		{"raw/meta without nodes", "raw", with(tinyRaw(), "meta.json", `{"edges": 1, "feature_dim": 2}`), "", "", fault.Data,
			[]string{"nodes, edges or feature_dim is missing"}},
		{"raw/too many nodes", "raw", with(tinyRaw(), "meta.json", `{"nodes": 4294967297, "edges": 1, "feature_dim": 2}`), "", "",
			fault.Data, []string{"4294967297 vertices"}},
		{"raw/multi-label", "raw", with(tinyRaw(), "meta.json", `{"nodes": 4, "edges": 4, "feature_dim": 2, "multilabel": true}`), "", "",
			fault.Data, []string{"multilabel is true", "as npz"}},
		{"raw/truncated edges", "raw", with(tinyRaw(), "graph.edges.bin", little([]uint32{0, 1, 1})), "", "", fault.Data,
			[]string{"graph.edges.bin", "12 bytes, expected 32", "truncated"}},
		{"raw/edge out of range", "raw", with(tinyRaw(), "graph.edges.bin", little([]uint32{0, 1, 1, 2, 2, 4, 3, 0})), "", "", fault.Data,
			[]string{"edge 2: destination 4", "0..3"}},
		{"raw/one direction", "raw", with(tinyRaw(), "meta.json", `{"nodes": 4, "edges": 4, "undirected": true, "feature_dim": 2}`), "", "",
			fault.Data, []string{"edge 0: 0→1 has no reverse", "--symmetrise"}},
		{"raw/nan", "raw", with(tinyRaw(), "features.bin", string(little([]float32{1, 2, 3, 4, 5}))+nan+string(little([]float32{7, 8}))),
			"", "", fault.Data, []string{"features.bin", "feature 1 of vertex 2 is NaN"}},
		{"raw/label", "raw", with(tinyRaw(), "labels.bin", little([]int32{0, 1, 2, 0})), "", "", fault.Data,
			[]string{"labels.bin", "label of vertex 2 is 2, expected -1 (none) to 1"}},
		{"raw/split value", "raw", with(tinyRaw(), "split.bin", "\x01\x01\x02\x04"), "", "", fault.Data,
			[]string{"split.bin", "split of vertex 3 is 4"}},
		{"raw/training without label", "raw", with(tinyRaw(), "labels.bin", little([]int32{0, -1, 1, 0})), "", "", fault.Data,
			[]string{"vertex 1 is in the training set and has no label"}},
		{"raw/split row", "raw", tinyRaw(), "", "splits2.bin:2", fault.Usage, []string{"no row 2, the file has 2 splits", "from 0 to 1"}},
		{"raw/split of many", "raw", tinyRaw(), "", "splits2.bin", fault.Data, []string{"8 bytes, expected 4", "--split splits2.bin:0"}},
		{"raw/split elsewhere", "raw", tinyRaw(), "", "../split.bin", fault.Usage, []string{"is not a file of the folder"}},
		{"raw/archive", "raw", map[string][]byte{"x.tar.zst": []byte("no archive")}, "x.tar.zst", "", fault.Data, []string{"x.tar.zst"}},

		{"npz/no zip", "npz", npz([]byte("no zip")), "a.npz", "", fault.Data, []string{"a.npz", "zip"}},
		{"npz/truncated", "npz", npz(tinyNpz()[:900]), "a.npz", "", fault.Data, []string{"a.npz", "zip"}},
		{"npz/unknown keys", "npz", npz(bundle("x", i8s(1))), "a.npz", "", fault.Data, []string{"adj_indptr", "among its arrays: x"}},
		{"npz/column", "npz", npz(bundle("adj_indices", i8s(0, 4), "adj_indptr", i8s(0, 1, 2), "adj_shape", i8s(2, 2))), "a.npz", "",
			fault.Data, []string{"column index 1 is 4, outside the 2 columns"}},
		{"npz/negative column", "npz", npz(bundle("adj_indices", array("<i4", "(1,)", little(int32(-7))), "adj_indptr", i8s(0, 1),
			"adj_shape", i8s(1, 1))), "a.npz", "", fault.Data, []string{"a.npz[adj_indices]", "element 0 is -7"}},
		{"npz/row starts", "npz", npz(bundle("adj_indices", i8s(0, 1), "adj_indptr", i8s(0, 3, 2), "adj_shape", i8s(2, 2))), "a.npz", "",
			fault.Data, []string{"indptr[1] is 3 and decreases to 2"}},
		{"npz/labels", "npz", npz(bundle(append(tinyCSR(i8s(1, 1, 1, 1)), "attr_matrix", f4s(4, 2, tinyFeatures...), "labels",
			i8s(0, -2, 1, 0))...)), "a.npz", "", fault.Data, []string{"a.npz[labels]", "label of vertex 1 is -2"}},
		{"npz/rows of features", "npz", npz(bundle(append(tinyCSR(i8s(1, 1, 1, 1)), "attr_matrix", f4s(2, 4, tinyFeatures...), "labels",
			i8s(0, 0, 1, 0))...)), "a.npz", "", fault.Data, []string{"features have shape [2 4], expected 4 rows"}},
		{"npz/nan", "npz", npz(bundle(append(tinyCSR(i8s(1, 1, 1, 1)), "labels", i8s(0, 0, 1, 0), "attr_indptr", i8s(0, 0, 0, 0, 1),
			"attr_indices", i8s(5), "attr_shape", i8s(4, 9), "attr_data", array("<f4", "(1,)", []byte(nan)))...)), "a.npz", "", fault.Data,
			[]string{"feature 5 of vertex 3 is NaN"}},
		{"npz/overlap", "npz", npz(tinyHetero(1, 0, 1, 0, 0, 0, 0, 0)), "a.npz", "", fault.Data,
			[]string{"a.npz[val_masks]", "entry 2: vertex 2 of the validation set is in the training set already"}},
		{"npz/mask index", "npz", npz(hetero), "a.npz", "2", fault.Usage, []string{"there is no mask 2, the file has 2", "0 to 1"}},

		{"planetoid/truncated", "planetoid", with(tinyPlanetoid(), "ind.tiny.allx", rows(1, 2, 3, 4, 5, 6)[:200]), "", "", fault.Data,
			[]string{"ind.tiny.allx", "truncated"}},
		{"npz/label rows", "npz", npz(bundle(append(tinyCSR(i8s(1, 1, 1, 1)), "attr_matrix", f4s(4, 2, tinyFeatures...), "labels_indptr",
			i8s(0, 0), "labels_indices", i8s(), "labels_shape", i8s(1, 2))...)), "a.npz", "", fault.Data,
			[]string{"the label matrix has 1 rows for 4 vertices"}},
		{"planetoid/no matrix", "planetoid", with(tinyPlanetoid(), "ind.tiny.x", oneHot(0)), "", "", fault.Data,
			[]string{"ind.tiny.x", "is not a SciPy csr_matrix"}},
		{"planetoid/absent", "planetoid", with(tinyPlanetoid(), "ind.tiny.ty", nil), "", "", fault.Missing, []string{"ind.tiny.ty"}},
		{"planetoid/test twice", "planetoid", with(tinyPlanetoid(), "ind.tiny.test.index", "3\n3\n", "ind.tiny.tx", rows(1, 2, 3, 4),
			"ind.tiny.ty", oneHot(0, 0)), "", "", fault.Data, []string{"test.index", "line 2: vertex 3 occurs twice"}},
		{"planetoid/test in allx", "planetoid", with(tinyPlanetoid(), "ind.tiny.test.index", "2\n"), "", "", fault.Data,
			[]string{"line 1: vertex 2 is one of the 3"}},
		{"planetoid/test far away", "planetoid", with(tinyPlanetoid(), "ind.tiny.test.index", "4000000000\n"), "", "", fault.Data,
			[]string{"vertex 4000000000 is the largest, but only 4"}},
		{"planetoid/neighbour", "planetoid", with(tinyPlanetoid(), "ind.tiny.graph", newPickler().raw("}K\x00](K\x01K\x04es").done()), "",
			"", fault.Data, []string{"ind.tiny.graph", "edge 1: destination 4"}},
		{"planetoid/two labels", "planetoid", with(tinyPlanetoid(), "ind.tiny.ty", newPickler().array("<i4", little([]int32{1, 1}), 1, 2).
			done()), "", "", fault.Data, []string{"ind.tiny.ty", "row 0 has the labels 0 and 1"}},

		{"ogb/no gzip", "ogb", with(tinyOGB(), "raw/edge.csv.gz", "0,1\n"), "", "", fault.Data, []string{"edge.csv.gz"}},
		{"ogb/truncated", "ogb", with(tinyOGB(), "raw/edge.csv.gz", gz("0,1\n1,2\n2,0\n3,0\n")[:20]), "", "", fault.Data,
			[]string{"edge.csv.gz", "truncated"}},
		{"ogb/id", "ogb", with(tinyOGB(), "raw/edge.csv.gz", gz("0,1\n1,2\n2,0\n3,4\n")), "", "", fault.Data,
			[]string{"edge.csv.gz", "line 4 column 2", `"4"`}},
		{"ogb/edges", "ogb", with(tinyOGB(), "raw/edge.csv.gz", gz("0,1\n")), "", "", fault.Data,
			[]string{"1 edges, expected 4 as in num-edge-list.csv.gz"}},
		{"ogb/columns", "ogb", with(tinyOGB(), "raw/node-feat.csv.gz", gz("1,2\n3,4\n5\n7,8\n")), "", "", fault.Data,
			[]string{"node-feat.csv.gz", "line 3 has 1 columns, earlier lines have 2"}},
		{"ogb/nan", "ogb", with(tinyOGB(), "raw/node-feat.csv.gz", gz("1,2\n3,nan\n5,6\n7,8\n")), "", "", fault.Data,
			[]string{"line 2 column 2", `"nan"`}},
		{"ogb/rows", "ogb", with(tinyOGB(), "raw/node-feat.csv.gz", gz("1,2\n3,4\n")), "", "", fault.Data,
			[]string{"2 rows, expected 4, one for each vertex"}},
		{"ogb/multi-label", "ogb", with(tinyOGB(), "raw/node-label.csv.gz", gz("0,1\n1,2\n0,0\n1,0\n")), "", "", fault.Data,
			[]string{"node-label.csv.gz", "column 1 of row 1 is 2: a label must be 0 or 1"}},
		{"ogb/overlap", "ogb", with(tinyOGB(), "split/time/test.csv.gz", gz("3\n1\n")), "", "", fault.Data,
			[]string{"test.csv.gz", "entry 1: vertex 1 of the test set is in the training set already"}},
		{"ogb/which split", "ogb", with(tinyOGB(), "split/other/train.csv.gz", gz("0\n")), "", "", fault.Usage,
			[]string{`["other" "time"]`, "--split"}},

		{"graphsaint/multi-label", "graphsaint", with(tinySAINT(), "class_map.json", `{"0": [0, 1], "1": [1]}`), "", "", fault.Data,
			[]string{"class_map.json", "vertex 1 has a list of 1 labels, other vertices have 2"}},
		{"graphsaint/one and several", "graphsaint", with(tinySAINT(), "class_map.json", `{"0": [0, 1], "1": 1}`), "", "", fault.Data,
			[]string{"class_map.json", "vertex 1 mixes single labels with lists of labels"}},
		{"graphsaint/words", "graphsaint", with(tinySAINT(), "class_map.json", `{"0": ["a", 1]}`), "", "", fault.Data,
			[]string{"class_map.json", "byte"}},
		{"graphsaint/vertex", "graphsaint", with(tinySAINT(), "class_map.json", `{"4": 1}`), "", "",
			fault.Data, []string{`key "4"`, "0..3"}},
		{"graphsaint/twice", "graphsaint", with(tinySAINT(), "class_map.json", `{"1": 1, "1": 0}`), "", "", fault.Data,
			[]string{"vertex 1 occurs twice"}},
		{"graphsaint/truncated json", "graphsaint", with(tinySAINT(), "class_map.json", `{"1": 1, "2"`), "", "", fault.Data,
			[]string{"class_map.json", "byte"}},
		{"graphsaint/role", "graphsaint", with(tinySAINT(), "role.json", `{"tr": [0, 9]}`), "", "", fault.Data,
			[]string{"role.json", "entry 1: 9 is outside the vertices 0..3"}},
		{"graphsaint/infinite", "graphsaint", with(tinySAINT(), "feats.npy", array("<f8", "(4, 2)", little([]float64{1, 2, 3, 1e300, 5, 6,
			7, 8}))), "", "", fault.Data, []string{"feats.npy", "element 3 is 1e+300, which is beyond the range of float32"}},

		{"reddit/row", "reddit-npz", with(tinyReddit(), "reddit_graph.npz", bundle("row", i8s(4), "col", i8s(0), "shape", i8s(4, 4))), "",
			"", fault.Data, []string{"reddit_graph.npz", "row index 0 is 4"}},
		{"reddit/not square", "reddit-npz", with(tinyReddit(), "reddit_graph.npz", bundle("row", i8s(), "col", i8s(), "shape", i8s(4, 5))),
			"", "", fault.Data, []string{"4 x 5, not square"}},
		{"reddit/types", "reddit-npz", with(tinyReddit(), "reddit_data.npz",
			bundle("feature", f4s(4, 2, tinyFeatures...), "label", i8s(0, 1, 1, 0), "node_types", i8s(1, 1, 7, 3))), "", "", fault.Data,
			[]string{"reddit_data.npz[node_types]", "split of vertex 2 is 7"}},
		{"reddit/objects", "reddit-npz", with(tinyReddit(), "reddit_data.npz", bundle("feature", array("|O", "(4,)", nil))), "", "",
			fault.Data, []string{"[feature]", `"|O" is not supported`}},

		{"bsnap/id size", "bsnap", with(tinyBsnap(), "graph.bsnap", little(int32(8), uint32(4), uint64(0))), "", "", fault.Data,
			[]string{"graph.bsnap", "byte 0: vertex ids of 8 bytes"}},
		{"bsnap/truncated", "bsnap", with(tinyBsnap(), "graph.bsnap", little(int32(4), uint32(4), uint64(4), []uint32{0, 1, 1})), "", "",
			fault.Data, []string{"byte 8: 4 edges, but 12 bytes follow"}},
		{"bsnap/id", "bsnap", with(tinyBsnap(), "graph.bsnap", little(int32(4), uint32(4), uint64(1), []uint32{7, 1})), "", "", fault.Data,
			[]string{"edge 0: source 7"}},
		{"bsnap/dimension", "bsnap", with(tinyBsnap(), "features.bsnap", little(uint32(3), tinyFeatures)), "", "", fault.Data,
			[]string{"features.bsnap", "32 bytes after the header are not 4 rows of 3 4-byte numbers"}},
		{"bsnap/label", "bsnap", with(tinyBsnap(), "labels.bsnap", little(uint32(2), []uint32{0, 1, 1, 2})), "", "", fault.Data,
			[]string{"label of vertex 3 is 2"}},
		{"bsnap/parts", "bsnap", with(tinyBsnap(), "parts_2/graph.bsnap.parts", "0\n1\n"), "", "", fault.Data,
			[]string{"graph.bsnap.parts", "2 lines for 4 vertices"}},
		{"bsnap/part", "bsnap", with(tinyBsnap(), "parts_2/graph.bsnap.parts", "0\n1x\n0\n0\n"), "", "", fault.Data,
			[]string{"line 2", `"1x" is not a partition number`}},

		{"snap/words", "snap", with(tinySnap(), "edges.txt", "1 2\n3 four\n"), "", "", fault.Data,
			[]string{"edges.txt", "line 2", `"3 four"`}},
		{"snap/one id", "snap", with(tinySnap(), "edges.txt", "# a comment\n1 2\n3\n"), "", "", fault.Data, []string{"line 3"}},
		{"snap/overflow", "snap", with(tinySnap(), "edges.txt", "1 9223372036854775808\n"), "", "", fault.Data,
			[]string{"line 1", "9223372036854775808"}},
		{"snap/rows", "snap", with(tinySnap(), "edges.txt", "1 2\n2 9\n"), "", "", fault.Data, []string{"3 ids from 1 to 9 for 4 rows"}},
		{"snap/labels", "snap", with(tinySnap(), "labels.npy", i8s(0, 1, 1)), "", "", fault.Data,
			[]string{"labels.npy", "shape is [3], expected [4]"}},
		{"snap/many lists", "snap", with(tinySnap(), "edges.txt", nil, "a.txt", "", "b.el", ""), "", "", fault.Missing,
			[]string{`["a.txt" "b.el"]`, "edges.txt"}},
		{"snap/split", "snap", with(tinySnap(), "split.npy", i8s(1, 1, 2, -1)), "", "", fault.Data,
			[]string{"split.npy", "split of vertex 3 is -1"}},

		{"auto/nothing known", "auto", map[string][]byte{"readme": nil}, "", "", fault.Data,
			[]string{"the format is not recognised", "raw, npz"}},
		{"auto/absent", "auto", nil, "nowhere", "", fault.Missing, []string{"nowhere"}},
		{"unknown format", "metis", nil, "", "", fault.Usage, []string{`unknown format "metis"`, "raw, npz"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, parent := filepath.Join(files(t, c.files), c.src), t.TempDir()
			dst := filepath.Join(parent, "out")
			_, err := Import(c.from, Options{Src: src, Dst: dst, Split: c.split})
			if err == nil || fault.KindOf(err) != c.kind {
				t.Fatalf("got %v of kind %d, want kind %d", err, fault.KindOf(err), c.kind)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if left, _ := os.ReadDir(parent); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
}

// TestImport: graph.Write stores the read data, and bsnap's partition is copied.
func TestImport(t *testing.T) {
	for _, f := range formats() {
		t.Run(f.name+" "+f.src, func(t *testing.T) {
			dst := filepath.Join(t.TempDir(), "out")
			o := Options{Src: filepath.Join(files(t, f.files), f.src), Dst: dst, Symmetrise: true}
			r, err := Import(f.name, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Vertices != 4 || r.Edges != 8 || r.Directed {
				t.Errorf("report is %+v", r)
			}
			b, err := os.ReadFile(filepath.Join(dst, graph.PartsFile))
			if f.name == "bsnap" && string(b) != "1\n0\n1\n0\n" || f.name != "bsnap" && err == nil {
				t.Errorf("partition is %q, %v", b, err)
			}
			if _, err := Import(f.name, o); fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), "--force") {
				t.Errorf("a second import: %v", err)
			}
			o.Force = true
			if _, err := Import(f.name, o); err != nil {
				t.Errorf("a forced import: %v", err)
			}
			left, _ := os.ReadDir(filepath.Dir(dst))
			if len(left) != 1 {
				t.Errorf("%d entries beside the dataset", len(left)-1)
			}
		})
	}
}

// TestNames: auto recognises the formats in this order.
func TestNames(t *testing.T) {
	want := []string{"raw", "npz", "torch", "dgl", "planetoid", "ogb", "graphsaint", "reddit-npz", "bsnap",
		"snap", "debian", "triples", "csv", "parquet"}
	got := slices.DeleteFunc(Names(), func(name string) bool {
		return slices.ContainsFunc(moreFixtures, func(f fixture) bool { return f.name == name })
	})
	if !slices.Equal(got, want) {
		t.Errorf("names are %v, want %v", got, want)
	}
}

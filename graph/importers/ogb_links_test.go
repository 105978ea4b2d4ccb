package importers

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// tinyLinks returns the layout of ogbl-collab. An import only checks that the files of pairs exist.
func tinyLinks() map[string][]byte {
	return with(tinyOGB(), "raw/node-label.csv.gz", nil, "mapping/labelidx2x.csv.gz", nil,
		"split/time/train.csv.gz", nil, "split/time/valid.csv.gz", nil, "split/time/test.csv.gz", nil,
		"split/time/train.pt", "", "split/time/valid.pt", "", "split/time/test.pt", "",
		"raw/edge_weight.csv.gz", gz("0.5\n2\n3\n1\n"), "raw/edge_year.csv.gz", gz("1999\n1999\n2001\n2002\n"))
}

// tinyVessel returns the layout of ogbl-vessel.
func tinyVessel() map[string][]byte {
	return map[string][]byte{"raw/data.npz": tinyPapers()["raw/data.npz"], "split/random/split_dict.pt": nil}
}

// Graphs of link datasets are read without labels and splits, with weights if any, and the log
// describes how to hold out their pairs.
func TestOGBLinks(t *testing.T) {
	const next = "next: siafu holdout DST DST-links --val SRC/split/time/valid.pt --test SRC/split/time/test.pt --keep-held"
	const one = "next: siafu holdout DST DST-links --val SRC/split/random/split_dict.pt --test SRC/split/random/split_dict.pt --keep-held"
	several := with(tinyLinks(), "split/random/split_dict.pt", "")
	for _, c := range []struct {
		name    string
		files   map[string][]byte
		o       Options
		weights []float32 // of the edges from 2 and 3 to 0, from 0 to 1 and from 1 to 2
		says    []string
	}{
		{"weights", tinyLinks(), Options{}, []float32{3, 1, 0.5, 2}, []string{next, "edge_year.csv.gz years are left out", "--symmetrise"}},
		{"dropped", tinyLinks(), Options{TableOptions: TableOptions{DropWeights: true}}, nil,
			[]string{next, "edge_weight.csv.gz weights are dropped"}},
		{"all 1", with(tinyLinks(), "raw/edge_weight.csv.gz", gz("1\n1\n1\n1\n")), Options{}, nil, []string{next}},
		{"none", with(tinyLinks(), "raw/edge_weight.csv.gz", nil, "raw/node_year.csv.gz", gz("1\n1\n1\n1\n")), Options{}, nil,
			[]string{next, "node_year.csv.gz years are left out"}},
		{"one of two", several, Options{Split: "time"}, []float32{3, 1, 0.5, 2}, []string{next}},
		{"all splits in a file", several, Options{Split: "random"}, []float32{3, 1, 0.5, 2}, []string{one}},
		{"arrays", tinyVessel(), Options{}, nil, []string{one}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Src = files(t, c.files)
			d, log := written(t, "ogb", c.o)
			if !slices.Equal(d.In.Cols, []uint32{2, 3, 0, 1}) || !slices.Equal(d.Weights, c.weights) ||
				!slices.Equal(spread(d.Features), tinyFeatures) {
				t.Errorf("edges from %v, weights %v, features %v", d.In.Cols, d.Weights, spread(d.Features))
			}
			if d.Meta.Train+d.Meta.Val+d.Meta.Test > 0 ||
				slices.ContainsFunc(d.Labels, func(l int32) bool { return l != graph.Unlabelled }) {
				t.Errorf("labels %v, counts of the split %d, %d, %d", d.Labels, d.Meta.Train, d.Meta.Val, d.Meta.Test)
			}
			for _, want := range c.says {
				if want = strings.NewReplacer("SRC", c.o.Src, "DST", d.Dir).Replace(want); !strings.Contains(log, want) {
					t.Errorf("log lacks %q:\n%s", want, log)
				}
			}
		})
	}
	// An edge of weight 0 is omitted, and both directions of an edge have its weight.
	src := files(t, with(tinyLinks(), "raw/edge_weight.csv.gz", gz("0.5\n0\n3\n1\n")))
	d, _ := written(t, "ogb", Options{Src: src, Symmetrise: true})
	if !slices.Equal(d.In.Cols, []uint32{1, 2, 3, 0, 0, 0}) || !slices.Equal(d.Weights, []float32{0.5, 3, 1, 0.5, 3, 1}) {
		t.Errorf("edges from %v, weights %v", d.In.Cols, d.Weights)
	}
}

// Errors of such a folder name file, position, value and remedy.
func TestBadOGBLinks(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string][]byte
		split string
		kind  fault.Kind
		want  []string
	}{
		{"few edges", with(tinyLinks(), "raw/num-edge-list.csv.gz", gz("5\n")), "", fault.Data,
			[]string{"edge.csv.gz", "4 edges, expected 5", "fetch the file again"}},
		{"few weights", with(tinyLinks(), "raw/edge_weight.csv.gz", gz("1\n2\n3\n")), "", fault.Data,
			[]string{"edge_weight.csv.gz", "3 rows for 4 edges", "fetch the file again"}},
		{"many weights", with(tinyLinks(), "raw/edge_weight.csv.gz", gz("1\n2\n3\n4\n5\n")), "", fault.Data,
			[]string{"edge_weight.csv.gz", "5 rows for 4 edges"}},
		{"a word", with(tinyLinks(), "raw/edge_weight.csv.gz", gz("1\n2\nx\n4\n")), "", fault.Data,
			[]string{"edge_weight.csv.gz", `line 3 column 1: "x"`, "correct the line"}},
		{"below 0", with(tinyLinks(), "raw/edge_weight.csv.gz", gz("1\n-2\n3\n4\n")), "", fault.Data,
			[]string{"edge_weight.csv.gz", `line 2 column 1: "-2"`}},
		{"infinite", with(tinyLinks(), "raw/edge_weight.csv.gz", gz("1\n1e39\n3\n4\n")), "", fault.Data,
			[]string{`line 2 column 1: "1e39"`}},
		{"two columns", with(tinyLinks(), "raw/edge_weight.csv.gz", gz("1,1\n2,1\n3,1\n4,1\n")), "", fault.Data,
			[]string{"edge_weight.csv.gz", "line 1 has 2 columns, expected 1"}},
		{"no features", with(tinyLinks(), "raw/node-feat.csv.gz", nil), "", fault.Missing,
			[]string{"node-feat.csv.gz", "ogbl-ddi", "each of the 4 vertices"}},
		{"few features", with(tinyLinks(), "raw/num-node-list.csv.gz", gz("4000000000\n")), "", fault.Data,
			[]string{"node-feat.csv.gz", "4000000000 rows"}},
		{"an end", with(tinyLinks(), "raw/edge.csv.gz", gz("0,1\n1,2\n2,0\n4,0\n")), "", fault.Data,
			[]string{"edge.csv.gz", `line 4 column 1: "4"`, "correct the line"}},
		{"no edges", with(tinyLinks(), "raw/edge.csv.gz", nil), "", fault.Missing, []string{"edge.csv.gz"}},
		{"no test", with(tinyLinks(), "split/time/test.pt", nil), "", fault.Missing, []string{"split/time/test.pt"}},
		{"no split", with(tinyLinks(), "split/time/valid.pt", nil), "", fault.Missing, []string{"node-label.csv.gz"}},
		{"which split", with(tinyLinks(), "split/random/split_dict.pt", ""), "", fault.Usage, []string{`["random" "time"]`, "--split"}},
		{"another split", tinyLinks(), "random", fault.Usage, []string{`split "random"`, `["time"]`, "--split"}},
		{"types of edges", with(tinyLinks(), "raw/edge_reltype.csv.gz", gz("0\n1\n0\n1\n")), "", fault.Data,
			[]string{"edge_reltype.csv.gz", "ogbl-wikikg2", "one type"}},
		{"types of vertices", with(tinyLinks(), "raw/triplet-type-list.csv.gz", gz("a,b,c\n"), "raw/num-node-list.csv.gz", nil), "",
			fault.Data, []string{"triplet-type-list.csv.gz", "ogbl-biokg"}},
		{"features of arrays", with(tinyVessel(), "raw/data.npz", bundle("edge_index", i8s(0, 1), "node_feat",
			f4s(1, 1, float32(math.NaN())))), "", fault.Data, []string{"data.npz[node_feat]", "NaN"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := filepath.Join(t.TempDir(), "out")
			_, err := Import("ogb", Options{Src: files(t, c.files), Dst: dst, Split: c.split})
			if fault.KindOf(err) != c.kind {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
			if exists(dst) {
				t.Error("something is left")
			}
		})
	}
}

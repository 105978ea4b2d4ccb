package importers

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// written returns a written dataset, and the log.
func written(t *testing.T, from string, o Options) (*graph.Dataset, string) {
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

const (
	namedNodes = "id,label,split,x\na,p,train,1\nb,q,train,2\nc,p,test,3\n"
	trades     = "src,dst,weight,amount,age\na,b,0.5,10,1\nb,a,2,30,-2\nc,b,0,7,7\nb,c,1,50,\nc,c,9,1,1\n"
)

// Named columns of the table of edges become features, raw or standardised, with weights or
// instead of them, and are recorded.
func TestEdgeColumns(t *testing.T) {
	src := files(t, map[string][]byte{"nodes.csv": []byte(namedNodes), "edges.csv": []byte(trades)})
	for _, c := range []struct {
		name              string
		o                 TableOptions
		cols              []uint32
		features, weights []float32
		says              string
	}{
		{"one", TableOptions{EdgeFeatures: []string{"amount"}}, []uint32{1, 0, 1}, []float32{30, 10, 50}, []float32{2, 0.5, 1},
			"column=amount kind=number features=1"},
		{"without weights", TableOptions{EdgeFeatures: []string{"amount"}, DropWeights: true}, []uint32{1, 0, 1},
			[]float32{30, 10, 50}, nil, "weights are dropped"},
		{"a weight", TableOptions{EdgeFeatures: []string{"weight", "amount"}}, []uint32{1, 0, 2, 1}, []float32{2, 30, 0.5, 10, 0, 7, 1, 50},
			nil, "not used: columns age"},
		{"both", TableOptions{EdgeFeatures: []string{"weight"}, Weight: "weight"}, []uint32{1, 0, 1},
			[]float32{2, 0.5, 1}, []float32{2, 0.5, 1}, ""},
		{"filled", TableOptions{EdgeFeatures: []string{"age", "amount"}, Fill: "zero"}, []uint32{1, 0, 1}, []float32{-2, 30, 1, 10, 0, 50},
			[]float32{2, 0.5, 1}, "missing=1 filled_with=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, log := written(t, "csv", Options{Src: src, TableOptions: c.o})
			if !slices.Equal(d.In.Cols, c.cols) || !slices.Equal(d.EdgeFeatures, c.features) || !slices.Equal(d.Weights, c.weights) {
				t.Errorf("edges from %v, features %v, weights %v", d.In.Cols, d.EdgeFeatures, d.Weights)
			}
			if list := d.Meta.Table.EdgeColumns; len(list) != len(c.o.EdgeFeatures) || list[0].Name != c.o.EdgeFeatures[0] {
				t.Errorf("recorded are %+v", list)
			}
			if !strings.Contains(log, c.says) {
				t.Errorf("log lacks %q:\n%s", c.says, log)
			}
		})
	}
	// Of the edges that are stored, and the loop: 10, 30, 50 and 1.
	d, _ := written(t, "csv",
		Options{Src: src, TableOptions: TableOptions{EdgeFeatures: []string{"amount", "age"}, Standardise: true, Fill: "mean"}})
	mean, sum := 91/4.0, 0.0
	for _, x := range []float64{10, 30, 50, 1} {
		sum += (x - mean) * (x - mean)
	}
	for at, x := range map[int]float64{0: 30, 2: 10, 4: 50} {
		if got, want := float64(d.EdgeFeatures[at]), (x-mean)/math.Sqrt(sum/4); math.Abs(got-want) > 1e-6 { // a rounding of float32
			t.Errorf("%v has become %v, want %v", x, got, want)
		}
	}
	if d.EdgeFeatures[5] != 0 {
		t.Errorf("a missing value has become %v, the mean is 0", d.EdgeFeatures[5])
	}
	like := files(t, map[string][]byte{"nodes.csv": []byte("id,x\na,1\nb,2\n"),
		"edges.csv": []byte("amount,dst,src,age,weight\n50,a,b,1,1\n")})
	e, _ := written(t, "csv", Options{Src: like, TableOptions: TableOptions{Like: d.Dir}})
	if len(e.EdgeFeatures) != 2 || e.EdgeFeatures[0] != d.EdgeFeatures[4] {
		t.Errorf("with --like 50 has become %v, was %v", e.EdgeFeatures, d.EdgeFeatures)
	}
}

// A table whose edges have no such features is refused with its file, position, value and
// remedy.
func TestBadEdgeColumns(t *testing.T) {
	for _, c := range []struct {
		name, edges string
		o           TableOptions
		kind        fault.Kind
		want        []string
	}{
		{"a word", "src,dst,f\na,b,1\nb,c,x\n", TableOptions{EdgeFeatures: []string{"f"}}, fault.Data,
			[]string{"edges.csv", `line 3 column 3 (f): "x" is not a float32 number`, "write a decimal number"}},
		{"infinite", "src,dst,f\na,b,1e39\n", TableOptions{EdgeFeatures: []string{"f"}}, fault.Data,
			[]string{`line 2 column 3 (f): "1e39" is not a float32 number`}},
		{"missing", "src,dst,f\na,b,\n", TableOptions{EdgeFeatures: []string{"f"}}, fault.Data,
			[]string{`line 2 column 3 (f): the cell has no value`, "--fill"}},
		{"no column", "src,dst,f\na,b,1\n", TableOptions{EdgeFeatures: []string{"g"}}, fault.Data,
			[]string{`no column "g"`, "src, dst, f", "--edge-features"}},
		{"an end", "src,dst,f\na,b,1\n", TableOptions{EdgeFeatures: []string{"dst"}}, fault.Usage, []string{"names dst", "leave it out"}},
		{"twice", "src,dst,f\na,b,1\n", TableOptions{EdgeFeatures: []string{"f", "f"}}, fault.Usage, []string{"named twice"}},
		{"taken over", "src,dst,f\na,b,1\n", TableOptions{EdgeFeatures: []string{"f"}, Like: "x"},
			fault.Usage, []string{"--edge-features"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := files(t, map[string][]byte{"nodes.csv": []byte(namedNodes), "edges.csv": []byte(c.edges)})
			_, err := Import("csv", Options{Src: src, Dst: filepath.Join(t.TempDir(), "out"), TableOptions: c.o})
			if fault.KindOf(err) != c.kind {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
		})
	}
}

// An edge_attr of several columns is edge features, with an edge_weight, unless flags say
// otherwise.
func TestEdgeAttr(t *testing.T) {
	attr := f4s(4, 2, 1, 2, 3, 4, 5, 6, 7, 8)
	double := array("<f8", "(4, 2)", little([]float64{1, 2, 3, 4, 5, 6, 7, 8}))
	nan := f4s(4, 2, 1, 2, 3, 4, 5, float32(math.NaN()), 7, 8)
	src := files(t, map[string][]byte{
		"attr.npz": tinyPyG("edge_attr", attr), "double.npz": tinyPyG("edge_attr", double),
		"both.npz": tinyPyG("edge_attr", attr, "edge_weight", f4s(4, 1, 0.5, 2, 0, 4)),
		"nan.npz":  tinyPyG("edge_attr", nan), "few.npz": tinyPyG("edge_attr", f4s(3, 2, 1, 2, 3, 4, 5, 6)),
		"cube.npz":    tinyPyG("edge_attr", array("<f4", "(4, 2, 1)", little(make([]float32, 8)))),
		"weights.npz": tinyPyG("edge_weight", attr),
	})
	for _, c := range []struct {
		file              string
		drop              bool
		features, weights []float32
	}{
		{"attr.npz", false, []float32{5, 6, 7, 8, 1, 2, 3, 4}, nil},
		{"double.npz", false, []float32{5, 6, 7, 8, 1, 2, 3, 4}, nil},
		{"both.npz", false, []float32{7, 8, 1, 2, 3, 4}, []float32{4, 0.5, 2}},
		{"both.npz", true, nil, []float32{4, 0.5, 2}},
	} {
		d, log := written(t, "npz", Options{Src: filepath.Join(src, c.file), TableOptions: TableOptions{DropEdgeFeatures: c.drop}})
		if !slices.Equal(d.EdgeFeatures, c.features) || !slices.Equal(d.Weights, c.weights) {
			t.Errorf("%s: features %v, weights %v", c.file, d.EdgeFeatures, d.Weights)
		}
		if want := map[bool]string{false: "edge_features=2", true: "edge_attr is dropped"}[c.drop]; !strings.Contains(log, want) {
			t.Errorf("%s: log lacks %q: %s", c.file, want, log)
		}
	}
	for file, want := range map[string]string{
		"nan.npz": "feature 1 of edge 2 is NaN", "few.npz": "[3 2], expected 4 rows", "cube.npz": "[4 2 1], expected 4 rows",
		"weights.npz": "it has 2 columns, but an edge has one weight",
	} {
		if _, err := Import("npz", Options{Src: filepath.Join(src, file),
			Dst: filepath.Join(t.TempDir(), "out")}); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// OGB's table of edge features belongs to its edges, and replaces missing vertex features, as
// in ogbn-proteins.
func TestOGBEdgeFeatures(t *testing.T) {
	along := gz("1,0.5\n2,1\n3,-1\n4,0\n")
	without := with(tinyOGB(), "raw/edge-feat.csv.gz", along)
	delete(without, "raw/node-feat.csv.gz")
	d, log := written(t, "ogb", Options{Src: files(t, without)})
	if want := []float32{3, -1, 4, 0, 1, 0.5, 2, 1}; !slices.Equal(d.EdgeFeatures, want) {
		t.Errorf("features of edges are %v, want %v", d.EdgeFeatures, want)
	}
	if want := []float32{3.5, -0.5, 1, 0.5, 2, 1, 0, 0}; !slices.Equal(spread(d.Features), want) ||
		!strings.Contains(log, "edge_features=2") {
		t.Errorf("those of vertices %v, want %v; log\n%s", spread(d.Features), want, log)
	}
	d, _ = written(t, "ogb", Options{Src: files(t, without), Symmetrise: true})
	if want := []float32{8 / 3.0, -1 / 6.0, 1.5, 0.75, 2.5, 0, 4, 0}; !slices.Equal(spread(d.Features), want) || d.Meta.Directed {
		t.Errorf("those of vertices with edges both ways %v, want %v", spread(d.Features), want)
	}
	d, _ = written(t, "ogb", Options{Src: files(t, with(tinyOGB(), "raw/edge-feat.csv.gz", along))})
	if d.Meta.EdgeDim != 2 || d.Features.Dense[0] != 1 {
		t.Errorf("%d features of edges, %v of vertices", d.Meta.EdgeDim, d.Features.Dense)
	}
	for want, table := range map[string]string{"3 rows for 4 edges": "1\n2\n3\n",
		"5 rows for 4": "1\n2\n3\n4\n5\n", "line 2": "1\nx\n3\n4\n"} {
		src := files(t, with(tinyOGB(), "raw/edge-feat.csv.gz", gz(table)))
		if _, err := Import("ogb", Options{Src: src, Dst: filepath.Join(t.TempDir(), "out")}); fault.KindOf(err) != fault.Data ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "edge-feat.csv.gz") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// DGL's edata has features under one of three names, which belong to edges by id; a single
// column is ignored.
func TestDGLEdgeFeatures(t *testing.T) {
	d, _ := written(t, "dgl", Options{Src: filepath.Join("testdata", "features.dgl")})
	if want := []float32{5, 6, 7, 8, 1, 2, 3, 4}; !slices.Equal(d.EdgeFeatures, want) || d.Meta.Weighted {
		t.Errorf("features of edges are %v, want %v", d.EdgeFeatures, want)
	}
}

// A named array, even of one column, becomes edge features, and is then not a weight.
func TestNamedEdgeArrays(t *testing.T) {
	column, attr := f4s(4, 1, 0.5, 2, -3, 4), f4s(4, 2, 1, 2, 3, 4, 5, 6, 7, 8)
	flat := array("<f8", "(4,)", little([]float64{0.5, 2, -3, 4}))
	weight := f4s(4, 1, 0.5, 2, 0, 4)
	src := files(t, map[string][]byte{
		"column.npz": tinyPyG("edge_attr", column), "flat.npz": tinyPyG("edge_attr", flat), "weight.npz": tinyPyG("edge_weight", weight),
		"beside.npz": tinyPyG("edge_attr", column, "edge_weight", weight), "both.npz": tinyPyG("edge_attr", attr, "edge_weight", weight),
		"positive.npz": tinyPyG("edge_attr", f4s(4, 1, 0.5, 2, 3, 4)),
		"nan.npz":      tinyPyG("edge_attr", f4s(4, 1, 1, float32(math.NaN()), 1, 1)),
		"other.npz":    bundle(append(tinyCSR(weight), "attr_matrix", f4s(4, 2, tinyFeatures...), "labels", i8s(0, 1, 1, 0))...),
	})
	dgl := func(name string) string { return filepath.Join("testdata", name) }
	// The edges are 0 to 1, 1 to 2, 2 to 0 and 3 to 0: the third and the fourth come first.
	for _, c := range []struct {
		from, path, name  string
		features, weights []float32
		says              string
	}{
		{"npz", "column.npz", "edge_attr", []float32{-3, 4, 0.5, 2}, nil, "edge_features=1"},
		{"npz", "flat.npz", "edge_attr", []float32{-3, 4, 0.5, 2}, nil, "edge_features=1"},
		{"npz", "weight.npz", "edge_weight", []float32{0, 4, 0.5, 2}, nil, "edge_features=1"},
		{"npz", "beside.npz", "edge_attr", []float32{4, 0.5, 2}, []float32{4, 0.5, 2}, "edge_features=1"},
		{"npz", "beside.npz", "", nil, []float32{4, 0.5, 2},
			"edge_attr is ignored because edge_weight exists; import it with --edge-features edge_attr"},
		{"npz", "both.npz", "edge_weight", []float32{0, 4, 0.5, 2}, nil, "edge_attr is left out: --edge-features names edge_weight"},
		{"npz", "positive.npz", "", nil, []float32{3, 4, 0.5, 2},
			"one column is read as the weight; import it as a feature with --edge-features edge_attr"},
		{"dgl", dgl("features.dgl"), "e", []float32{2, 1, 4, 3}, nil, `left_out=edata["feat"]`},
		{"dgl", dgl("csr.dgl"), "weight", []float32{0, 4, 0.5, 2}, nil, "edge_features=1"},
		{"dgl", dgl("csr.dgl"), "kind", []float32{0, 1, 1}, []float32{4, 0.5, 2}, "edge_features=1"},
	} {
		o := Options{Src: c.path}
		if c.from == "npz" {
			o.Src = filepath.Join(src, c.path)
		}
		if c.name != "" {
			o.EdgeFeatures = []string{c.name}
		}
		d, log := written(t, c.from, o)
		if !slices.Equal(d.EdgeFeatures, c.features) || !slices.Equal(d.Weights, c.weights) || !strings.Contains(log, c.says) {
			t.Errorf("%s of %s: features %v, weights %v, log lacks %q:\n%s", c.name, c.path, d.EdgeFeatures, d.Weights, c.says, log)
		}
	}
	for _, c := range []struct {
		path, names string
		kind        fault.Kind
		want        string
	}{
		{"nan.npz", "edge_attr", fault.Data, "feature 0 of edge 1 is NaN"},
		{"column.npz", "edge_weight", fault.Data, "there is no edge_weight"},
		{"column.npz", "x", fault.Usage, `names "x"`}, {"both.npz", "edge_attr,edge_weight", fault.Usage, "names 2 arrays"},
		{"other.npz", "edge_attr", fault.Usage, "has no edge_index"},
	} {
		o := Options{Src: filepath.Join(src, c.path), Dst: filepath.Join(t.TempDir(), "out")}
		o.EdgeFeatures = strings.Split(c.names, ",")
		if _, err := Import("npz", o); fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.names, c.path, err, c.want)
		}
	}
	o := Options{Src: dgl("features.dgl"), Dst: filepath.Join(t.TempDir(), "out")}
	o.EdgeFeatures = []string{"z"}
	if _, err := Import("dgl", o); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), `no "z" in edata`) ||
		!strings.Contains(err.Error(), `edata["e"]`) {
		t.Errorf("got %v", err)
	}
}

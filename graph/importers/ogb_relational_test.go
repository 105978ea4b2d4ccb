package importers

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// tinyRelational returns a relational graph in the layout of ogbn-mag.
func tinyRelational() map[string][]byte {
	const writes, cites = "raw/relations/author___writes___paper/", "raw/relations/paper___cites___paper/"
	return map[string][]byte{
		"raw/num-node-dict.csv.gz":                 gz("author,paper\n3,4\n"),
		"raw/triplet-type-list.csv.gz":             gz("author,writes,paper\npaper,cites,paper\n"),
		"raw/nodetype-has-feat.csv.gz":             gz("author,paper\nFalse,True\n"),
		"raw/nodetype-has-label.csv.gz":            gz("author,paper\nFalse,True\n"),
		"raw/node-feat/paper/node-feat.csv.gz":     gz("1.0,2\n3,4e0\n0.5e1,6.000\n7,8"),
		"raw/node-label/paper/node-label.csv.gz":   gz("0\n1\n1\n0\n"),
		writes + "edge.csv.gz":                     gz("0,0\n1,1\n2,3\n0,2\n"),
		writes + "num-edge-list.csv.gz":            gz("4\n"),
		writes + "edge_reltype.csv.gz":             gz("0\n0\n0\n0\n"),
		cites + "edge.csv.gz":                      gz("0,1\n1,2\n3,0\n"),
		cites + "num-edge-list.csv.gz":             gz("3\n"),
		cites + "edge_reltype.csv.gz":              gz("1\n1\n1\n"),
		"split/time/nodetype-has-split.csv.gz":     gz("author,paper\nFalse,True\n"),
		"split/time/paper/train.csv.gz":            gz("0\n1\n"),
		"split/time/paper/valid.csv.gz":            gz("2\n"),
		"split/time/paper/test.csv.gz":             gz("3\n"),
		"mapping/paper_entidx2name.csv.gz":         gz("unused"),
		"raw/node_year/paper/node_year.csv.gz":     gz("2001\n2002\n2018\n2019\n"),
		"raw/relations/author___writes___paper/ok": nil,
	}
}

// describe lists the vertices and the edges of a relational dataset by the user's names.
func describe(d *graph.Dataset) (vertices, edges []string) {
	of := d.Meta.Relations
	name := func(v int) string { return of.Kinds[of.KindOf(int64(v))].Name + ":" + d.IDs.At(v) }
	x := spread(d.Features)
	for v := range d.In.Rows() {
		k := of.Kinds[of.KindOf(int64(v))]
		row := x[v*d.Meta.FeatureDim:][:d.Meta.FeatureDim]
		for c, y := range row {
			if (c < k.FirstFeature || c >= k.FirstFeature+k.Features) && y != 0 {
				vertices = append(vertices, fmt.Sprintf("%s has feature %d", name(v), c))
			}
		}
		vertices = append(vertices, fmt.Sprint(name(v), " ", row[k.FirstFeature:][:k.Features], " ", d.Labels[v], " ", d.Split[v]))
		for i := d.In.Offsets[v]; i < d.In.Offsets[v+1]; i++ {
			edges = append(edges, fmt.Sprint(name(int(d.In.Cols[i])), " ", of.Relations[d.Relations[i]].Name, " ", name(v)))
		}
	}
	slices.Sort(edges)
	return vertices, edges
}

// checkTiny compares a dataset with the graph of tinyRelational. all: relations within a kind have a reverse.
func checkTiny(t *testing.T, d *graph.Dataset, all bool) {
	t.Helper()
	vertices, edges := describe(d)
	if want := []string{
		"author:0 [1 0 0] -1 0", "author:1 [0 1 0] -1 0", "author:2 [0 0 1] -1 0",
		"paper:0 [1 2 1] 0 1", "paper:1 [3 4 1] 1 1", "paper:2 [5 6 1] 1 2", "paper:3 [7 8 1] 0 3",
	}; !slices.Equal(vertices, want) {
		t.Errorf("vertices are\n%s\nwant\n%s", strings.Join(vertices, "\n"), strings.Join(want, "\n"))
	}
	want := []string{
		"author:0 writes paper:0", "author:0 writes paper:2", "author:1 writes paper:1", "author:2 writes paper:3",
		"paper:0 cites paper:1", "paper:0 rev_writes author:0", "paper:1 cites paper:2", "paper:1 rev_writes author:1",
		"paper:2 rev_writes author:0", "paper:3 cites paper:0", "paper:3 rev_writes author:2",
	}
	if all {
		want = append(want, "paper:0 rev_cites paper:3", "paper:1 rev_cites paper:0", "paper:2 rev_cites paper:1")
	}
	if slices.Sort(want); !slices.Equal(edges, want) {
		t.Errorf("edges are\n%s\nwant\n%s", strings.Join(edges, "\n"), strings.Join(want, "\n"))
	}
	if m := d.Meta; m.Classes != 2 || m.Train != 2 || m.Val != 1 || m.Test != 1 || m.Format != graph.RelationFormat {
		t.Errorf("meta is %+v", m)
	}
}

func TestOGBRelational(t *testing.T) {
	for _, from := range []string{"auto", "ogb"} {
		d, log := written(t, from, Options{Src: files(t, tinyRelational())})
		checkTiny(t, d, true)
		for _, want := range []string{"kind=author vertices=3 features: one-hot ids\n",
			"kind=paper vertices=4 features: 2 features and a constant column; this kind has the labels\n",
			"relation=author-writes-paper reverse=true\n", "relation=paper-cites-paper reverse=true\n"} {
			if !strings.Contains(log, want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
		if strings.Contains(log, "warning") || strings.Contains(log, "symmetrise") {
			t.Errorf("log:\n%s", log)
		}
	}
}

// TestNormalizedKinds: in every format the features of a kind are divided by the sum of their absolute values, and
// neither its constant column nor one-hot ids are.
func TestNormalizedKinds(t *testing.T) {
	want := map[string][]float32{"author:1": {0, 1, 0}, "paper:0": {1. / 3, 2. / 3, 1}, "paper:1": {3. / 7, 4. / 7, 1}}
	tables := with(shop(), "nodes/customer.csv", "id,label,a,b\n1,x,1,-3\n2,y,0,0\n3,x,2,0\n4,y,-0.25,0.25\n")
	for src, want := range map[string]map[string][]float32{
		files(t, tinyRelational()): want, filepath.Join(files(t, tinyNPZ()), "a.npz"): want,
		"testdata/hetero.pt": want, "testdata/hetero.dgl": want,
		files(t, tables): {"customer:1": {0.25, -0.75, 1}, "customer:2": {0, 0, 1}, "customer:3": {1, 0, 1}, "brand:acme": {1, 0, 1}},
	} {
		d, _ := written(t, "auto", Options{Src: src, Normalize: true})
		for name, row := range want {
			if got := vertexRow(t, d, name); !slices.Equal(got, row) {
				t.Errorf("%s: %s has the features %v, want %v", src, name, got, row)
			}
		}
		plain, _ := written(t, "auto", Options{Src: src})
		err := d.Meta.Schema().Fits("predict", "data", plain.Meta, graph.EdgeUse{Edges: true})
		if !d.Meta.Normalized || err == nil || !strings.Contains(err.Error(), "--normalize-features") {
			t.Errorf("%s: a model of normalised features reads others: %v", src, err)
		}
	}
}

// TestOGBRelationalRandom compares random graphs with their lists of edges.
func TestOGBRelationalRandom(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 0))
		kinds, m := 1+r.IntN(4), map[string][]byte{}
		var names, sizes, flags, labelled, vertices, want, triplets []string
		n := make([]int, kinds)
		for k := range kinds {
			n[k] = 1 + r.IntN(9)
			name := fmt.Sprint("kind", k)
			names, sizes = append(names, name), append(sizes, fmt.Sprint(n[k]))
			has, target := r.IntN(2) == 0, k == 0
			flags, labelled = append(flags, map[bool]string{true: "True", false: "False"}[has]),
				append(labelled, map[bool]string{true: "True", false: "False"}[target])
			var features, labels string
			dim := 1 + r.IntN(3)
			for v := range n[k] {
				row, label := make([]float32, n[k]), -1
				row[v] = 1
				if has {
					row = make([]float32, dim+1)
					row[dim] = 1
					for c := range dim {
						row[c] = float32(r.IntN(5))
						features += fmt.Sprint(row[c], ",")
					}
					features = strings.TrimSuffix(features, ",") + "\n"
				}
				if target {
					label = r.IntN(3)
					labels += fmt.Sprint(label, "\n")
				}
				vertices = append(vertices, fmt.Sprintf("%s:%d %v %d 0", name, v, row, label))
			}
			if has {
				m["raw/node-feat/"+name+"/node-feat.csv.gz"] = gz(features)
			}
			if target {
				m["raw/node-label/"+name+"/node-label.csv.gz"] = gz(labels)
			}
		}
		for i := range 1 + r.IntN(5) {
			from, to := r.IntN(kinds), r.IntN(kinds)
			label, edges, count := fmt.Sprint("r", i), "", r.IntN(12)
			for range count {
				u, v := r.IntN(n[from]), r.IntN(n[to])
				edges += fmt.Sprintf("%d,%d\n", u, v)
				if from == to && u == v {
					continue
				}
				want = append(want, fmt.Sprintf("%s:%d %s %s:%d", names[from], u, label, names[to], v),
					fmt.Sprintf("%s:%d rev_%s %s:%d", names[to], v, label, names[from], u))
			}
			triplets = append(triplets, fmt.Sprintf("%s,%s,%s\n", names[from], label, names[to]))
			dir := fmt.Sprintf("raw/relations/%s___%s___%s/", names[from], label, names[to])
			m[dir+"edge.csv.gz"], m[dir+"num-edge-list.csv.gz"] = gz(edges), gz(fmt.Sprint(count))
		}
		table := func(rows ...[]string) []byte {
			text := ""
			for _, row := range rows {
				text += strings.Join(row, ",") + "\n"
			}
			return gz(text)
		}
		m["raw/num-node-dict.csv.gz"], m["raw/triplet-type-list.csv.gz"] = table(names, sizes), gz(strings.Join(triplets, ""))
		m["raw/nodetype-has-feat.csv.gz"], m["raw/nodetype-has-label.csv.gz"] = table(names, flags), table(names, labelled)
		m["split/random/train.csv.gz"] = nil
		d, _ := written(t, "ogb", Options{Src: files(t, m)})
		gotVertices, gotEdges := describe(d)
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(gotVertices, vertices) || !slices.Equal(gotEdges, want) {
			t.Errorf("seed %d: vertices\n%s\nwant\n%s\nedges\n%s\nwant\n%s", seed,
				strings.Join(gotVertices, "\n"), strings.Join(vertices, "\n"),
				strings.Join(gotEdges, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestBadOGBRelational(t *testing.T) {
	const writes = "raw/relations/author___writes___paper/"
	for _, c := range []struct {
		name  string
		files map[string][]byte
		o     Options
		kind  fault.Kind
		want  []string
	}{
		{"source", with(tinyRelational(), writes+"edge.csv.gz", gz("0,0\n1,1\n3,3\n0,2\n")), Options{}, fault.Data,
			[]string{writes + "edge.csv.gz", "edge 2: source 3 is outside the vertices 0..2"}},
		{"destination", with(tinyRelational(), writes+"edge.csv.gz", gz("0,0\n1,1\n1,4\n0,2\n")), Options{}, fault.Data,
			[]string{`line 3 column 2: "4" is not a valid number`}},
		{"number of edges", with(tinyRelational(), writes+"num-edge-list.csv.gz", gz("5\n")), Options{}, fault.Data,
			[]string{"4 edges, expected 5"}},
		{"no edges", with(tinyRelational(), writes+"edge.csv.gz", nil), Options{}, fault.Missing, []string{writes + "edge.csv.gz"}},
		{"kind of a relation", with(tinyRelational(), "raw/triplet-type-list.csv.gz", gz("author,writes,book\n")), Options{}, fault.Data,
			[]string{"triplet-type-list.csv.gz", `kind "book"`}},
		{"words", with(tinyRelational(), "raw/triplet-type-list.csv.gz", gz("author,writes\n")), Options{}, fault.Data,
			[]string{"triplet-type-list.csv.gz", "KIND,RELATION,KIND"}},
		{"path", with(tinyRelational(), "raw/num-node-dict.csv.gz", gz("../author,paper\n3,4\n")), Options{}, fault.Data,
			[]string{"num-node-dict.csv.gz", "invalid name", "rename it"}},
		{"path of a relation", with(tinyRelational(), "raw/triplet-type-list.csv.gz", gz("author,../x,paper\n")), Options{}, fault.Data,
			[]string{"triplet-type-list.csv.gz", "invalid name"}},
		{"twice", with(tinyRelational(), "raw/num-node-dict.csv.gz", gz("paper,paper\n4,4\n")), Options{}, fault.Data,
			[]string{"num-node-dict.csv.gz", "occurs twice"}},
		{"number", with(tinyRelational(), "raw/num-node-dict.csv.gz", gz("author,paper\nx,4\n")), Options{}, fault.Data,
			[]string{"num-node-dict.csv.gz", `"author" has "x" vertices`}},
		{"negative", with(tinyRelational(), "raw/num-node-dict.csv.gz", gz("author,paper\n-1,4\n")), Options{}, fault.Data,
			[]string{"num-node-dict.csv.gz", "-1 vertices"}},
		{"several graphs", with(tinyRelational(), "raw/num-node-dict.csv.gz", gz("author,paper\n3,4\n3,4\n")), Options{}, fault.Data,
			[]string{"num-node-dict.csv.gz", "single graph"}},
		{"too many vertices", with(tinyRelational(), "raw/num-node-dict.csv.gz", gz("author,paper\n4294967295,4\n")), Options{}, fault.Data,
			[]string{"4294967299 vertices"}},
		{"rows", with(tinyRelational(), "raw/num-node-dict.csv.gz", gz("author,paper\n3,5\n")), Options{}, fault.Data,
			[]string{"node-label.csv.gz", "4 rows, expected 5"}},
		{"flag", with(tinyRelational(), "raw/nodetype-has-feat.csv.gz", gz("author,paper\nno,yes\n")), Options{}, fault.Data,
			[]string{"nodetype-has-feat.csv.gz", `"no", expected True or False`}},
		{"no features", with(tinyRelational(), "raw/node-feat/paper/node-feat.csv.gz", nil), Options{}, fault.Missing,
			[]string{"paper/node-feat.csv.gz"}},
		{"labels of two kinds", with(tinyRelational(), "raw/nodetype-has-label.csv.gz", gz("author,paper\nTrue,True\n"),
			"raw/node-label/author/node-label.csv.gz", gz("0\n1\n1\n")), Options{}, fault.Data,
			[]string{`kinds "author" and "paper" have labels`, "delete the labels"}},
		{"split", with(tinyRelational(), "split/time/paper/test.csv.gz", gz("4\n")), Options{}, fault.Data,
			[]string{"paper/test.csv.gz", "4 is outside"}},
		{"truncated", with(tinyRelational(),
			"raw/triplet-type-list.csv.gz", tinyRelational()["raw/triplet-type-list.csv.gz"][:20]), Options{},
			fault.Data, []string{"triplet-type-list.csv.gz", "truncated"}},
		{"symmetrise", tinyRelational(), Options{Symmetrise: true}, fault.Usage, []string{"--symmetrise", "relational"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Src, c.o.Dst = files(t, c.files), t.TempDir()+"/out"
			_, err := Import("ogb", c.o)
			if fault.KindOf(err) != c.kind {
				t.Fatalf("got %v of kind %d", err, fault.KindOf(err))
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
		})
	}
}

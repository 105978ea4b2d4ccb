package importers

import (
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// TestMisread: inputs that are easily read as something else are read rightly, or refused with the
// remedy for what they are.
func TestMisread(t *testing.T) {
	pyg := func(extra ...any) map[string][]byte { return map[string][]byte{"a.npz": tinyPyG(extra...)} }
	without := func(names ...string) map[string][]byte {
		list := []any{"x", f4s(4, 2, tinyFeatures...), "edge_index",
			array("<i8", "(2, 4)", little([]int64{0, 1, 2, 3, 1, 2, 0, 0})), "y", i8s(0, 1, 1, 0)}
		for i := 0; i < len(names); i += 2 {
			if at := slices.IndexFunc(list, func(x any) bool { name, _ := x.(string); return name == names[i] }); at >= 0 {
				list[at+1] = []byte(names[i+1])
			} else {
				list = append(list, names[i], []byte(names[i+1]))
			}
		}
		return map[string][]byte{"a.npz": bundle(list...)}
	}
	table := func(nodes, edges string) map[string][]byte {
		return map[string][]byte{"nodes.csv": []byte(nodes), "edges.csv": []byte(edges)}
	}
	snap := func(edges string) map[string][]byte { return with(tinySnap(), "edges.txt", edges) }
	doubles := func(x ...float64) string { return string(array("<f8", "(4, 2)", little(x))) }
	for _, c := range []struct {
		name, from string
		files      map[string][]byte
		o          Options
		want       string // of the fault, "" if it is read
		labels     []int32
		edges      int
	}{
		{"third column", "snap", snap("-5 10 2\n10 1000000000000 3\n7000000000000 -5 1\n"), Options{},
			"has a third column, which edges of this format cannot have; drop it with --drop-weights", nil, 0},
		{"third column dropped", "snap", snap("-5 10 2\n10 1000000000000 3\n7000000000000 -5 1\n"),
			Options{TableOptions: TableOptions{DropWeights: true}}, "", []int32{0, 1, 1, 0}, 3},
		{"MatrixMarket", "snap", snap("%%MatrixMarket matrix coordinate pattern general\n4 4 3\n1 2\n2 3\n4 1\n"), Options{},
			"delete its lines up to the sizes", nil, 0},
		{"kinds of edges", "npz", pyg("edge_attr", array("<i8", "(4,)", little([]int64{0, 1, 2, 1}))), Options{},
			"may be kinds of edges; import kinds of edges with --edge-features edge_attr", nil, 0},
		{"kinds as doubles", "npz", pyg("edge_attr", array("<f4", "(4, 1)", little([]float32{0, 1, 2, 1}))), Options{},
			"may be kinds of edges", nil, 0},
		{"kinds dropped", "npz", pyg("edge_attr", array("<i8", "(4,)", little([]int64{0, 1, 2, 1}))),
			Options{TableOptions: TableOptions{DropWeights: true}}, "", []int32{0, 1, 1, 0}, 4},
		{"weights", "npz", pyg("edge_attr", array("<f4", "(4,)", little([]float32{0.5, 1, 2, 1}))), Options{}, "", []int32{0, 1, 1, 0}, 4},
		{"large counts", "npz", pyg("edge_attr", array("<i8", "(4,)", little([]int64{7, 1, 2000, 1}))),
			Options{}, "", []int32{0, 1, 1, 0}, 4},
		{"one-hot rows", "npz", without("y", string(f4s(4, 3, 0, 1, 0, 1, 0, 0, nan, nan, nan, 0, 0, 1))),
			Options{}, "", []int32{1, 0, -1, 2}, 4},
		{"one-hot columns", "csv", table("id,x,a,b\n0,1,1,0\n1,2,0,1\n2,3,,\n3,4,1,0\n", "src,dst\n0,1\n"),
			Options{TableOptions: TableOptions{Label: "a,b"}}, "", []int32{0, 1, -1, 0}, 1},
		{"NaN in labels", "npz", without("y", string(f4s(4, 1, 1, nan, 0, 1))), Options{}, "", []int32{1, -1, 0, 1}, 4},
		{"list as mask", "npz", without("train_mask", string(i8s(0, 1))), Options{}, "write a list of vertices as a mask", nil, 0},
		{"list as long as a mask", "npz", without("train_mask", string(i8s(3, 1, 0, 2))), Options{},
			"write a list of vertices as a mask", nil, 0},
		{"large doubles", "npz", without("x", doubles(1, 2, 3, 4, 5, 1e300, 7, 8)), Options{},
			"element 5 is 1e+300, which is beyond the range of float32", nil, 0},
		{"no edges", "npz", without("edge_index", string(array("<i8", "(2, 0)", nil))), Options{}, "", []int32{0, 1, 1, 0}, 0},
		{"thousands", "csv", table("id,label,x\n0,a,\"14,197\"\n1,b,300\n2,a,\"1,200\"\n", "src,dst\n0,1\n"), Options{},
			`"14,197" has a comma; write 14197, or 14.197 if the comma is a decimal point`, nil, 0},
		{"thousands in labels", "csv", table("id,label,x\n0,\"14,197\",1\n1,300,2\n", "src,dst\n0,1\n"), Options{Task: graph.Regression},
			`"14,197" is not a number; write 14197`, nil, 0},
		{"thousands in weights", "csv", table("id,label,x\n0,a,1\n1,b,2\n", "src,dst,weight\n0,1,\"1,200.5\"\n"), Options{},
			`"1,200.5" is not a weight; write 1200.5`, nil, 0},
		{"lists as masks", "npz", map[string][]byte{"a.npz": bundle("node_features", f4s(4, 2, tinyFeatures...), "edges",
			array("<i8", "(1, 2)", little([]int64{0, 1})), "node_labels", i8s(0, 1, 1, 0),
			"train_masks", array("<i8", "(1, 2)", little([]int64{0, 1})), "val_masks", array("|b1", "(1, 4)", make([]byte, 4)),
			"test_masks", array("|b1", "(1, 4)", make([]byte, 4)))}, Options{}, "write a list of vertices as a mask", nil, 0},
		{"decimal comma", "csv", table("id;label;x\n0;a;14,19\n1;b;3,5\n", "src,dst\n0,1\n"), Options{},
			"write numbers with a decimal point", nil, 0},
		{"carriage returns in a table", "csv", table("id,label,x\r0,a,1\r1,b,2\r", "src,dst\n0,1\n"), Options{},
			"convert its line ends", nil, 0},
		{"carriage returns in edges", "csv", table("id,label,x\n0,a,1\n1,b,2\n", "src,dst\r0,1\r"), Options{},
			"convert its line ends", nil, 0},
		{"carriage returns in a list", "snap", snap("-5 10\r10 1000000000000\r7000000000000 -5"), Options{},
			"line 1 has a carriage return in its middle; convert its line ends", nil, 0},
		{"Windows line ends", "snap", snap("-5 10\r\n10 1000000000000\r\n7000000000000 -5\r\n"), Options{}, "", []int32{0, 1, 1, 0}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Src = files(t, c.files)
			if c.from == "npz" {
				c.o.Src += "/a.npz"
			}
			got, err := load(t, c.from, c.o)
			if c.want != "" {
				if err == nil || fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil || !slices.Equal(got.Labels, c.labels) || len(got.edges) != c.edges ||
				got.Task != "" && got.Task != graph.MultiClass {
				t.Fatalf("%v: labels %v for %s, %d edges, want %v and %d", err, got.Labels, got.Task, len(got.edges), c.labels, c.edges)
			}
		})
	}
}

// TestLosses: what an import loses in whole or in large part is a warning.
func TestLosses(t *testing.T) {
	const nodes = "id,label,x,c\na,p,1,red\nb,q,2,red\nc,p,3,blue\nd,q,4,blue\n"
	table := func(nodes, edges string, o TableOptions) Options {
		return Options{Src: files(t, map[string][]byte{"nodes.csv": []byte(nodes), "edges.csv": []byte(edges)}), TableOptions: o}
	}
	model, log := written(t, "csv", table(nodes, "src,dst\na,b\n", TableOptions{}))
	if strings.Contains(log, "no edges") || strings.Contains(log, "left out") {
		t.Error(log)
	}
	shifted := map[string][]byte{"a.npz": bundle("x", f4s(4, 2, tinyFeatures...), "edge_index",
		array("<i8", "(2, 2)", little([]int64{1, 2, 2, 3})), "y", i8s(0, 1, 1, 0))}
	for _, c := range []struct {
		name, from string
		o          Options
		want       string // "" for none of the warnings
	}{
		{"no edges", "csv", table(nodes, "src,dst\n", TableOptions{}), "warning: the graph has no edges"},
		{"all ends unknown", "csv", table(nodes, "src,dst\n1,2\n2,3\n", TableOptions{DropUnknown: true}),
			"2 of 2 edges are left out: weight_0=0 unknown_ends=2"},
		{"all ends missing", "csv", table(nodes, "src,dst\na,\nNULL,b\n", TableOptions{}), "warning: the graph has no edges"},
		{"an end unknown", "csv", table(nodes, "src,dst\n1,2\n"+strings.Repeat("a,b\n", 20), TableOptions{DropUnknown: true}), ""},
		{"weights of 0", "csv", table(nodes, "src,dst,weight\na,b,1\nb,c,0\n", TableOptions{}), "1 of 2 edges are left out: weight_0=1"},
		{"unknown categories", "csv", table(strings.ReplaceAll(nodes, "red", "green"), "src,dst\na,b\n", TableOptions{Like: model.Dir}),
			"warning: column=c: 2 of 4 values are unknown to the model"},
		{"mostly missing", "csv", table("id,label,x\na,p,\nb,q,2\nc,p,\nd,q,?\n", "src,dst\na,b\n", TableOptions{Fill: "zero"}),
			"warning: column=x: 3 of 4 cells are missing"},
		{"ids from 1", "npz", Options{Src: files(t, shifted) + "/a.npz"},
			"no edge has vertex 0: the ids of edges are row numbers, numbered from 0"},
		{"ids from 1 in a list", "snap", Options{Src: files(t, with(tinySnap(), "edges.txt", "1 2\n2 3\n"))}, "no edge has vertex 0"},
		{"ids from 1 in raw", "raw", Options{Src: files(t, with(with(tinyRaw(), "graph.edges.bin", little([]uint32{1, 2, 2, 3})),
			"meta.json", `{"nodes": 4, "edges": 2, "feature_dim": 2}`))}, "no edge has vertex 0"},
		{"any ids in a list", "snap", Options{Src: files(t, tinySnap())}, ""},
		{"ids from 0", "npz", Options{Src: files(t, map[string][]byte{"a.npz": tinyPyG()}) + "/a.npz"}, ""},
	} {
		_, log := written(t, c.from, c.o)
		found := strings.Contains(log, "no edge") || strings.Contains(log, "warning: edges=") || strings.Contains(log, "unknown to") ||
			strings.Contains(log, "cells are missing")
		if found != (c.want != "") || !strings.Contains(log, c.want) {
			t.Errorf("%s: want %q, the log is\n%s", c.name, c.want, log)
		}
	}
}

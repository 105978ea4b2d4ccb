package importers

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
	"siafu/internal/testkit/realdata"
)

// tinyNPZ is the graph of tinyRelational, with changes: pairs of a name and an array; nil removes an array.
func tinyNPZ(changes ...any) map[string][]byte {
	pairs := func(ends ...int32) []byte {
		return array("<i4", fmt.Sprintf("(2, %d)", len(ends)/2), little(ends))
	}
	m := with(map[string][]byte{
		"nodes.author": array("<i8", "()", little(int64(3))), "nodes.paper": array("<i8", "()", little(int64(4))),
		"edge.author.writes.paper": pairs(0, 1, 2, 0, 0, 1, 3, 2), "edge.paper.cites.paper": pairs(0, 1, 3, 1, 2, 0),
		"x.paper": f4s(4, 2, 1, 2, 3, 4, 5, 6, 7, 8), "y.paper": i8s(0, 1, 1, 0),
		"split.train": i8s(0, 1), "split.val": i8s(2), "split.test": i8s(3), "year": i8s(1),
	}, changes...)
	var contents []any
	for _, name := range slices.Sorted(maps.Keys(m)) {
		contents = append(contents, name, m[name])
	}
	return map[string][]byte{"a.npz": bundle(contents...)}
}

// TestRelationalNPZ: dense and sparse features, and splits with and without names, are the graph of tinyRelational.
func TestRelationalNPZ(t *testing.T) {
	sparse := []any{"x.paper", nil, "x.paper.indptr", i8s(0, 2, 4, 6, 8), "x.paper.indices", i8s(0, 1, 1, 0, 0, 1, 0, 1),
		"x.paper.data", i8s(1, 2, 4, 3, 5, 6, 7, 8), "x.paper.shape", i8s(4, 2)}
	unnamed := []any{"split.train", nil, "split.val", nil, "split.test", nil}
	named := append(slices.Clone(unnamed), "split.a.b.train", i8s(0, 1), "split.a.b.val", i8s(2), "split.a.b.test", i8s(3))
	two := append(slices.Clone(named), "split.20.train", i8s(3), "split.20.val", i8s(2))
	for name, c := range map[string]struct {
		changes []any
		split   string
	}{
		"dense": {}, "sparse": {changes: sparse}, "only named split": {changes: named}, "named split": {named, "a.b"},
		"one of two": {two, "a.b"}, "unnamed of three": {changes: two[6:]},
	} {
		t.Run(name, func(t *testing.T) {
			d, log := written(t, "auto", Options{Src: filepath.Join(files(t, tinyNPZ(c.changes...)), "a.npz"), Split: c.split})
			checkTiny(t, d, false)
			if !strings.Contains(log, "year") || strings.Contains(log, "warning") {
				t.Errorf("log:\n%s", log)
			}
		})
	}
	d, log := written(t, "npz", Options{Src: filepath.Join(files(t, tinyNPZ(unnamed...)), "a.npz"), Stratify: true})
	if d.Meta.Train == 0 || !strings.Contains(log, "split=random") {
		t.Errorf("%d training vertices, log:\n%s", d.Meta.Train, log)
	}
}

// TestBadRelationalNPZ: arrays and flags that are refused; damaged files are read or refused within their memory.
func TestBadRelationalNPZ(t *testing.T) {
	splits := []any{"split.train", nil, "split.20.train", i8s(0), "split.60.train", i8s(1)}
	outside := array("<i8", "(2, 1)", little([]int64{4, 0}))
	few := []any{"x.paper.indptr", i8s(0, 0, 0), "x.paper.indices", i8s(), "x.paper.shape", i8s(2, 1)}
	noEdges := []any{"edge.author.writes.paper", nil, "edge.paper.cites.paper", nil}
	features := Options{TableOptions: TableOptions{EdgeFeatures: []string{"edge_attr"}}}
	for want, c := range map[string]struct {
		changes []any
		o       Options
	}{
		`there is no split "40"; choose one of 20, 60`:           {splits, Options{Split: "40"}},
		"has the splits 20, 60; choose one of them with --split": {splits, Options{}},
		`split "40": the file has no splits with names`:          {nil, Options{Split: "40"}},
		`"edge.a.b" is not edge.FROM.RELATION.TO`:                {[]any{"edge.a.b", i8s(1)}, Options{}},
		`the kind "b"`: {[]any{"edge.paper.to.b", array("<i8", "(2, 1)", little([]int64{0, 0}))}, Options{}},
		"[edge.paper.cites.paper]: edge 0: source 4 is outside":   {[]any{"edge.paper.cites.paper", outside}, Options{}},
		"[split.val]: entry 1: 4 is outside the vertices 0..3":    {[]any{"split.val", i8s(2, 4)}, Options{}},
		"[split.val]: entry 0: vertex 1 of the validation set is": {[]any{"split.val", i8s(1)}, Options{}},
		"2 rows of features for 4 vertices":                       {few, Options{}},
		"4294967299 vertices":                                     {[]any{"nodes.author", i8s(4294967295)}, Options{}},
		"-1 vertices":                                             {[]any{"nodes.author", i8s(-1)}, Options{}},
		"it has 3 numbers, expected one":                          {[]any{"nodes.author", i8s(1, 2, 3)}, Options{}},
		"--edge-features, but the graph is relational":            {nil, features},
		"2 kinds of vertices and 0 relations":                     {noEdges, Options{}},
	} {
		c.o.Src = filepath.Join(files(t, tinyNPZ(c.changes...)), "a.npz")
		if _, err := load(t, "npz", c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	good := tinyNPZ()["a.npz"]
	for i := range bytes.Index(good, []byte("PK\x01\x02")) / 7 {
		b := slices.Clone(good)
		b[7*i] ^= 1 << (i % 8)
		src := filepath.Join(files(t, map[string][]byte{"a.npz": b}), "a.npz")
		decodertest.Bounded(t, int64(len(b)), func() {
			if _, err := Import("npz", Options{Src: src, Dst: src + "-out"}); err != nil && fault.KindOf(err) != fault.Data {
				t.Errorf("byte %d: %v", 7*i, err)
			}
		})
	}
}

// TestRealRelationalNPZ imports citation graphs with the sizes of their description.
func TestRealRelationalNPZ(t *testing.T) {
	for name, want := range map[string][]int64{
		"acm":  {4019 + 7167 + 60, 2 * (13407 + 4019), 180, 1000, 1000, 3},
		"dblp": {4057 + 14328 + 20 + 7723, 2 * (19645 + 14328 + 85810), 240, 1000, 1000, 4},
	} {
		d, log := written(t, "npz", Options{Src: realdata.File(t, "relational-"+name+".npz"), Split: "60"})
		m := d.Meta
		if got := []int64{m.Vertices, m.Edges, m.Train, m.Val, m.Test, int64(m.Classes)}; !slices.Equal(got, want) {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
		if !strings.Contains(log, "left_out=split.20.train") || m.FeatureKind != graph.SparseFeatures {
			t.Errorf("%s has %s features, log:\n%s", name, m.FeatureKind, log)
		}
	}
}

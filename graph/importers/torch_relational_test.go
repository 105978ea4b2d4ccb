package importers

import (
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/pickle"
)

// TestHeteroData: files that PyTorch Geometric wrote are the graph of tinyRelational.
func TestHeteroData(t *testing.T) {
	for _, name := range []string{"hetero.pt", "heterodict.pt"} {
		d, log := written(t, "auto", Options{Src: filepath.Join("testdata", name)})
		checkTiny(t, d, false)
		if !strings.Contains(log, name+"[paper] left_out=year\n") || strings.Contains(log, "warning") ||
			strings.Count(log, "left_out") > 1 {
			t.Errorf("log:\n%s", log)
		}
	}
	d, log := written(t, "torch", Options{Src: "testdata/heteroattr.pt", TableOptions: TableOptions{DropEdgeFeatures: true}})
	checkTiny(t, d, false)
	if !strings.Contains(log, "[author,writes,paper][edge_attr] is left out\n") {
		t.Errorf("log:\n%s", log)
	}
}

func TestBadHeteroData(t *testing.T) {
	for want, o := range map[string]Options{
		"it holds 2 graphs":                         {Src: "heteropair.pt"},
		"leave them out with --drop-edge-features":  {Src: "heteroattr.pt"},
		"--symmetrise, but the graph is relational": {Src: "hetero.pt", Symmetrise: true},
		"--edge-features, but the graph is relat":   {Src: "hetero.pt", TableOptions: TableOptions{EdgeFeatures: []string{"edge_attr"}}},
	} {
		o.Src, o.Dst = filepath.Join("testdata", o.Src), filepath.Join(t.TempDir(), "out")
		if _, err := Import("torch", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestHostileHeteroData: dicts that are no graph end in a fault of kind Data.
func TestHostileHeteroData(t *testing.T) {
	ends := func(p *pickler, rows, cols int) *pickler {
		return p.raw("}(").str("edge_index").tensorOf("LongStorage", "0", 8, 0, []int{rows, cols}, []int{cols, 1}).raw("u")
	}
	relation := func(p *pickler, words ...string) *pickler {
		p.raw("(")
		for _, w := range words {
			p.str(w)
		}
		return p.raw("t")
	}
	kind := func(p *pickler, name string, vertices int) *pickler {
		return p.str(name).raw("}(").str("num_nodes").int(vertices).raw("u")
	}
	for name, c := range map[string]struct {
		fill func(p *pickler)
		want string
	}{
		"unknown kind":  {func(p *pickler) { ends(relation(kind(p, "a", 4), "a", "r", "b"), 2, 4) }, `the kind "b"`},
		"outside":       {func(p *pickler) { ends(relation(kind(p, "a", 3), "a", "r", "a"), 2, 4) }, "outside the vertices 0..2"},
		"shape":         {func(p *pickler) { ends(relation(kind(p, "a", 4), "a", "r", "a"), 4, 2) }, "expected [2 edges]"},
		"many vertices": {func(p *pickler) { ends(relation(kind(kind(p, "a", 4), "b", -4), "a", "r", "a"), 2, 4) }, "-4 vertices"},
		"name":          {func(p *pickler) { ends(relation(kind(kind(p, "a", 4), "b:c", 4), "a", "r", "a"), 2, 4) }, "invalid name"},
		"twice":         {func(p *pickler) { ends(relation(kind(kind(p, "a", 4), "a", 4), "a", "r", "a"), 2, 4) }, "occurs twice"},
		"no edges":      {func(p *pickler) { relation(kind(p, "a", 4), "a", "r", "a").raw("}") }, `no "edge_index"`},
		"no kinds":      {func(p *pickler) { ends(relation(p, "a", "r", "a"), 2, 4) }, `the kind "a"`},
	} {
		p := newPickler().raw("}(")
		c.fill(p)
		b := zipped("data.pkl", p.raw("u").done(), "data/0", little([]int64{0, 1, 2, 3, 1, 2, 0, 0}))
		file, err := pickle.NewTorch(b, "x.pt")
		if err == nil {
			k := newResources(input{"import torch", "x.pt"})
			defer k.release()
			_, err = caught(func() *graph.Content { return torchGraph(k, Options{Src: "x.pt", Log: func(string, ...any) {}}, file) })
		}
		if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

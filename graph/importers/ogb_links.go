package importers

import (
	"os"
	"path/filepath"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// Link property prediction datasets of the Open Graph Benchmark have pairs instead of labels:
// split/TYPE/{train,valid,test}.pt, or all three in one split_dict.pt, from which "siafu
// holdout" takes the held-out pairs. Their graph has the training edges.

const (
	ogbLabelFile   = "node-label.csv.gz"
	ogbEdgeWeights = "edge_weight.csv.gz"
)

// ogbPairs returns the types of split that have pairs, and for each the files of validation
// and test pairs.
func ogbPairs(dir string) (kinds []string, files [][2]string) {
	found, _ := os.ReadDir(filepath.Join(dir, "split"))
	for _, e := range found {
		kind := filepath.Join(dir, "split", e.Name())
		one, valid := filepath.Join(kind, "split_dict.pt"), filepath.Join(kind, "valid.pt")
		switch {
		case exists(one): // the benchmark's loader tries it first
			kinds, files = append(kinds, e.Name()), append(files, [2]string{one, one})
		case exists(valid):
			kinds, files = append(kinds, e.Name()), append(files, [2]string{valid, filepath.Join(kind, "test.pt")})
		}
	}
	return kinds, files
}

// isOGBLinks reports whether a folder has such a dataset: its vertices have no labels, and a
// split has pairs.
func isOGBLinks(dir, labels string) bool {
	kinds, _ := ogbPairs(dir)
	return len(kinds) > 0 && !exists(filepath.Join(dir, "raw", labels))
}

// ogbLinks reads the graph of such a dataset. No vertex has a label or a split.
func ogbLinks(k *keeper, o Options, c *graph.Content, edges int64) {
	if at := ogbFile(o, ogbNodeFeatures); !at.exists() {
		check(fault.New(fault.Missing, opOGB, at.path, "vertices have no features, as in ogbl-ddi").
			Then("write it with a row of numbers for each of the %d vertices, such as random ones; the network does not train them", c.Vertices))
	}
	c.Features = ogbFeatures(k, o, c.Vertices, nil) // first: they prove the number of vertices
	c.Edges = ogbEdges(k, o, c.Vertices, edges).source()
	if !o.Symmetrise {
		o.Log("edges are stored as listed; the benchmark's loader (ogbl-collab, ogbl-ppa, ogbl-ddi) or its examples (ogbl-citation2) add inverse edges: import with --symmetrise to add them")
	}
	ogbHeld(o, c)
}

// ogbHeld logs which pairs of the dataset to hold out. Its vertices get neither labels nor a
// split.
func ogbHeld(o Options, c *graph.Content) {
	kinds, files := ogbPairs(o.Src)
	at := slices.Index(kinds, o.Split)
	if o.Split == "" && len(kinds) == 1 {
		at = 0
	}
	if at < 0 {
		place{opOGB, filepath.Join(o.Src, "split")}.refuse("choose one with --split", "split %q does not exist, available are %q", o.Split, kinds)
	}
	for _, path := range files[at] {
		if _, err := os.Stat(path); err != nil {
			check(fault.System(opOGB, path, err))
		}
	}
	c.Labels, c.Split = unlabelled(c.Vertices), make([]uint8, c.Vertices)
	for _, name := range []string{"edge_year.csv.gz", "node_year.csv.gz"} {
		if years := ogbFile(o, name); years.exists() {
			o.Log("path=%s years are left out", years.path)
		}
	}
	o.Log("next: siafu holdout %s %s-links --val %s --test %s --keep-held", o.Dst, o.Dst, files[at][0], files[at][1])
}

// parseWeight reads a number >= 0 that is finite as float32.
func parseWeight(b []byte) (float32, bool) {
	v, ok := parseFeature(b)
	return v, ok && v >= 0
}

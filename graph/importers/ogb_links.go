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

// ogbLinks returns the graph of such a dataset of n vertices. No vertex has a label or a
// split.
func ogbLinks(k *keeper, o Options, n, edges int64) (c *graph.Content, err error) {
	c = &graph.Content{Source: "ogb " + nameOf(o.Src), Vertices: n}
	if path := filepath.Join(o.Src, "raw", ogbNodeFeatures); !exists(path) {
		return nil, fault.New(fault.Missing, opOGB, path, "vertices have no features, as in ogbl-ddi").
			Then("write it with a row of numbers for each of the %d vertices, such as random ones; the network does not train them", n)
	}
	// Features come first: they prove the number of vertices.
	if c.Features, err = ogbFeatures(k, o, n, nil); err != nil {
		return nil, err
	}
	along, err := ogbEdges(k, o, n, edges)
	if err != nil {
		return nil, err
	}
	c.Edges = along.source()
	if !o.Symmetrise {
		o.Log("edges are stored as listed; the benchmark's loader (ogbl-collab, ogbl-ppa, ogbl-ddi) or its examples (ogbl-citation2) add inverse edges: import with --symmetrise to add them")
	}
	return c, ogbHeld(o, c)
}

// ogbHeld logs which pairs of the dataset to hold out. Its vertices get neither labels nor a
// split.
func ogbHeld(o Options, c *graph.Content) error {
	kinds, files := ogbPairs(o.Src)
	at := slices.Index(kinds, o.Split)
	if o.Split == "" && len(kinds) == 1 {
		at = 0
	}
	if at < 0 {
		return fault.New(fault.Usage, opOGB, filepath.Join(o.Src, "split"), "split %q does not exist, available are %q", o.Split, kinds).Then("choose one with --split")
	}
	for _, path := range files[at] {
		if _, err := os.Stat(path); err != nil {
			return fault.System(opOGB, path, err)
		}
	}
	c.Labels, c.Split = unlabelled(c.Vertices), make([]uint8, c.Vertices)
	for _, name := range []string{"edge_year.csv.gz", "node_year.csv.gz"} {
		if path := filepath.Join(o.Src, "raw", name); exists(path) {
			o.Log("path=%s years are left out", path)
		}
	}
	o.Log("next: siafu holdout %s %s-links --val %s --test %s --keep-held", o.Dst, o.Dst, files[at][0], files[at][1])
	return nil
}

// notTyped refuses a graph whose vertices or edges have types.
func notTyped(o Options) error {
	for _, name := range []string{"triplet-type-list.csv.gz", "edge_reltype.csv.gz"} {
		if path := filepath.Join(o.Src, "raw", name); exists(path) {
			return fault.New(fault.Data, opOGB, path, "its edges have types, as in ogbl-wikikg2, ogbl-biokg and ogbn-mag, which are not supported").
				Then("import a graph with one type of vertices and edges")
		}
	}
	return nil
}

// readWeights reads a table with a number >= 0 for each of the edges, which have no weights if
// all are 1.
func (e *weightedEdges) readWeights(path string) error {
	weights, plain, rows := &chunks[float32]{keep: e.keep, op: e.op, path: path}, true, int64(0)
	err := parseFile(opOGB, path, csvParser(opOGB, path, parseWeight), func(t csvTable[float32]) error {
		rows += int64(len(t.values))
		if err := t.sameCols(opOGB, path, 1); err != nil || rows > e.pairs {
			return err
		}
		plain = plain && !slices.ContainsFunc(t.values, func(w float32) bool { return w != 1 })
		return weights.add(t.values)
	})
	if err == nil && rows != e.pairs {
		return wrongEdges(path, rows, e.pairs)
	}
	if !plain {
		e.weights = weights
	}
	return err
}

// parseWeight reads a number >= 0 that is finite as float32.
func parseWeight(b []byte) (float32, bool) {
	v, ok := parseFeature(b)
	return v, ok && v >= 0
}

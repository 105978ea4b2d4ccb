package importers

import (
	"math"
	"os"
	"path/filepath"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// Link property prediction datasets of the Open Graph Benchmark have pairs instead of labels:
// split/TYPE/{train,valid,test}.pt, or all three in one split_dict.pt, from which "siafu
// holdout" takes the held-out pairs. Their graph has the training edges.

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
func ogbLinks(k *resources, o Options, c *graph.Content, edges int64) {
	if at := k.raw(ogbNodeFeatures); !at.exists() {
		check(fault.New(fault.Missing, k.op, at.path, "vertices have no features, as in ogbl-ddi").
			Then("write it with a row of numbers for each of the %d vertices, such as random ones; the network does not train them",
				c.Vertices))
	}
	c.Features = ogbFeatures(k, o, c.Vertices, nil) // first: they prove the number of vertices
	c.Edges = ogbEdges(k, o, c.Vertices, edges).source()
	if !o.Symmetrise {
		o.Log("edges are stored as listed; the benchmark's loader (ogbl-collab, ogbl-ppa, ogbl-ddi) or its examples (ogbl-citation2) add " +
			"inverse edges: import with --symmetrise to add them")
	}
	ogbHeld(k, o, c)
}

// ogbHeld logs which pairs of the dataset to hold out. Its vertices get neither labels nor a
// split.
func ogbHeld(k *resources, o Options, c *graph.Content) {
	kinds, files := ogbPairs(o.Src)
	at := slices.Index(kinds, o.Split)
	if o.Split == "" && len(kinds) == 1 {
		at = 0
	}
	if at < 0 {
		k.in("split").refuse("choose one with --split", "split %q does not exist, available are %q", o.Split, kinds)
	}
	for _, path := range files[at] {
		_, err := os.Stat(path)
		input{k.op, path}.system(err)
	}
	c.Labels, c.Split = unlabelled(c.Vertices), make([]uint8, c.Vertices)
	for _, name := range []string{"edge_year.csv.gz", "node_year.csv.gz"} {
		if years := k.raw(name); years.exists() {
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

func isOGB(src string) bool {
	return holds("raw/edge.csv.gz")(src) || holds("raw/"+ogbTriplets)(src) || holds("raw/"+ogbArchive)(src)
}

// ogbArrays reads the layout of ogbn-papers100M: raw/data.npz with edge_index and
// node_feat, raw/node-label.npz with node_label, and the splits of the other datasets; or that
// of ogbl-vessel, which has no labels, and pairs.
func ogbArrays(k *resources, o Options) *graph.Content {
	in := k.zip(k.raw(ogbArchive))
	x := in.get("node_feat")
	n := x.rows()
	c := &graph.Content{Vertices: n, Features: x.dense(k, n), Edges: pygEdges(k, o, in, n)}
	if isOGBLinks(o.Src, ogbClasses) {
		ogbHeld(k, o, c)
		return c
	}
	c.Labels = ogbClassArray(k, n)
	c.Split = ogbSplit(ogbSplitFolder(k.in("split"), o), n)
	return c
}

// ogbClassArray reads one label per vertex; nan means none.
func ogbClassArray(k *resources, n int64) []int32 {
	a := k.zip(k.raw(ogbClasses)).get("node_label")
	values := must(a.Float32s())
	a.require(len(a.Shape) != 2 || a.Shape[1] == 1, severalLabels, "labels have shape %v", a.Shape)
	a.require(int64(len(values)) == n, "take both files from one dataset", "there are %d labels for %d vertices", len(values), n)
	labels := make([]int64, n)
	for v, x := range values {
		switch {
		case x != x:
			labels[v] = int64(graph.Unlabelled)
		case x != float32(math.Trunc(float64(x))) || math.Abs(float64(x)) > 1<<24:
			a.require(false, "", "label of vertex %d is %v, expected a whole number or nan", v, x)
		default:
			labels[v] = int64(x)
		}
	}
	return checkLabels(a.input, labels)
}

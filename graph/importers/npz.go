package importers

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
)

var npzFormat = importer{
	entry: entry{Name: "npz", Help: "`.npz` of gnn-benchmark, ppnp, heterophilous-graphs or PyTorch Geometric"},
	read:  npz, recognises: isNpz, weights: true, features: true, named: pygEdgeArrays,
}

const opNpz = "import npz"

func isNpz(src string) bool {
	info, err := os.Stat(src)
	return err == nil && !info.IsDir() && strings.HasSuffix(src, ".npz")
}

// npz reads one npz file that holds a whole dataset, in one of four styles of
// keys: gnn-benchmark (Shchur et al. 2018), ppnp (Klicpera et al. 2019),
// heterophilous-graphs (Platonov et al. 2023) or those of PyTorch Geometric's Data.
func npz(k *keeper, o Options) (*graph.Content, error) {
	z, err := k.zip(o.Src)
	if err != nil {
		return nil, err
	}
	var c *graph.Content
	switch {
	case len(o.EdgeFeatures) > 0 && !z.Has("edge_index"):
		return nil, fault.New(fault.Usage, opNpz, o.Src, "--edge-features=%s, but the file has no edge_index", strings.Join(o.EdgeFeatures, ",")).
			Then("leave --edge-features out, or save the edges as PyTorch Geometric's edge_index and edge_attr")
	case z.Has("adj_indptr"):
		c, err = benchmark(k, o, z, benchmarkKeys{"adj_", "attr_", "labels_"})
	case z.Has("adj_matrix.indptr"):
		c, err = benchmark(k, o, z, benchmarkKeys{"adj_matrix.", "attr_matrix.", "labels."})
	case z.Has("edges"):
		c, err = heterophilous(k, o, z)
	case z.Has("edge_index"):
		if c, err = pyg(k, o, opNpz, zipArrays{z, opNpz, o.Src}); err == nil {
			c.Source = "npz " + nameOf(o.Src)
			err = nameClasses(o, z, c)
		}
	default:
		return nil, unknownKeys(o, z)
	}
	if rest := z.Rest(); err == nil && len(rest) > 0 {
		o.Log("path=%s left_out=%s", o.Src, strings.Join(rest, ","))
	}
	return c, err
}

func unknownKeys(o Options, z *npy.Zip) error {
	return fault.New(fault.Data, opNpz, o.Src, "none of adj_indptr, adj_matrix.indptr, edges and edge_index is among its arrays: %s", strings.Join(z.Names(), ", ")).
		Then("see docs/importing.md for the supported keys")
}

// benchmarkKeys has the name prefixes of the arrays of each matrix.
type benchmarkKeys struct{ adjacency, attributes, labels string }

// benchmark reads the gnn-benchmark and ppnp styles: adjacency, attributes and
// labels as CSR, or the latter two as one array. There is no split in such a
// file. Python's None and dicts, such as metadata, are arrays of objects there.
func benchmark(k *keeper, o Options, z *npy.Zip, keys benchmarkKeys) (*graph.Content, error) {
	if err := noChoice(opNpz, o, "the file has no splits; --seed selects a random split"); err != nil {
		return nil, err
	}
	adj, err := zipMatrix(opNpz, o.Src, z, keys.adjacency)
	if err != nil {
		return nil, err
	}
	c := &graph.Content{Source: "npz " + nameOf(o.Src), Vertices: adj.rows}
	if c.Edges, err = adj.edges(o); err != nil {
		return nil, err
	}
	if c.Features, err = attributesOf(k, o, z, keys.attributes, adj.rows); err != nil {
		return nil, err
	}
	if err = labelsOf(o, z, keys.labels, c); err != nil {
		return nil, err
	}
	if err := nameClasses(o, z, c); err != nil {
		return nil, err
	}
	if c.Targets != nil || o.asksForDraw() {
		c.Split, err = o.draw(c.Labels, usual)
		return c, err
	}
	c.Split = drawPerClass(c.Labels, 20, 30, o.Seed)
	o.Log("split=random train=20 val=30 per=class test=rest seed=%d", o.Seed)
	return c, nil
}

// attributesOf reads features as CSR, or as one dense array.
func attributesOf(k *keeper, o Options, z *npy.Zip, prefix string, n int64) (graph.Features, error) {
	if !z.Has(prefix + "indptr") {
		return arrayIn(opNpz, o.Src, z, "attr_matrix").dense(k, n)
	}
	f := graph.Features{Rows: int(n)}
	m, err := zipMatrix(opNpz, o.Src, z, prefix)
	if err != nil {
		return f, err
	}
	if m.rows != n {
		return f, fault.New(fault.Data, opNpz, o.Src, "%d rows of features for %d vertices", m.rows, n)
	}
	f.Dim = int(m.cols)
	f.Sparse, err = m.sparseRows()
	return f, err
}

// labelsOf reads labels as CSR, or as one array.
func labelsOf(o Options, z *npy.Zip, prefix string, c *graph.Content) error {
	if z.Has("labels") || !z.Has(prefix+"indptr") {
		return arrayIn(opNpz, o.Src, z, "labels").setLabels(o, c)
	}
	m, err := zipMatrix(opNpz, o.Src+"["+prefix+"…]", z, prefix)
	if err == nil {
		c.Labels, err = m.oneHot(c.Vertices)
	}
	return err
}

// nameClasses reads class_names, which are optional: names of unsupported types (objects are
// pickled Python) are ignored, and so are too few names.
func nameClasses(o Options, z *npy.Zip, c *graph.Content) error {
	if !z.Has("class_names") {
		return nil
	}
	names, err := elements(arrayIn(opNpz, o.Src, z, "class_names"), (*npy.Array).Strings)
	if errors.Is(err, npy.ErrType) {
		o.Log("left_out=class_names (%v)", err)
		return nil
	}
	if err != nil {
		return err
	}
	if classes := c.Classes; c.Targets != nil {
		if len(names) == classes {
			c.ClassNames = names
		}
		return nil
	}
	classes := 0
	for _, l := range c.Labels {
		classes = max(classes, int(l)+1)
	}
	if len(names) < classes {
		o.Log("left_out=class_names (%d names for %d classes)", len(names), classes)
		return nil
	}
	c.ClassNames, c.Classes = names, len(names)
	return nil
}

// heterophilous reads an edge list in one direction and ten masks.
func heterophilous(k *keeper, o Options, z *npy.Zip) (*graph.Content, error) {
	get := func(name string) ndarray { return arrayIn(opNpz, o.Src, z, name) }
	labels := get("node_labels")
	if labels.err != nil {
		return nil, labels.err
	}
	n := int64(labels.Len())
	c := &graph.Content{Source: "npz " + nameOf(o.Src), Vertices: n, Symmetrise: true}
	var err error
	if err = labels.setLabels(o, c); err != nil {
		return nil, err
	}
	if c.Edges, err = get("edges").edges(n); err != nil {
		return nil, err
	}
	if c.Features, err = get("node_features").dense(k, n); err != nil {
		return nil, err
	}
	c.Split, err = masks(o, z, int(n))
	return c, err
}

// maskNumber is which of several masks --split names, the first by default.
func maskNumber(o Options, op string) (int, error) {
	if o.Split == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(o.Split)
	if err != nil || number < 0 {
		return 0, fault.New(fault.Usage, op, o.Src, "split %q is not a mask index", o.Split).Then("set --split to a whole number from 0")
	}
	return number, nil
}

// masks reads the three masks [splits x n] and takes the row that --split
// names, the first by default.
func masks(o Options, z *npy.Zip, n int) ([]uint8, error) {
	row, err := maskNumber(o, opNpz)
	if err != nil {
		return nil, err
	}
	s := newSplitter(opNpz, n)
	for set, name := range []string{graph.SplitTrain: "train_masks", graph.SplitVal: "val_masks", graph.SplitTest: "test_masks"} {
		if set == graph.SplitNone {
			continue
		}
		a := arrayIn(opNpz, o.Src, z, name)
		mask, err := a.integers(-1, n)
		if err != nil {
			return nil, err
		}
		if row < 0 || row >= a.Shape[0] {
			return nil, fault.New(fault.Usage, opNpz, a.path, "there is no mask %d, the file has %d", row, a.Shape[0]).
				Then("choose --split from 0 to %d", a.Shape[0]-1)
		}
		for v, in := range mask[row*n : (row+1)*n] {
			if in == 0 {
				continue
			}
			if err := s.mark(a.path, v, int64(v), uint8(set)); err != nil {
				return nil, err
			}
		}
	}
	return s.split, nil
}

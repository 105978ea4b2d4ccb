package importers

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/npy"
)

var npzFormat = importer{
	entry: entry{Name: "npz", Help: "`.npz` of gnn-benchmark, ppnp, heterophilous-graphs, PyTorch Geometric, or with kinds and relations"},
	read:  npz, recognises: isFile(".npz"), weights: true, features: true, named: pygEdgeArrays,
}

// npz reads one npz file with a whole dataset. It has the keys of gnn-benchmark (Shchur et al.
// 2018), ppnp (Klicpera et al. 2019), heterophilous-graphs (Platonov et al. 2023), PyTorch
// Geometric's Data, or of a relational graph.
func npz(k *resources, o Options) (c *graph.Content) {
	z := k.zip(k.input)
	isRelational := slices.ContainsFunc(z.Names(), func(name string) bool { return strings.HasPrefix(name, npzKind) })
	if len(o.EdgeFeatures) > 0 && !z.Has("edge_index") && !isRelational {
		z.refuse("leave --edge-features out, or save the edges as PyTorch Geometric's edge_index and edge_attr",
			"--edge-features=%s, but the file has no edge_index", strings.Join(o.EdgeFeatures, ","))
	}
	switch {
	case isRelational:
		c = z.relational(k, o)
	case z.Has("adj_indptr"):
		c = benchmark(k, o, z, "adj_", "attr_", "labels_")
	case z.Has("adj_matrix.indptr"):
		c = benchmark(k, o, z, "adj_matrix.", "attr_matrix.", "labels.")
	case z.Has("edges"):
		c = heterophilous(k, o, z)
	case z.Has("edge_index"):
		c = pyg(k, o, z)
		nameClasses(o, z, c)
	default:
		z.require(false, "see docs/importing.md for the supported keys",
			"none of adj_indptr, adj_matrix.indptr, edges, edge_index and nodes.KIND is among its arrays: %s",
			strings.Join(z.Names(), ", "))
	}
	if rest := z.Rest(); len(rest) > 0 {
		o.Log("path=%s left_out=%s", o.Src, strings.Join(rest, ","))
	}
	return c
}

// benchmark reads the gnn-benchmark and ppnp styles: adjacency, attributes and labels as CSR, or
// the latter two as one array; the names of the arrays of a matrix have a prefix. There is no
// split in such a file. Python's None and dicts, such as metadata, are arrays of objects there.
// PyTorch Geometric's reader drops self loops, too.
func benchmark(k *resources, o Options, z zipArrays, adjacency, attributes, labels string) *graph.Content {
	k.noChoice(o, "the file has no splits; --seed selects a random split")
	adj := z.matrix(adjacency)
	c := &graph.Content{Vertices: adj.rows, Edges: adj.edges(o), LoopsUnused: true}
	if z.Has(attributes + "indptr") {
		c.Features = z.matrix(attributes).features(c.Vertices)
	} else {
		c.Features = z.get("attr_matrix").dense(k, c.Vertices)
	}
	if z.Has("labels") || !z.Has(labels+"indptr") {
		z.get("labels").setLabels(o, c)
	} else {
		m := z.matrix(labels)
		m.path += "[" + labels + "…]"
		c.Labels = m.oneHot(c.Vertices)
	}
	nameClasses(o, z, c)
	if c.Targets != nil || o.asksForDraw() {
		c.Split = o.draw(c.Labels, usual)
		return c
	}
	c.Split = drawPerClass(c.Labels, 20, 30, o.Seed)
	o.Log("split=random train=20 val=30 per=class test=rest seed=%d", o.Seed)
	return c
}

// nameClasses reads class_names, which are optional: names of unsupported types (objects are
// pickled Python) are ignored, and so are too few names.
func nameClasses(o Options, z zipArrays, c *graph.Content) {
	if !z.Has("class_names") {
		return
	}
	a, err := z.Get("class_names")
	var names []string
	if err == nil {
		names, err = a.Strings()
	}
	if errors.Is(err, npy.ErrType) {
		o.Log("left_out=class_names (%v)", err)
		return
	}
	check(err)
	classes := 0
	for _, l := range c.Labels {
		classes = max(classes, int(l)+1)
	}
	switch {
	case c.Targets != nil && len(names) == c.Classes:
		c.ClassNames = names
	case c.Targets != nil:
	case len(names) < classes:
		o.Log("left_out=class_names (%d names for %d classes)", len(names), classes)
	default:
		c.ClassNames, c.Classes = names, len(names)
	}
}

// heterophilous reads an edge list in one direction and ten masks.
func heterophilous(k *resources, o Options, z zipArrays) *graph.Content {
	labels := z.get("node_labels")
	c := &graph.Content{Vertices: int64(labels.Len()), Symmetrise: true}
	labels.setLabels(o, c)
	c.Edges = z.get("edges").edges(c.Vertices)
	c.Features = z.get("node_features").dense(k, c.Vertices)
	row, n, s := k.maskNumber(o), int(c.Vertices), make(splitter, c.Vertices)
	for i, name := range []string{"train_masks", "val_masks", "test_masks"} {
		a := z.get(name) // [splits x n]
		a.require(len(a.Shape) == 2 && a.Shape[1] == n, indexMask, "the masks have shape %v for %d vertices", a.Shape, n)
		mask := a.integers(-1, n)
		a.hasMask(row, a.Shape[0])
		s.markMask(a.input, mask[row*n:(row+1)*n], uint8(graph.SplitTrain+i))
	}
	c.Split = s
	return c
}

func (a ndarray) hasMask(number, masks int) {
	if number >= masks {
		a.refuse("choose --split from 0 to "+strconv.Itoa(masks-1), "there is no mask %d, the file has %d", number, masks)
	}
}

// maskNumber returns the index of the mask that --split names, the first by default.
func (p input) maskNumber(o Options) int {
	if o.Split == "" {
		return 0
	}
	number, err := strconv.Atoi(o.Split)
	if err != nil || number < 0 {
		p.refuse("set --split to a whole number from 0", "split %q is not a mask index", o.Split)
	}
	return number
}

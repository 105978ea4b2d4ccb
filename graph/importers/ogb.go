package importers

import (
	"cmp"
	"math"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/internal/fault"
)

var ogbFormat = importer{
	entry: entry{Name: "ogb", Help: "folder of an `ogbn-` or `ogbl-` dataset"},
	read:  ogb, recognises: isOGB, weights: true, features: true,
}

const opOGB = "import ogb"

// ogb reads the folder of a node property prediction dataset of the Open Graph
// Benchmark (Hu et al. 2020) as its loader unpacks it: raw/*.csv.gz and
// split/TYPE/{train,valid,test}.csv.gz; or that of a link property prediction dataset.
func ogb(k *keeper, o Options) (*graph.Content, error) {
	if _, err := os.Stat(o.Src); err != nil {
		return nil, fault.System(opOGB, o.Src, err)
	}
	if exists(filepath.Join(o.Src, "raw", ogbArchive)) {
		return ogbArrays(k, o)
	}
	if err := notTyped(o); err != nil {
		return nil, err
	}
	n, err := ogbCount(o, "num-node-list.csv.gz")
	if err != nil {
		return nil, err
	}
	edges, err := ogbCount(o, "num-edge-list.csv.gz")
	if err != nil {
		return nil, err
	}
	if isOGBLinks(o.Src, ogbLabelFile) {
		return ogbLinks(k, o, n, edges)
	}
	c := &graph.Content{Source: "ogb " + nameOf(o.Src)}
	// Labels come first: they prove the number of vertices.
	c.Vertices = n
	if err = ogbLabels(o, c); err != nil {
		return nil, err
	}
	along, err := ogbEdges(k, o, n, edges)
	if err != nil {
		return nil, err
	}
	c.Edges = along.source()
	if along.dim > 0 {
		o.Log("edge_features=%d path=%s", along.dim, filepath.Join(o.Src, "raw", ogbEdgeFeatures))
	}
	if c.Features, err = ogbFeatures(k, o, n, along); err != nil {
		return nil, err
	}
	if !o.Symmetrise {
		o.Log("edges are stored as listed; import with --symmetrise if the benchmark's loader adds inverse edges (ogbn-products)")
	}
	c.Split, err = ogbSplit(o, n)
	return c, err
}

// ogbCount reads a file that lists a number for each graph; there must be one.
func ogbCount(o Options, file string) (int64, error) {
	path := filepath.Join(o.Src, "raw", file)
	list, err := csvColumn(opOGB, path)
	if err != nil {
		return 0, err
	}
	if len(list) != 1 || list[0] < 0 {
		return 0, fault.New(fault.Data, opOGB, path, "%d numbers, expected one: a dataset of a single graph", len(list)).
			Then("import a dataset of a single graph (ogbn or ogbl)")
	}
	return list[0], checkVertices(opOGB, path, min(list[0], maxVertices))
}

// wrongRows returns the fault of a file that does not have a row for each vertex.
func wrongRows(path string, rows, n int64) error {
	return fault.New(fault.Data, opOGB, path, "%d rows, expected %d as in num-node-list.csv.gz", rows, n).
		Then("fetch the file again, it is truncated")
}

// ogbLabels reads one label per vertex, nan for none, or 0 and 1 in several columns
// (ogbn-proteins).
func ogbLabels(o Options, c *graph.Content) error {
	n, columns, path := c.Vertices, 1, filepath.Join(o.Src, "raw", ogbLabelFile)
	var labels []int64
	err := parseFile(opOGB, path, csvParser(opOGB, path, parseLabel), func(t csvTable[int64]) error {
		if labels == nil {
			columns = t.cols
		}
		if err := t.sameCols(opOGB, path, columns); err != nil {
			return err
		}
		labels = append(labels, t.values...)
		return nil
	})
	if err != nil {
		return err
	}
	if rows := int64(len(labels) / columns); rows != n {
		return wrongRows(path, rows, n)
	}
	if columns == 1 {
		c.Labels, err = checkLabels(opOGB, path, labels)
		return err
	}
	values := make([]float32, len(labels))
	for i, l := range labels {
		values[i] = float32(l) // -1 is refused as no label
	}
	o.Task = cmp.Or(o.Task, graph.MultiLabel)
	return setTargets(o, c, values, columns, opOGB, path)
}

// parseLabel reads a whole number, also in float notation. nan means no label; pandas writes
// it as an empty field in quotes if it is the only one of its line.
func parseLabel(b []byte) (int64, bool) {
	if v, ok := parseInt(b); ok {
		return v, true
	}
	if string(b) == `""` {
		return int64(graph.Unlabelled), true
	}
	v, ok := parseFloat(b)
	switch {
	case !ok:
		return 0, false
	case math.IsNaN(v):
		return int64(graph.Unlabelled), true
	}
	return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
}

// parseFeature reads a number that is finite as float32.
func parseFeature(b []byte) (float32, bool) {
	v, ok := parseFloat(b)
	return float32(v), ok && math.Abs(v) <= math.MaxFloat32
}

// Tables of numbers, a row for each vertex and each edge. Either may be missing.
const (
	ogbNodeFeatures = "node-feat.csv.gz"
	ogbEdgeFeatures = "edge-feat.csv.gz"
)

// ogbFeatures returns the features of vertices: from their table or, if only edges have one,
// the means of the features of the edges into each vertex, and out of it if edges are
// symmetrised. Without along there must be a table of vertices.
func ogbFeatures(k *keeper, o Options, n int64, along *weightedEdges) (graph.Features, error) {
	path := filepath.Join(o.Src, "raw", ogbNodeFeatures)
	if !exists(path) && along != nil && along.dim > 0 {
		o.Log("features=means of edge features: there is no %s", path)
		return along.means(k, int(n), o.Symmetrise)
	}
	f := graph.Features{Rows: int(n)}
	rows := int64(0)
	err := parseFile(opOGB, path, csvParser(opOGB, path, parseFeature), func(t csvTable[float32]) error {
		if f.Dense == nil {
			var err error
			f.Dim = t.cols
			if most := mostText(path) / 2; n > most/int64(f.Dim) {
				return fault.New(fault.Data, opOGB, path, "it is too short for %d rows of %d columns", n, f.Dim).
					Then("fetch the file again, it is truncated")
			}
			if f.Dense, err = reserve[float32](k, opOGB, path, int(n)*f.Dim); err != nil {
				return err
			}
		}
		if err := t.sameCols(opOGB, path, f.Dim); err != nil {
			return err
		}
		at := rows * int64(f.Dim)
		if rows += int64(len(t.values) / f.Dim); rows > n {
			return wrongRows(path, rows, n)
		}
		copy(f.Dense[at:], t.values)
		return nil
	})
	if err == nil && rows != n {
		err = wrongRows(path, rows, n)
	}
	return f, err
}

// ogbEdges returns the edges, with features if they have a table.
func ogbEdges(k *keeper, o Options, n, edges int64) (*weightedEdges, error) {
	path := filepath.Join(o.Src, "raw", "edge.csv.gz")
	out := newWeightedEdges(k, opOGB, path)
	parse := func(b []byte) (uint32, bool) {
		v, ok := parseInt(b)
		return uint32(v), ok && v >= 0 && v < n
	}
	err := parseFile(opOGB, path, csvParser(opOGB, path, parse), func(t csvTable[uint32]) error {
		if err := t.sameCols(opOGB, path, 2); err != nil {
			return err
		}
		return out.add(t.values)
	})
	if err == nil && out.pairs != edges {
		err = fault.New(fault.Data, opOGB, path, "%d edges, expected %d as in num-edge-list.csv.gz", out.pairs, edges).
			Then("fetch the file again, it is truncated")
	}
	if table := filepath.Join(o.Src, "raw", ogbEdgeWeights); err == nil && exists(table) {
		if o.DropWeights {
			o.Log("path=%s weights are dropped", table)
		} else {
			err = out.readWeights(table)
		}
	}
	if table := filepath.Join(o.Src, "raw", ogbEdgeFeatures); err == nil && exists(table) && !o.DropEdgeFeatures {
		err = out.readFeatures(table)
	}
	return out, err
}

// readFeatures reads a table with a row for each of the edges.
func (e *weightedEdges) readFeatures(path string) error {
	rows := int64(0)
	err := parseFile(opOGB, path, csvParser(opOGB, path, parseFeature), func(t csvTable[float32]) error {
		if e.dim == 0 {
			e.dim = t.cols
		}
		rows += int64(len(t.values) / t.cols)
		if err := t.sameCols(opOGB, path, e.dim); err != nil || rows > e.pairs {
			return err
		}
		return e.features.add(t.values)
	})
	if err == nil && rows != e.pairs {
		err = wrongEdges(path, rows, e.pairs)
	}
	return err
}

// wrongEdges returns the fault of a file that does not have a row for each edge.
func wrongEdges(path string, rows, edges int64) error {
	return fault.New(fault.Data, opOGB, path, "%d rows for %d edges", rows, edges).Then("fetch the file again, it is truncated")
}

// means returns the mean features of the edges into each of n vertices, and with symmetrise
// out of it, too; 0 without edges. Loops do not count.
func (e *weightedEdges) means(k *keeper, n int, symmetrise bool) (graph.Features, error) {
	f := graph.Features{Rows: n, Dim: e.dim}
	sums, count := make([]float64, n*e.dim), make([]float64, n)
	var err error
	if f.Dense, err = reserve[float32](k, e.op, e.path, n*e.dim); err != nil {
		return f, err
	}
	add := func(v uint32, features []float32) {
		count[v]++
		for j, x := range features {
			sums[int(v)*e.dim+j] += float64(x)
		}
	}
	e.eachFeatures(func(src, dst uint32, _ float32, features []float32) error {
		if src == dst {
			return nil
		}
		if add(dst, features); symmetrise {
			add(src, features)
		}
		return nil
	})
	for i, sum := range sums {
		f.Dense[i] = float32(sum / max(count[i/e.dim], 1))
	}
	return f, nil
}

// ogbSplit reads the split of the type that --split names, or of the only
// type.
func ogbSplit(o Options, n int64) ([]uint8, error) {
	kind, dir := o.Split, filepath.Join(o.Src, "split")
	if kind == "" {
		found, err := os.ReadDir(dir)
		if err != nil {
			return nil, fault.System(opOGB, dir, err)
		}
		var kinds []string
		for _, e := range found {
			if e.IsDir() {
				kinds = append(kinds, e.Name())
			}
		}
		if len(kinds) != 1 {
			return nil, fault.New(fault.Usage, opOGB, dir, "it has several splits: %q", kinds).Then("choose one with --split")
		}
		kind = kinds[0]
	}
	s := newSplitter(opOGB, int(n))
	for i, file := range []string{"train.csv.gz", "valid.csv.gz", "test.csv.gz"} {
		path := filepath.Join(dir, kind, file)
		ids, err := csvColumn(opOGB, path)
		if err != nil {
			return nil, err
		}
		if err := s.markAll(path, ids, uint8(graph.SplitTrain+i)); err != nil {
			return nil, err
		}
	}
	return s.split, nil
}

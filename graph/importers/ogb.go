package importers

import (
	"bytes"
	"cmp"
	"math"
	"os"

	"siafu/graph"
)

var ogbFormat = importer{
	entry: entry{Name: "ogb", Help: "folder of an `ogbn-` or `ogbl-` dataset"},
	read:  ogb, recognises: isOGB, weights: true, features: true,
}

// raw returns a file in the folder raw.
func (p input) raw(name string) input { return p.in("raw").in(name) }

// ogb reads the folder of a node property prediction dataset of the Open Graph
// Benchmark (Hu et al. 2020) as its loader unpacks it: raw/*.csv.gz and
// split/TYPE/{train,valid,test}.csv.gz; or of a link property prediction dataset.
func ogb(k *resources, o Options) *graph.Content {
	_, err := os.Stat(o.Src)
	k.system(err)
	if k.raw(ogbArchive).exists() {
		return ogbArrays(k, o)
	}
	if k.raw(ogbTriplets).exists() && k.raw(ogbHasLabel).exists() {
		return ogbRelational(k, o)
	}
	for _, name := range []string{ogbTriplets, "edge_reltype.csv.gz"} {
		at := k.raw(name)
		at.require(!at.exists(), "import a graph with one type of vertices and edges, or with labels",
			"its edges have types and its vertices no labels, as in ogbl-wikikg2 and ogbl-biokg, which are not supported")
	}
	c := &graph.Content{Vertices: ogbCount(k.raw("num-node-list.csv.gz"))}
	edges := ogbCount(k.raw("num-edge-list.csv.gz"))
	if isOGBLinks(o.Src, ogbLabelFile) {
		ogbLinks(k, o, c, edges)
		return c
	}
	ogbLabels(k.raw(ogbLabelFile), o, c) // first: they prove the number of vertices
	along := ogbEdges(k, o, c.Vertices, edges)
	c.Edges = along.source()
	if along.dim > 0 {
		o.Log("edge_features=%d path=%s", along.dim, k.raw(ogbEdgeFeatures).path)
	}
	c.Features = ogbFeatures(k, o, c.Vertices, along)
	if !o.Symmetrise {
		o.Log("edges are stored as listed; import with --symmetrise if the benchmark's loader adds inverse edges (ogbn-products)")
	}
	c.Split = ogbSplit(ogbSplitFolder(k.in("split"), o), c.Vertices)
	return c
}

// ogbCount reads a file that lists a number for each graph; there must be one.
func ogbCount(at input) int64 {
	list := csvColumn(at)
	at.require(len(list) == 1 && list[0] >= 0, "import a dataset of a single graph (ogbn or ogbl)",
		"%d numbers, expected one: a dataset of a single graph", len(list))
	return list[0]
}

// ogbRows refuses a file that does not have a row for each vertex.
func ogbRows(at input, rows, n int64) {
	at.require(rows == n, fetchTruncated, "%d rows, expected %d, one for each vertex", rows, n)
}

// ogbLabels reads one label per vertex, nan for none, or 0 and 1 in several columns
// (ogbn-proteins).
func ogbLabels(at input, o Options, c *graph.Content) {
	n, columns := c.Vertices, 1
	var labels []int64
	parseFile(at, csvParser(at, parseLabel), func(t csvTable[int64]) {
		if labels == nil {
			columns = t.cols
		}
		labels = append(labels, t.values...)
		t.sameCols(at, columns)
	})
	ogbRows(at, int64(len(labels)/columns), n)
	if columns == 1 {
		c.Labels = checkLabels(at, labels)
		return
	}
	values := make([]float32, len(labels))
	for i, l := range labels {
		values[i] = float32(l) // -1 is refused as no label
	}
	o.Task = cmp.Or(o.Task, graph.MultiLabel)
	setTargets(o, c, values, columns, at)
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

// Files in the folder raw. Features and weights may be missing.
const (
	ogbNodeFeatures = "node-feat.csv.gz" // a row of numbers for each vertex
	ogbEdgeFeatures = "edge-feat.csv.gz"
	ogbEdgeWeights  = "edge_weight.csv.gz"
	ogbLabelFile    = "node-label.csv.gz"
	ogbArchive      = "data.npz" // of a dataset of arrays, like the next
	ogbClasses      = "node-label.npz"
)

// ogbFeatures returns the features of vertices: from their table or, if only edges have one,
// the means of the features of the edges into each vertex, and out of it if edges are
// symmetrised. Without along there must be a table of vertices.
func ogbFeatures(k *resources, o Options, n int64, along *weightedEdges) graph.Features {
	at := k.raw(ogbNodeFeatures)
	if !at.exists() && along != nil && along.dim > 0 {
		o.Log("features=means of edge features: there is no %s", at.path)
		return along.means(int(n), o.Symmetrise)
	}
	return ogbFeatureTable(k, at, n)
}

// ogbFeatureTable reads a row of features for each vertex.
func ogbFeatureTable(k *resources, at input, n int64) graph.Features {
	f := graph.Features{Rows: int(n)}
	rows := int64(0)
	parseFile(at, csvParser(at, parseFeature), func(t csvTable[float32]) {
		if f.Dense == nil {
			f.Dim = t.cols
			at.require(n <= mostUnpacked(at.path)/2/int64(f.Dim), fetchTruncated, "it is too short for %d rows of %d columns", n, f.Dim)
			f.Dense = reserve[float32](k, at, int(n)*f.Dim)
		}
		t.sameCols(at, f.Dim)
		first := rows * int64(f.Dim)
		if rows += int64(len(t.values) / f.Dim); rows > n {
			ogbRows(at, rows, n)
		}
		copy(f.Dense[first:], t.values)
	})
	ogbRows(at, rows, n)
	return f
}

// ogbEdges returns the edges, with weights and features if they have tables.
func ogbEdges(k *resources, o Options, n, edges int64) *weightedEdges {
	out := ogbEdgeTable(k, k.raw("edge.csv.gz"), n, n, edges)
	if table := k.raw(ogbEdgeWeights); table.exists() {
		if o.DropWeights {
			o.Log("path=%s weights are dropped", table.path)
		} else if weights, _ := out.table(table, 1, parseWeight); weights.contains(func(w float32) bool { return w != 1 }) {
			out.weights = weights
		}
	}
	if table := k.raw(ogbEdgeFeatures); table.exists() && !o.DropEdgeFeatures {
		out.features, out.dim = out.table(table, 0, parseFeature)
	}
	return out
}

// ogbEdgeTable reads the given number of edges between from and to vertices.
func ogbEdgeTable(k *resources, at input, from, to, edges int64) *weightedEdges {
	out, most := newWeightedEdges(k, at), max(from, to)
	parse := func(b []byte) (uint32, bool) {
		v, ok := parseInt(b)
		return uint32(v), ok && v >= 0 && v < most
	}
	parseFile(at, csvParser(at, parse), func(t csvTable[uint32]) {
		t.sameCols(at, 2)
		for i := 0; i < len(t.values) && from != to; i += 2 {
			if v := int64(t.values[i]); v >= from {
				check(badEdge(at, out.pairs+int64(i/2), 0, v, from))
			}
			if v := int64(t.values[i+1]); v >= to {
				check(badEdge(at, out.pairs+int64(i/2), 1, v, to))
			}
		}
		out.add(t.values)
	})
	at.require(out.pairs == edges, fetchTruncated, "%d edges, expected %d as in num-edge-list.csv.gz", out.pairs, edges)
	return out
}

// table reads a file with a row for each of the edges. It must have the given number of columns;
// 0 means any.
func (e *weightedEdges) table(at input, columns int, number func([]byte) (float32, bool)) (*chunks[float32], int) {
	values := &chunks[float32]{resources: e.resources, input: at}
	rows, cols := int64(0), columns
	parseFile(at, csvParser(at, number), func(t csvTable[float32]) {
		cols = cmp.Or(cols, t.cols)
		rows += int64(len(t.values) / t.cols)
		if t.sameCols(at, cols); rows <= e.pairs {
			values.add(t.values)
		}
	})
	at.require(rows == e.pairs, fetchTruncated, "%d rows for %d edges", rows, e.pairs)
	return values, cols
}

// means returns the mean features of the edges into each of n vertices, and with symmetrise
// out of it, too; 0 without edges. Loops do not count.
func (e *weightedEdges) means(n int, symmetrise bool) graph.Features {
	f := graph.Features{Rows: n, Dim: e.dim, Dense: reserve[float32](e.resources, e.input, n*e.dim)}
	sums, count := make([]float64, n*e.dim), make([]float64, n)
	add := func(v uint32, features []float32) {
		count[v]++
		for j, x := range features {
			sums[int(v)*e.dim+j] += float64(x)
		}
	}
	e.edgeData.each(func(src, dst uint32, _ float32, features []float32) error {
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
	return f
}

// ogbSplitFolder returns the folder of the split that --split names, or of the only one.
func ogbSplitFolder(dir input, o Options) input {
	kind := o.Split
	if kind == "" {
		found, err := os.ReadDir(dir.path)
		dir.system(err)
		var kinds []string
		for _, e := range found {
			if e.IsDir() {
				kinds = append(kinds, e.Name())
			}
		}
		if len(kinds) != 1 {
			dir.refuse("choose one with --split", "it has several splits: %q", kinds)
		}
		kind = kinds[0]
	}
	return dir.in(kind)
}

// ogbSplit reads the split of n vertices in a folder.
func ogbSplit(dir input, n int64) []uint8 {
	s := make(splitter, n)
	for i, file := range []string{"train.csv.gz", "valid.csv.gz", "test.csv.gz"} {
		at := dir.in(file)
		s.markAll(at, csvColumn(at), uint8(graph.SplitTrain+i))
	}
	return s
}

// csvTable is one block of a file of comma-separated numbers: rows of cols numbers each. Such
// files of OGB have no header line and no quotes.
type csvTable[T any] struct {
	line   int64 // of the first row
	cols   int
	values []T // [rows x cols]
}

// csvParser returns a function that reads a block; number reads one field. All rows of a block
// must have the same number of fields.
func csvParser[T any](at input, number func([]byte) (T, bool)) func(block) (csvTable[T], error) {
	return func(b block) (csvTable[T], error) {
		// The maximum number of fields, from commas and line ends.
		most := bytes.Count(b.text, []byte{','}) + bytes.Count(b.text, []byte{'\n'}) + 1
		t := csvTable[T]{line: b.line, values: make([]T, 0, most)}
		for line, text := b.line, b.text; len(text) > 0; line++ {
			var row []byte
			row, text = nextLine(text)
			cols := 0
			for field, rest, ok := nextField(row); ok; field, rest, ok = nextField(rest) {
				v, good := number(field)
				if !good {
					return t, at.bad("line %d column %d: %.40q is not a valid number here", line, cols+1, field).
						Then("correct the line, or fetch the file again")
				}
				t.values = append(t.values, v)
				cols++
			}
			if t.cols == 0 {
				t.cols = cols
			}
			if cols != t.cols {
				return t, at.bad("line %d has %d columns, earlier lines have %d", line, cols, t.cols)
			}
		}
		return t, nil
	}
}

func (t csvTable[T]) sameCols(at input, cols int) {
	at.require(t.cols == cols, "", "line %d has %d columns, expected %d", t.line, t.cols, cols)
}

func csvColumn(at input) (out []int64) {
	parseFile(at, csvParser(at, parseInt), func(t csvTable[int64]) {
		t.sameCols(at, 1)
		out = append(out, t.values...)
	})
	return out
}

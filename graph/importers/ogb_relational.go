package importers

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"siafu/graph"
)

// Files in the folder raw of a relational dataset.
const (
	ogbTriplets   = "triplet-type-list.csv.gz" // KIND,RELATION,KIND
	ogbKinds      = "num-node-dict.csv.gz"     // names of kinds, then their numbers of vertices
	ogbHasFeature = "nodetype-has-feat.csv.gz" // names of kinds, then True or False
	ogbHasSplit   = "nodetype-has-split.csv.gz"
	ogbHasLabel   = "nodetype-has-label.csv.gz"
)

// ogbRelational reads a dataset with kinds and relations, such as ogbn-mag.
func ogbRelational(k *resources, o Options) *graph.Content {
	refuseRelational(k.input, o)
	at, x := k.raw(ogbKinds), &relational{all: true} // as the benchmark's examples do
	kinds, counts := ogbKindValues(at)
	hasFeatures, hasLabels := ogbFlags(k.raw(ogbHasFeature)), ogbFlags(k.raw(ogbHasLabel))
	split := ogbSplitFolder(k.in("split"), o)
	hasSplit := ogbFlags(split.in(ogbHasSplit))
	for i, name := range kinds {
		checkKindName(at, name)
		n, err := strconv.ParseInt(counts[i], 10, 64)
		at.require(err == nil, fetchTruncated, "kind %.60q has %.60q vertices", name, counts[i])
		checkVertices(at, n)
		c := &graph.Content{Vertices: n}
		if hasLabels[name] { // first: they prove the number of vertices
			ogbLabels(k.raw("node-label").in(name).in(ogbLabelFile), o, c)
		}
		if hasFeatures[name] {
			c.Features = ogbFeatureTable(k, k.raw("node-feat").in(name).in(ogbNodeFeatures), n)
		}
		if hasSplit[name] && c.Labels != nil {
			c.Split = ogbSplit(split.in(name), n)
		}
		x.addKind(at, name, c)
	}
	list := k.raw(ogbTriplets)
	for _, row := range ogbTexts(list) {
		list.require(len(row) == 3, "", "%q is not KIND,RELATION,KIND", row)
		checkKindName(list, row[1])
		from, to := x.kind(list, row[0]), x.kind(list, row[2])
		dir := k.raw("relations").in(strings.Join(row, "___"))
		count := ogbCount(dir.in("num-edge-list.csv.gz"))
		edges := ogbEdgeTable(k, dir.in("edge.csv.gz"), x.kinds[from].Vertices, x.kinds[to].Vertices, count)
		if at := dir.in(ogbEdgeFeatures); at.exists() {
			at.dropEdgeData(o, "features", "--drop-edge-features", o.DropEdgeFeatures)
		}
		if at := dir.in(ogbEdgeWeights); at.exists() {
			at.dropEdgeData(o, "weights", "--drop-weights", o.DropWeights)
		}
		x.addRelation(list, row[0], row[1], row[2], edges)
	}
	return x.content(k, o)
}

// mostText is the maximum length of a list of kinds or relations in bytes.
const mostText = 16 << 20

// ogbTexts reads a small table of texts.
func ogbTexts(at input) [][]string {
	in := openText(at)
	defer in.Close()
	rows, err := csv.NewReader(io.LimitReader(in, mostText)).ReadAll()
	if err != nil {
		check(textFault(at, err))
	}
	return rows
}

// ogbKindValues reads a file with names of kinds and a line of values.
func ogbKindValues(at input) (kinds, values []string) {
	rows := ogbTexts(at)
	at.require(len(rows) == 2 && len(rows[0]) == len(rows[1]), "import a dataset of a single graph, or "+fetchTruncated,
		"%d lines, expected the names of kinds and one line of values", len(rows))
	return rows[0], rows[1]
}

// ogbFlags reads a file with names of kinds and, for each, True or False; no file: none is True.
func ogbFlags(at input) map[string]bool {
	flags := map[string]bool{}
	if !at.exists() {
		return flags
	}
	kinds, values := ogbKindValues(at)
	for i, name := range kinds {
		flag, err := strconv.ParseBool(values[i])
		at.require(err == nil, fetchTruncated, "kind %.60q has %.60q, expected True or False", name, values[i])
		flags[name] = flag
	}
	return flags
}

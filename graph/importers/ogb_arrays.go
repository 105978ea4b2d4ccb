package importers

import (
	"math"

	"siafu/graph"
)

// Files of an array dataset of the Open Graph Benchmark.
const (
	ogbArchive = "data.npz"
	ogbClasses = "node-label.npz"
)

func isOGB(src string) bool {
	return holds("raw/edge.csv.gz")(src) || holds("raw/"+ogbArchive)(src)
}

// ogbArrays reads the layout of ogbn-papers100M: raw/data.npz with edge_index and
// node_feat, raw/node-label.npz with node_label, and the splits of the other datasets; or that
// of ogbl-vessel, which has no labels, and pairs.
func ogbArrays(k *keeper, o Options) *graph.Content {
	in := openZip(opOGB, ogbFile(o, ogbArchive).path, k)
	x := in.get("node_feat")
	n := x.rows()
	c := &graph.Content{Source: "ogb " + nameOf(o.Src), Vertices: n, Features: x.dense(k, n), Edges: pygEdges(k, o, in, n)}
	if isOGBLinks(o.Src, ogbClasses) {
		ogbHeld(o, c)
		return c
	}
	c.Labels = ogbClassArray(k, o, n)
	c.Split = ogbSplit(o, n)
	return c
}

// ogbClassArray reads one label per vertex; nan means none.
func ogbClassArray(k *keeper, o Options, n int64) []int32 {
	a := openZip(opOGB, ogbFile(o, ogbClasses).path, k).get("node_label")
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
	return checkLabels(a.place, labels)
}

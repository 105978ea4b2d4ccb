package importers

import (
	"math"
	"path/filepath"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
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
func ogbArrays(k *keeper, o Options) (*graph.Content, error) {
	path := filepath.Join(o.Src, "raw", ogbArchive)
	z, err := k.zip(path)
	if err != nil {
		return nil, err
	}
	in := zipArrays{z, opOGB, path}
	x := in.get("node_feat")
	if x.err == nil && len(x.Shape) != 2 {
		return nil, x.bad("features have shape %v, expected [vertices columns]", x.Shape)
	}
	if x.err != nil {
		return nil, x.err
	}
	c := &graph.Content{Source: "ogb " + nameOf(o.Src), Vertices: int64(x.Shape[0])}
	if err := checkVertices(opOGB, x.path, c.Vertices); err != nil {
		return nil, err
	}
	if c.Features, err = x.dense(k, c.Vertices); err != nil {
		return nil, err
	}
	if err := pygEdges(k, o, in, c); err != nil {
		return nil, err
	}
	if isOGBLinks(o.Src, ogbClasses) {
		return c, ogbHeld(o, c)
	}
	if c.Labels, err = ogbClassArray(k, o, c.Vertices); err != nil {
		return nil, err
	}
	c.Split, err = ogbSplit(o, c.Vertices)
	return c, err
}

// ogbClassArray reads one label per vertex; nan means none.
func ogbClassArray(k *keeper, o Options, n int64) ([]int32, error) {
	path := filepath.Join(o.Src, "raw", ogbClasses)
	z, err := k.zip(path)
	if err != nil {
		return nil, err
	}
	a := arrayIn(opOGB, path, z, "node_label")
	values, err := elements(a, (*npy.Array).Float32s)
	switch {
	case err != nil:
		return nil, err
	case len(a.Shape) == 2 && a.Shape[1] != 1:
		return nil, multiLabel(opOGB, a.path, "labels have shape %v", a.Shape)
	case int64(len(values)) != n:
		return nil, a.bad("there are %d labels for %d vertices", len(values), n).Then("take both files from one dataset")
	}
	labels := make([]int64, n)
	for v, x := range values {
		switch {
		case x != x:
			labels[v] = int64(graph.Unlabelled)
		case x != float32(math.Trunc(float64(x))) || math.Abs(float64(x)) > 1<<24:
			return nil, fault.New(fault.Data, opOGB, a.path, "label of vertex %d is %v, expected a whole number or nan", v, x)
		default:
			labels[v] = int64(x)
		}
	}
	return checkLabels(opOGB, a.path, labels)
}

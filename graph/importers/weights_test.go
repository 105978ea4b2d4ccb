package importers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
)

// Weights of tables and of arrays with PyG's names are stored beside the edges that they
// belong to, those of the same edge added up, and dropped only where the user says so.
func TestWeights(t *testing.T) {
	const nodes = "id,label,split,x\na,p,train,1\nb,q,train,2\nc,p,test,3\n"
	const edges = "src,dst,weight\na,b,0.5\na,b,0.25\nb,a,2\nc,b,0\nb,c,1\nc,c,9\n"
	src := files(t, map[string][]byte{
		"nodes.csv": []byte(nodes), "edges.csv": []byte(edges),
		"weights.npz": tinyPyG("edge_weight", f4s(4, 1, 0.5, 2, 0, 4)), "bad.npz": tinyPyG("edge_attr", f4s(4, 1, 1, 1, -1, 1)),
		"columns.npz": tinyPyG("edge_attr", f4s(4, 2, 1, 2, 3, 4, 5, 6, 7, 8)), "ones.npz": tinyPyG("edge_attr", f4s(4, 1, 1, 1, 1, 1)),
	})
	for _, c := range []struct {
		name, file string
		o          Options
		cols       []uint32 // of the rows of destinations
		weights    []float32
		directed   bool
		says       string
	}{
		{"a table", "", Options{}, []uint32{1, 0, 1}, []float32{2, 0.75, 1}, true, "weight_0=1"},
		{"symmetrised", "", Options{Symmetrise: true}, []uint32{1, 0, 2, 1}, []float32{2.75, 2.75, 1, 1}, false, "weight_0=1"},
		{"dropped", "", Options{TableOptions: TableOptions{DropWeights: true}}, []uint32{1, 0, 1}, nil, true, "weights are dropped"},
		{"arrays", "weights.npz", Options{}, []uint32{3, 0, 1}, []float32{4, 0.5, 2}, true, ""},
		{"arrays dropped", "weights.npz", Options{TableOptions: TableOptions{DropWeights: true}}, []uint32{2, 3, 0, 1}, nil, true, "edge_weight is dropped"},
		{"several columns", "columns.npz", Options{}, []uint32{2, 3, 0, 1}, nil, true, "it has 2 columns"},
		{"ones", "ones.npz", Options{}, []uint32{2, 3, 0, 1}, nil, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log strings.Builder
			c.o.Src, c.o.Dst = filepath.Join(src, c.file), filepath.Join(t.TempDir(), "out")
			c.o.Log = func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }
			if _, err := Import("auto", c.o); err != nil {
				t.Fatal(err)
			}
			d, err := graph.Open(c.o.Dst)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if !slices.Equal(d.In.Cols, c.cols) || !slices.Equal(d.Weights, c.weights) || d.Meta.Weighted != (c.weights != nil) || d.Meta.Directed != c.directed {
				t.Errorf("edges from %v with weights %v, directed %t", d.In.Cols, d.Weights, d.Meta.Directed)
			}
			if !strings.Contains(log.String(), c.says) {
				t.Errorf("log lacks %q:\n%s", c.says, log.String())
			}
		})
	}
	if _, err := Import("npz", Options{Src: filepath.Join(src, "bad.npz"), Dst: filepath.Join(t.TempDir(), "out")}); err == nil || !strings.Contains(err.Error(), "the weight of edge 2 is -1") {
		t.Errorf("got %v", err)
	}
}

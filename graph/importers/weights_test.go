package importers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
)

// Weights of tables, PyG arrays and adjacency matrices are stored with their edges. Weights of
// repeated edges are added. Weights are dropped only on request.
func TestWeights(t *testing.T) {
	const nodes = "id,label,split,x\na,p,train,1\nb,q,train,2\nc,p,test,3\n"
	const edges = "src,dst,weight\na,b,0.5\na,b,0.25\nb,a,2\nc,b,0\nb,c,1\nc,c,9\n"
	saint := tinySAINT()
	src := files(t, map[string][]byte{
		"saint/feats.npy": saint["feats.npy"], "saint/class_map.json": saint["class_map.json"], "saint/role.json": saint["role.json"],
		"nodes.csv": []byte(nodes), "edges.csv": []byte(edges),
		"weights.npz": tinyPyG("edge_weight", f4s(4, 1, 0.5, 2, 0, 4)), "bad.npz": tinyPyG("edge_attr", f4s(4, 1, 1, 1, -1, 1)),
		"csr.npz": bundle(append(tinyCSR(array("<f4", "(4,)", little([]float32{0.5, 2, 0, 4}))), "attr_matrix",
			f4s(4, 2, tinyFeatures...), "labels", i8s(0, 1, 1, 0))...),
		"below.npz": bundle(append(tinyCSR(array("<f4", "(4,)", little([]float32{1, 1, 1, -1}))), "attr_matrix",
			f4s(4, 2, tinyFeatures...), "labels", i8s(0, 1, 1, 0))...),
		"saint/adj_full.npz": bundle("data", i8s(3, 1, 0, 2), "row", i8s(0, 1, 2, 3), "col", i8s(1, 0, 0, 0), "shape", i8s(4, 4), "format",
			array("|S3", "()", []byte("coo"))),
		"columns.npz": tinyPyG("edge_attr", f4s(4, 2, 1, 2, 3, 4, 5, 6, 7, 8)),
		"ones.npz":    tinyPyG("edge_attr", f4s(4, 1, 1, 1, 1, 1)),
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
		{"arrays dropped", "weights.npz", Options{TableOptions: TableOptions{DropWeights: true}}, []uint32{2, 3, 0, 1}, nil,
			true, "edge_weight is dropped"},
		{"an adjacency", "csr.npz", Options{}, []uint32{3, 0, 1}, []float32{4, 0.5, 2}, true, ""},
		{"an adjacency dropped", "csr.npz", Options{TableOptions: TableOptions{DropWeights: true}}, []uint32{3, 0, 1}, nil, true,
			"weights of edges are dropped"},
		{"below 0, dropped", "below.npz", Options{TableOptions: TableOptions{DropWeights: true}}, []uint32{2, 3, 0, 1}, nil, true,
			"weights of edges are dropped"},
		{"coordinates", "saint", Options{}, []uint32{1, 3, 0}, []float32{1, 2, 3}, true, ""},
		{"several columns", "columns.npz", Options{}, []uint32{2, 3, 0, 1}, nil, true, "edge_features=2"},
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
			if !slices.Equal(d.In.Cols, c.cols) || !slices.Equal(d.Weights, c.weights) || d.Meta.Weighted != (c.weights != nil) ||
				d.Meta.Directed != c.directed {
				t.Errorf("edges from %v with weights %v, directed %t", d.In.Cols, d.Weights, d.Meta.Directed)
			}
			if !strings.Contains(log.String(), c.says) {
				t.Errorf("log lacks %q:\n%s", c.says, log.String())
			}
		})
	}
	for file, edge := range map[string]int{"bad.npz": 2, "below.npz": 3} {
		_, err := Import("npz", Options{Src: filepath.Join(src, file), Dst: filepath.Join(t.TempDir(), "out")})
		if want := fmt.Sprintf("the weight of edge %d is -1", edge); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

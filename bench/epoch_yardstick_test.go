package bench

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/config"
)

// PyTorch trains the same network: without dropout its losses are siafu's, on a
// directed graph with dense features and on an undirected one with sparse ones,
// in every variant. A variant that trains something else is a fault.
func TestEpochBesidePyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PyTorch several times")
	}
	for name, tc := range hosttest.Share(t, 4, map[string]struct {
		content graph.Content
		model   string
		want    []string
	}{
		"dense":             {tinyGraph(false), "gcn", []string{"best order", "ÂX once"}},
		"sparse":            {tinyGraph(true), "gcn", []string{"best order", "ÂX once", "sparse X"}},
		"relational dense":  {tinyRelated(false), "rgcn", []string{"CSR matrices", "embedding bags", "index_add"}},
		"relational sparse": {tinyRelated(true), "rgcn", []string{"CSR matrices", "embedding bags", "index_add"}},
	}) {
		t.Run(name, func(t *testing.T) {
			o := EpochOptions{Data: filepath.Join(t.TempDir(), "data"), Config: config.Defaults()}
			if _, err := graph.Write(o.Data, tc.content, false); err != nil {
				t.Fatal(err)
			}
			o.Config.Model, o.Config.InputDropout = tc.model, 0
			o.Config.Ranks, o.Config.Epochs, o.Config.Dropout, o.Config.Layers = 2, 8, 0, 3
			var out strings.Builder
			if err := epochInterleaved(context.Background(), o, repetitions{rounds: 1, rivalTime: time.Second}, &out); err != nil {
				t.Fatal(err)
			}
			if _, reason, ok := strings.Cut(out.String(), "left out: "); ok {
				t.Skip(reason)
			}
			for _, want := range append(tc.want, "8\n") {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the table lacks %q:\n%s", want, &out)
				}
			}
		})
	}
}

// tinyGraph has 40 vertices of 3 classes, directed unless its features are
// sparse.
func tinyGraph(sparse bool) graph.Content {
	const n, dim = 40, 6
	c := graph.Content{
		Name: "tiny", Vertices: n, Classes: 3, Symmetrise: sparse,
		Features: graph.Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)},
		Labels:   make([]int32, n), Split: make([]uint8, n),
	}
	x := &graph.SparseRows{Offsets: make([]int64, n+1)}
	var edges graph.EdgePairs
	for v := range uint32(n) {
		edges = append(edges, v, (v*v+1)%n, v, (7*v+3)%n)
		c.Labels[v], c.Split[v] = int32(v%3), uint8(1+v%3/2)
		for j := range uint32(dim) {
			c.Features.Dense[v*dim+j] = float32((v*5+j*3)%7) - 3
		}
		x.Cols, x.Vals = append(x.Cols, v*3%dim), append(x.Vals, float32(v%4+1))
		x.Offsets[v+1] = int64(v + 1)
	}
	if c.Edges = edges; sparse {
		c.Features.Dense, c.Features.Sparse = nil, x
	}
	return c
}

// tinyRelated has 40 vertices of two kinds, of which the first has labels, three relations, one of them
// without edges, and features in blocks. The second kind has an identity if they are sparse.
func tinyRelated(sparse bool) graph.Content {
	const papers, authors = 24, 16
	c := tinyGraph(sparse)
	c.Symmetrise = false
	c.Relations = &graph.Relations{
		Kinds: []graph.VertexKind{{Name: "paper", Vertices: papers, Features: 3},
			{Name: "author", Vertices: authors, FirstFeature: 3, Features: 3}},
		Relations: []graph.Relation{{Name: "by", To: 1, Inverse: -1}, {Name: "cites", Inverse: -1},
			{Name: "none", From: 1, To: 1, Inverse: -1}},
	}
	c.Relations.AddReverse(0)
	var edges relatedEdges
	for p := range uint32(papers) {
		a := papers + p*p%authors
		edges = append(edges, [3]uint32{p, a, 0}, [3]uint32{a, p, 3}, [3]uint32{p, (7*p + 3) % papers, 1})
	}
	x := &graph.SparseRows{Offsets: []int64{0}}
	for v := range c.Labels {
		first := uint32(0)
		if v >= papers {
			first, c.Labels[v], c.Split[v] = 3, -1, graph.SplitNone
		}
		if sparse && v >= papers {
			x.Cols, x.Vals = append(x.Cols, uint32(3+v-papers)), append(x.Vals, 1)
		} else {
			x.Cols, x.Vals = append(x.Cols, first+uint32(v)%3), append(x.Vals, float32(v%5)-2)
		}
		x.Offsets = append(x.Offsets, int64(len(x.Cols)))
		for j := range uint32(6) {
			if !sparse && j-first >= 3 {
				c.Features.Dense[v*6+int(j)] = 0
			}
		}
	}
	if c.Edges = edges; sparse {
		c.Features.Sparse, c.Features.Dim = x, 3+authors
		c.Relations.Kinds[1].Features = authors
	}
	return c
}

// relatedEdges are edges with relations.
type relatedEdges [][3]uint32

func (e relatedEdges) Each(yield func(src, dst uint32) error) error {
	return e.EachRelation(func(s, d uint32, _ uint16) error { return yield(s, d) })
}

func (e relatedEdges) EachRelation(yield func(src, dst uint32, relation uint16) error) error {
	for _, x := range e {
		if err := yield(x[0], x[1], uint16(x[2])); err != nil {
			return err
		}
	}
	return nil
}

// Settings unknown to PyTorch's side are refused, not compared.
func TestYardstickRefuses(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := graph.Write(data, tinyGraph(false), false); err != nil {
		t.Fatal(err)
	}
	for flag, set := range map[string]func(*config.Config){
		"--model=mlp":     func(c *config.Config) { c.Model = "mlp" },
		"--model=rgcn":    func(c *config.Config) { c.Model = "rgcn" }, // the graph is not relational
		"--model blocks":  func(c *config.Config) { c.Blocks = 1 },
		"--optimizer=sgd": func(c *config.Config) { c.Optimizer = "sgd" },
		"--init=w":        func(c *config.Config) { c.Init = "w" },
	} {
		t.Run(flag, func(t *testing.T) {
			o := EpochOptions{Data: data, Yardstick: true, Config: config.Defaults()}
			set(&o.Config)
			if err := o.Run(context.Background(), t.Output()); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), flag) {
				t.Errorf("%v, want a usage fault with %s", err, flag)
			}
		})
	}
}

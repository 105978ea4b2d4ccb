package ranks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"siafu/graph"
	"siafu/kernels/model"
)

// curves is kernels/testdata/gcn_curves.json: PyTorch's training runs of a GCN with a dense Â,
// recorded by record.py in the same folder.
type curves struct {
	Vertices, Classes int
	Edges             [][2]uint32
	Labels            []int32
	Split             []int
	Dense             struct {
		Dim    int
		Values []float32
	}
	Sparse struct {
		Dim     int
		Offsets []int64
		Cols    []uint32
		Vals    []float32
	}
	Runs []struct {
		Features  string
		Dims      []int
		Optimizer struct {
			Name                      string
			LR, Momentum, WeightDecay float64
		}
		Weights [][]float32
		Loss64  []float64
	}
}

func readCurves(t *testing.T) *curves {
	t.Helper()
	text, err := os.ReadFile("../kernels/testdata/gcn_curves.json")
	if err != nil {
		t.Fatal(err)
	}
	var c curves
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

func (c *curves) content(kind string) graph.Content {
	var pairs graph.EdgePairs
	for _, e := range c.Edges {
		pairs = append(pairs, e[0], e[1])
	}
	split := make([]uint8, c.Vertices)
	for v, s := range c.Split {
		if c.Labels[v] != graph.Unlabelled {
			split[v] = uint8(s)
		}
	}
	f := graph.Features{Rows: c.Vertices, Dim: c.Dense.Dim, Dense: c.Dense.Values}
	if kind == "sparse" {
		s := c.Sparse
		f = graph.Features{Rows: c.Vertices, Dim: s.Dim, Sparse: &graph.SparseRows{Offsets: s.Offsets, Cols: s.Cols, Vals: s.Vals}}
	}
	return graph.Content{
		Name: "recorded", Vertices: int64(c.Vertices), Edges: pairs, Symmetrise: true,
		Features: f, Labels: c.Labels, Classes: c.Classes, Split: split,
	}
}

// The loss of every epoch is PyTorch's in float64, from the same first weights. The tolerance
// allows float32: rounding errors of 6e-8 grow over 50 steps of an optimiser to about 1e-6.
// PyTorch's own float32 runs differ from its float64 runs by the same amount.
func TestLossesOfPyTorch(t *testing.T) {
	t.Parallel()
	c := readCurves(t)
	for i, r := range c.Runs {
		data := write(t, c.content(r.Features))
		spec := model.Spec{Kind: "gcn", Dims: r.Dims}
		flat := make([]float32, spec.NumWeights())
		for _, p := range spec.Params() {
			if !p.Bias {
				copy(p.Of(flat), r.Weights[p.Layer])
			}
		}
		for _, ranks := range []int{1, 4} {
			name := fmt.Sprintf("%d %s %v %s ranks=%d", i, r.Features, r.Dims, r.Optimizer.Name, ranks)
			t.Run(name, func(t *testing.T) {
				cfg := quick(t)
				cfg.Ranks, cfg.Layers, cfg.Hidden = ranks, len(r.Dims)-1, r.Dims[1]
				cfg.Epochs, cfg.Dropout, cfg.EvalEvery = len(r.Loss64), 0, 0
				cfg.Optimizer, cfg.LR, cfg.Momentum = r.Optimizer.Name, r.Optimizer.LR, r.Optimizer.Momentum
				cfg.WeightDecay, cfg.WeightDecayOn = r.Optimizer.WeightDecay, "all"
				cfg.Init = weightsFile(t, spec, flat)
				got := train(t, cfg, data).losses()
				sameLosses(t, name, got[:len(r.Loss64)], r.Loss64, 2e-5)
			})
		}
	}
}

// The losses of deep networks equal those of record_deep.py: NumPy in float64, with central
// differences as gradients. Float32 errors after eight steps of plain descent at a rate of 0.5
// are about 1e-6.
func TestLossesOfNumPy(t *testing.T) { sameAsRecorded(t, "deep_curves.json") }

// The losses of GraphSAGE with a perceptron before the maximum and with rows divided by their
// norms equal those of record_sage.py: PyTorch in float64, with the names of PyTorch
// Geometric's layers. Float32 errors after twenty steps of plain descent at a rate of 0.1 are
// about 1e-6.
func TestLossesOfSAGEInPyTorch(t *testing.T) { sameAsRecorded(t, "sage_curves.json") }

// sameAsRecorded trains the networks and settings of a file on the graph of gcn_curves.json.
func sameAsRecorded(t *testing.T, file string) {
	text, err := os.ReadFile("../kernels/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct {
		Model, Residual, Activation, Norm string
		Layers, Hops, Heads, OutputHeads  int
		Hidden, PoolHidden                int // hidden 0: 4
		Alpha, Theta, LR                  float64
		Weights                           map[string][]float32
		Loss64                            []float64
	}
	if err := json.Unmarshal(text, &runs); err != nil {
		t.Fatal(err)
	}
	c := readCurves(t)
	data := write(t, c.content("dense"))
	for i, r := range runs {
		for _, ranks := range []int{1, 4} {
			name := fmt.Sprintf("%d %s %s%s ranks=%d", i, r.Model, r.Residual, r.Norm, ranks)
			t.Run(name, func(t *testing.T) {
				cfg := quick(t)
				cfg.Model, cfg.Residual, cfg.Activation, cfg.Layers, cfg.Hops, cfg.Norm = r.Model, cmp.Or(r.Residual, cfg.Residual),
					cmp.Or(r.Activation, cfg.Activation), r.Layers, cmp.Or(r.Hops, cfg.Hops), cmp.Or(r.Norm, "off")
				cfg.Powers = max(r.Hops, 1)
				cfg.Alpha, cfg.Theta, cfg.Ranks, cfg.Epochs, cfg.Dropout, cfg.EvalEvery = cmp.Or(r.Alpha, cfg.Alpha),
					r.Theta, ranks, len(r.Loss64), 0, 0
				cfg.Optimizer, cfg.LR, cfg.Momentum, cfg.WeightDecay, cfg.InnerDecay = "sgd", r.LR, 0, 0, 0
				cfg.Hidden, cfg.PoolHidden = cmp.Or(r.Hidden, 4), r.PoolHidden
				cfg.Heads, cfg.OutputHeads = max(r.Heads, 1), max(r.OutputHeads, 1)
				spec := cfg.Network(c.Dense.Dim, c.Classes)
				flat := make([]float32, spec.NumWeights())
				for _, p := range spec.Params() {
					if p.Running {
						continue // of evaluations, which are not compared
					}
					if copy(p.Of(flat), r.Weights[p.Name]) != p.Len() {
						t.Fatalf("%d weights of %s", len(r.Weights[p.Name]), p.Name)
					}
				}
				cfg.Init = weightsFile(t, spec, flat)
				got := train(t, cfg, data).losses()
				sameLosses(t, name, got[:len(r.Loss64)], r.Loss64, 2e-5)
			})
		}
	}
}

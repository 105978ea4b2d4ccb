package ranks

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
	"siafu/ranks/predictions"
)

const (
	foreignClasses = 3
	foreignHidden  = 6
	foreignHeads   = 2
)

// foreignNetwork is a network of PyTorch Geometric's layers.
type foreignNetwork struct {
	name, model string
	set         func(*Config)
	// tensors makes the weights of layer l, of the given widths.
	tensors func(s *stateDict, g *foreignGraph, l, in, out int)
	// layer computes a layer before its activation, and act the activation; nil: ReLU.
	layer func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64
	act   func(h [][]float64) [][]float64
	// logits replaces layers by another network.
	logits func(s *stateDict, g *foreignGraph) [][]float64
	// differs reports whether siafu's formula gives other logits on the graph.
	differs func(g *foreignGraph) bool
}

func (k *foreignNetwork) compute(s *stateDict, g *foreignGraph) [][]float64 {
	if k.logits != nil {
		return k.logits(s, g)
	}
	if k.act == nil {
		k.act = relu
	}
	return k.layer(s, g, 1, k.act(k.layer(s, g, 0, g.x)))
}

func module(l int) string { return fmt.Sprintf("convs.%d", l) }

// twoLinears makes two Linear modules.
func twoLinears(s *stateDict, _ *foreignGraph, l, in, out int) { s.linear(module(l), in, out) }

func sageTensors(s *stateDict, _ *foreignGraph, l, in, out int) {
	s.linear(module(l)+".lin_l", in, out)
	s.add(module(l)+".lin_r.weight", out, in)
}

// sage returns a SAGEConv with an aggregation.
func sageConv(aggregate func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64) func(*stateDict, *foreignGraph,
	int, [][]float64) [][]float64 {
	return func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64 {
		return plus(s.apply(aggregate(s, g, l, h), module(l)+".lin_l"), s.times(h, module(l)+".lin_r"))
	}
}

// gin returns GINConv with a perceptron whose two Linear modules have the given names.
func ginConv(name, first, second string) *foreignNetwork {
	return &foreignNetwork{name: name, model: "gin",
		tensors: func(s *stateDict, _ *foreignGraph, l, in, out int) {
			s.linear(module(l)+first, in, out)
			s.linear(module(l)+second, out, out)
		},
		layer: func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64 {
			return s.apply(relu(s.apply(plus(gather(g.plain(), h), h), module(l)+first)), module(l)+second)
		},
		differs: func(g *foreignGraph) bool { return g.loops || g.weighted || g.repeated },
	}
}

// gatConv returns GATConv with a matrix of the given name.
func gatConv(name, matrix string) *foreignNetwork {
	return &foreignNetwork{name: name, model: "gat", act: elu,
		tensors: func(s *stateDict, _ *foreignGraph, l, in, out int) {
			width := headWidth(l, out)
			s.add(module(l)+matrix+".weight", foreignHeads*width, in)
			if matrix == ".lin_src" {
				s.list = append(s.list, s.list[len(s.list)-1])
				s.list[len(s.list)-1].Name = module(l) + ".lin_dst.weight"
			}
			s.add(module(l)+".att_src", 1, foreignHeads, width)
			s.add(module(l)+".att_dst", 1, foreignHeads, width)
			s.add(module(l)+".bias", out)
		},
		layer: func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64 {
			z, src, dst := s.times(h, module(l)+matrix), s.rows(module(l)+".att_src"), s.rows(module(l)+".att_dst")
			out := g.attention(z, l == 1, func(k int, e foreignEdge) (sum float64) {
				for i := range src[k] {
					sum += src[k][i]*z[e.src][k*len(src[k])+i] + dst[k][i]*z[e.dst][k*len(src[k])+i]
				}
				return leaky(sum)
			})
			return affine(out, s.rows(module(l) + ".bias")[0], false)
		},
		differs: func(g *foreignGraph) bool { return g.repeated },
	}
}

// headWidth returns the columns of a head: heads of the last layer are averaged.
func headWidth(l, out int) int {
	if l == 1 {
		return out
	}
	return out / foreignHeads
}

// gatv2Conv is GATv2Conv, with edge_dim=1 on weighted graphs.
var gatv2Conv = &foreignNetwork{name: "GATv2Conv", model: "gatv2", act: elu,
	tensors: func(s *stateDict, g *foreignGraph, l, in, out int) {
		columns := foreignHeads * headWidth(l, out)
		s.linear(module(l)+".lin_l", in, columns)
		s.linear(module(l)+".lin_r", in, columns)
		if g.weighted {
			s.add(module(l)+".lin_edge.weight", columns, 1)
		}
		s.add(module(l)+".att", 1, foreignHeads, headWidth(l, out))
		s.add(module(l)+".bias", out)
	},
	layer: func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64 {
		left, right, att := s.apply(h, module(l)+".lin_l"), s.apply(h, module(l)+".lin_r"), s.rows(module(l)+".att")
		edge := make([][]float64, len(left[0]))
		for i := range edge {
			edge[i] = []float64{0}
		}
		if g.weighted {
			edge = s.rows(module(l) + ".lin_edge.weight")
		}
		out := g.attention(left, l == 1, func(k int, e foreignEdge) (sum float64) {
			for i, a := range att[k] {
				c := k*len(att[k]) + i
				sum += a * leaky(left[e.src][c]+right[e.dst][c]+e.weight*edge[c][0])
			}
			return sum
		})
		return affine(out, s.rows(module(l) + ".bias")[0], false)
	},
	differs: func(g *foreignGraph) bool { return g.repeated },
}

const foreignHops = 3

// foreignNetworks are networks of two layers for each layer that siafu reads.
func foreignNetworks() []*foreignNetwork {
	ofNorm := func(g *foreignGraph) bool { return g.directed || g.weighted && g.loops || !g.weighted && g.repeated }
	ofLoops := func(g *foreignGraph) bool { return g.loops }
	return []*foreignNetwork{
		{name: "GCNConv", model: "gcn", differs: ofNorm,
			tensors: func(s *stateDict, _ *foreignGraph, l, in, out int) {
				s.add(module(l)+".lin.weight", out, in)
				s.add(module(l)+".bias", out)
			},
			layer: func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64 {
				return affine(gather(g.normalised(), s.times(h, module(l)+".lin")), s.rows(module(l) + ".bias")[0], false)
			}},
		{name: "SGConv", model: "sgc", differs: ofNorm,
			tensors: func(s *stateDict, g *foreignGraph, l, _, out int) {
				if l == 1 {
					s.linear("conv.lin", len(g.x[0]), out)
				}
			},
			logits: func(s *stateDict, g *foreignGraph) [][]float64 {
				return s.apply(gather(g.normalised(), gather(g.normalised(), g.x)), "conv.lin")
			}},
		{name: "APPNP", model: "appnp", differs: ofNorm, tensors: twoLinears,
			set: func(c *Config) { c.Hops, c.Alpha = foreignHops, 0.2 },
			logits: func(s *stateDict, g *foreignGraph) [][]float64 {
				h := s.apply(relu(s.apply(g.x, module(0))), module(1))
				z := h
				for range foreignHops {
					z = blend(0.8, gather(g.normalised(), z), 0.2, h)
				}
				return z
			}},
		{name: "GCN2Conv", model: "gcnii", differs: ofNorm,
			set: func(c *Config) { c.Alpha, c.Theta = 0.2, 0.7 },
			tensors: func(s *stateDict, _ *foreignGraph, l, in, out int) {
				s.linear(fmt.Sprintf("lins.%d", l), in, out)
				s.add(module(l)+".weight1", foreignHidden, foreignHidden)
			},
			logits: func(s *stateDict, g *foreignGraph) [][]float64 {
				first := relu(s.apply(g.x, "lins.0"))
				h := first
				for l := range 2 {
					beta := math.Log(0.7/float64(l+1) + 1)
					z := blend(0.8, gather(g.normalised(), h), 0.2, first)
					h = relu(blend(1-beta, z, beta, product(z, s.rows(module(l)+".weight1"))))
				}
				return s.apply(h, "lins.1")
			}},
		{name: "SAGEConv", model: "sage", tensors: sageTensors,
			differs: func(g *foreignGraph) bool { return g.loops || g.weighted || g.repeated },
			layer: sageConv(func(_ *stateDict, g *foreignGraph, _ int, h [][]float64) [][]float64 {
				return gather(g.mean(), h)
			})},
		{name: "SAGEConv of maxima", model: "sage-max", tensors: sageTensors, differs: ofLoops,
			layer: sageConv(func(_ *stateDict, g *foreignGraph, _ int, h [][]float64) [][]float64 { return g.maximum(h) })},
		{name: "SAGEConv with project", model: "sage-pool", differs: ofLoops,
			tensors: func(s *stateDict, g *foreignGraph, l, in, out int) {
				s.linear(module(l)+".lin", in, in)
				sageTensors(s, g, l, in, out)
			},
			layer: sageConv(func(s *stateDict, g *foreignGraph, l int, h [][]float64) [][]float64 {
				return g.maximum(relu(s.apply(h, module(l)+".lin")))
			})},
		ginConv("GINConv", ".nn.0", ".nn.2"),
		ginConv("GINConv of BasicGNN", ".nn.lins.0", ".nn.lins.1"),
		gatConv("GATConv", ".lin"),
		gatConv("GATConv with lin_src", ".lin_src"),
		gatv2Conv,
		{name: "Linear", model: "mlp", tensors: twoLinears, differs: func(*foreignGraph) bool { return false },
			layer: func(s *stateDict, _ *foreignGraph, l int, h [][]float64) [][]float64 { return s.apply(h, module(l)) }},
	}
}

// TestForeignFormulas: weights under the names of PyTorch Geometric's layers give the logits of its formulas, or
// are refused where siafu's formula differs. Graphs are undirected and directed, with weights, loops and
// repeated edges.
func TestForeignFormulas(t *testing.T) {
	t.Parallel()
	graphs, data := foreignGraphs(), map[*foreignGraph]string{}
	for _, g := range graphs {
		data[g] = g.dataset(t)
	}
	for _, k := range foreignNetworks() {
		runs := map[bool]string{} // by whether weights are features of edges
		for _, g := range graphs {
			weights := g.weighted && k.model == "gatv2"
			run, ok := runs[weights]
			if !ok {
				c := k.config(t)
				train(t, c, data[g])
				run, runs[weights] = c.Out, c.Out
			}
			t.Run(k.name+" "+g.name, func(t *testing.T) { k.check(t, g, run, data[g]) })
		}
	}
}

// config returns the training of the network that weights are given to.
func (k *foreignNetwork) config(t *testing.T) Config {
	c := quick(t)
	c.Model, c.Layers, c.Hidden = k.model, 2, foreignHidden
	c.Epochs, c.Dropout, c.Servers, c.Threads, c.Norm, c.Jumping = 1, 0, 0, 1, "off", "off"
	if model.KindOf(k.model).Attends {
		c.Hidden, c.Heads, c.OutputHeads = foreignHidden/foreignHeads, foreignHeads, foreignHeads
	}
	if k.set != nil {
		k.set(&c)
	}
	return c
}

// check compares the logits of random weights on a graph with the formula.
func (k *foreignNetwork) check(t *testing.T, g *foreignGraph, run, data string) {
	s := &stateDict{rng: rand.New(rand.NewPCG(1, 2))}
	k.tensors(s, g, 0, len(g.x[0]), foreignHidden)
	k.tensors(s, g, 1, foreignHidden, foreignClasses)
	dir := t.TempDir()
	p := PredictConfig{Logits: true, Threads: 1, Weights: filepath.Join(dir, "state.safetensors"), Out: filepath.Join(dir, "p"),
		StallWarn: "1m", StallAbort: "1m"}
	if err := safetensors.Write(p.Weights, s.list, nil); err != nil {
		t.Fatal(err)
	}
	err := Predict(context.Background(), p, run, data, IO{Out: io.Discard, Err: os.Stderr})
	if k.differs(g) {
		c := k.config(t)
		c.Init = p.Weights
		for _, err := range []error{err, Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})} {
			if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "the logits differ") {
				t.Errorf("siafu has another formula, but: %v", err)
			}
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := readFloats(t, filepath.Join(p.Out, predictions.LogitFile), foreignClasses)
	for v, row := range k.compute(s, g) {
		for i, want := range row {
			if x := got[v*foreignClasses+i]; !(math.Abs(float64(x)-want) <= 1e-5*max(1, math.Abs(want))) { // float32
				t.Fatalf("logit %d of vertex %d is %v, want %v", i, v, x, want)
			}
		}
	}
}

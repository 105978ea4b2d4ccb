package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

const vertices = 12

// rig is a network on a small directed graph that one rank owns, with the
// adjacency matrix written out.
type rig struct {
	*model.Network
	a [vertices][vertices]float32 // Â[v,u] of the edge u→v
	x []float32
	p model.Pass
	c []float32 // the loss is Σ c·logits
}

func newRig(t *testing.T, s model.Spec, order string) *rig {
	rng := rand.New(rand.NewPCG(s.Seed, 9))
	in, out, ids := make([]uint32, vertices), make([]uint32, vertices), make([]uint32, vertices)
	b := &rig{x: normal(rng, vertices*s.Dims[0]), c: normal(rng, vertices*s.Dims[s.Layers()]), p: model.Pass{Epoch: 3, Train: true}}
	for v := range ids {
		ids[v] = uint32(v)
		for u := range vertices - 3 { // the last vertices have no out-edges
			if u != v && rng.IntN(3) == 0 {
				b.a[v][u] = 1
				in[v]++
				out[u]++
			}
		}
	}
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	t.Cleanup(func() { team.Close(); arena.Free() })
	s.Choose(model.Load{}, model.Choices{Order: order, CacheInput: "off"})
	features := graph.Features{Rows: vertices, Dim: s.Dims[0], Dense: b.x}
	b.Network = model.New(s, model.Input{Features: features, IDs: ids, LocalIDs: ids}, team, arena)
	s.Initialize(b.Weights, "xavier", s.Seed)
	for i := range b.Weights {
		b.Weights[i] += 0.02 * float32(i%7-3) // biases too should matter
	}
	if s.Propagates() {
		b.scale(s.Coefficients(in, out, vertices, arena))
	}
	return b
}

func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func (b *rig) scale(c model.Coefficients) {
	at := func(x []float32, i int) float32 {
		if x == nil {
			return 1
		}
		return x[i]
	}
	for v := range b.a {
		if c.SelfLoops {
			b.a[v][v] = 1
		}
		for u := range b.a[v] {
			b.a[v][u] *= at(c.Row, v) * at(c.Col, u)
		}
	}
}

// gather is Â rows, or Âᵀ rows on the way back.
func (b *rig) gather(rows []float32, width int, back bool) []float32 {
	dst := make([]float32, vertices*width)
	for v := range b.a {
		for u, a := range b.a[v] {
			to, from := v, u
			if back {
				to, from = u, v
			}
			for j := range width {
				dst[to*width+j] += a * rows[from*width+j]
			}
		}
	}
	return dst
}

func (b *rig) forward() []float32 {
	var h []float32
	for _, l := range b.Layers {
		rows := l.Emit(h, b.p)
		if w := l.GatherWidth(); w > 0 {
			rows = b.gather(rows, w, false)
		}
		h = l.Apply(rows, b.p)
	}
	return h
}

func (b *rig) loss() float64 {
	sum := 0.0
	for i, y := range b.forward() {
		sum += float64(b.c[i]) * float64(y)
	}
	return sum
}

// backward leaves the gradient of loss in Grad.
func (b *rig) backward() {
	b.forward()
	grad := append([]float32(nil), b.c...)
	for l := len(b.Layers) - 1; l >= 0; l-- {
		layer := b.Layers[l]
		grad = layer.ApplyGrad(grad, b.p)
		if layer.GathersBackward() {
			grad = b.gather(grad, layer.GatherWidth(), true)
		}
		grad = layer.EmitGrad(grad, b.p)
	}
}

// The gradients of a network are the central differences of its own loss, with
// dropout and in both orders. ReLU networks are piecewise linear in a weight,
// so a wide step is exact where it crosses no kink.
func TestGradient(t *testing.T) {
	for _, spec := range []model.Spec{{Kind: "gcn"}, {Kind: "sage"}, {Kind: "gin"}, {Kind: "mlp"}, {Custom: &residual}} {
		for _, order := range []string{"gather-first", "apply-first"} {
			name := spec.Kind
			if spec.Custom != nil {
				name = spec.Custom.Name
			}
			t.Run(fmt.Sprint(name, " ", order), func(t *testing.T) {
				spec.Dims, spec.Seed, spec.Dropout, spec.InputDropout = []int{5, 4, 4, 3}, 1, 0.3, 0.2
				checkGradient(t, newRig(t, spec, order))
			})
		}
	}
}

func checkGradient(t *testing.T, b *rig) {
	const step = 1.0 / 512
	b.backward()
	got := append([]float32(nil), b.Grad...)
	want, largest := make([]float64, len(got)), 0.0
	for i, w := range b.Weights {
		b.Weights[i] = w + step
		up := b.loss()
		b.Weights[i] = w - step
		want[i] = (up - b.loss()) / (2 * step)
		b.Weights[i] = w
		largest = max(largest, math.Abs(want[i]))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= 1e-4*largest) {
			t.Errorf("weight %d: gradient %.6g, want %.6g (largest gradient %.2g)", i, got[i], want[i], largest)
		}
	}
	if largest < 0.1 {
		t.Errorf("the largest gradient is %g: the test shows nothing", largest)
	}
}

// The logits are those of the formula, written down a second time.
func TestResidualLogits(t *testing.T) {
	b := newRig(t, model.Spec{Custom: &residual, Dims: []int{5, 4, 4, 3}, Seed: 2}, "auto")
	h, params := b.x, b.Spec.Params()
	for l := range b.Layers {
		w, bias := params[2*l], params[2*l+1].Of(b.Weights)
		sum := b.gather(b.product(h, w), w.Cols, false)
		for i := range sum {
			sum[i] += bias[i%w.Cols]
			if l == 1 {
				sum[i] += h[i]
			}
			if l < 2 {
				sum[i] = max(sum[i], 0)
			}
		}
		h = sum
	}
	for i, got := range b.forward() {
		if d := math.Abs(float64(got - h[i])); !(d <= 1e-5) {
			t.Errorf("logit %d is %g, want %g", i, got, h[i])
		}
	}
}

func (b *rig) product(h []float32, w model.Param) []float32 {
	dst := make([]float32, vertices*w.Cols)
	for i := range dst {
		for k := range w.Rows {
			dst[i] += h[i/w.Cols*w.Rows+k] * w.Of(b.Weights)[k*w.Cols+i%w.Cols]
		}
	}
	return dst
}

// The example of the documentation is the network that is tested here.
func TestDocumentedNetwork(t *testing.T) {
	text, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("residual_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```go\n"+string(code)+"```\n") {
		t.Error("docs/models.md does not hold residual_test.go as it is")
	}
}

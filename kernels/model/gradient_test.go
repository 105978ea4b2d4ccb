package model_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

const vertices = 12

// rig is a network on a small directed graph on one rank, with a dense adjacency matrix.
type rig struct {
	*model.Frame
	store   *model.Store
	ops     kernels.Ops
	a       [vertices][vertices]float32 // Â[v,u] of the edge u→v
	x       []float32
	p       model.Pass
	weights []float32
	state   map[int][]float64 // of layers with sums over all vertices
	c       []float32         // the loss is Σ c·logits
}

func newRig(t *testing.T, s model.Spec, order string, memory model.Memory) *rig {
	rng := rand.New(rand.NewPCG(s.Seed, 9))
	inDegree, outDegree, ids := make([]uint32, vertices), make([]uint32, vertices), make([]uint32, vertices)
	b := &rig{x: normal(rng, vertices*s.Dims[0]), c: normal(rng, vertices*s.Dims[s.Layers()]), p: model.Pass{Epoch: 3, Train: true}}
	for v := range ids {
		ids[v] = uint32(v)
		for u := range vertices - 3 { // the last vertices have no out-edges
			if u != v && rng.IntN(3) == 0 {
				b.a[v][u] = 1
				inDegree[v]++
				outDegree[u]++
			}
		}
	}
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	t.Cleanup(func() { team.Close(); arena.Free() })
	s.Choose(model.Load{}, model.Choices{Order: order, CacheInput: "off"})
	features := graph.Features{Rows: vertices, Dim: s.Dims[0], Dense: b.x}
	in := model.Place(team, arena, features, ids, ids)
	b.ops, b.store = team, model.NewStore(model.New(s, false), in, memory, team, arena)
	b.Frame = b.store.Frame(0, vertices, team, kernels.Mat{})
	b.weights = b.Weights.Host()
	s.Initialize(b.weights, "xavier", s.Seed)
	for i := range b.weights {
		b.weights[i] += 0.02 * float32(i%7-3) // biases must have an effect too
	}
	if s.Propagates() {
		b.scale(s.Coefficients(model.Degrees{In: inDegree, Out: outDegree}, vertices, arena))
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

// gather returns Â rows, or Âᵀ rows in the backward pass.
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
	for l := range b.Network.Layers {
		b.run(l, model.Emit)
		if b.Network.Gathers(l) {
			b.gathered(b.store.Forward(l, model.Gathered), b.store.Emitted(l, b.p), false)
		}
		b.total(l, false)
		b.run(l, model.Apply)
	}
	return b.store.Forward(len(b.Network.Layers)-1, model.Output).Host()
}

// run runs a task of one stage.
func (b *rig) run(l int, s model.Stage) {
	for _, d := range b.store.Do(l, s) {
		b.Run(d, b.p, b.ops)
	}
}

// gathered calls gather for matrices.
func (b *rig) gathered(dst, rows kernels.Mat, back bool) {
	copy(dst.Host(), b.gather(rows.Host(), rows.Cols, back))
}

func (b *rig) loss() float64 {
	sum := 0.0
	for i, y := range b.forward() {
		sum += float64(b.c[i]) * float64(y)
	}
	return sum
}

// backward computes the gradient of the loss in Grad.
func (b *rig) backward() {
	b.forward()
	last := len(b.Network.Layers) - 1
	copy(b.store.Backward(last, model.OutputGrad).Host(), b.c)
	for l := last; l >= 0; l-- {
		b.run(l, model.ApplyBackward)
		if b.Network.GathersBackward(l) {
			b.gathered(b.store.Backward(l, model.EmittedGrad), b.store.Backward(l, model.GatheredGrad), true)
		}
		b.total(l, true)
		b.run(l, model.EmitBackward)
	}
}

// total settles the sums over all vertices.
func (b *rig) total(l int, back bool) {
	s, ok := b.Network.Layers[l].(model.Summing)
	if !ok {
		return
	}
	if b.state == nil {
		b.state = map[int][]float64{}
	}
	if _, n := b.Network.Sums(l); b.state[l] == nil {
		b.state[l] = make([]float64, n)
	}
	sums := append(slices.Clone(b.Sums(l).Host()), vertices)
	s.Settle(back, sums, sums, b.weights, b.Grad.Host(), b.state[l])
	for i := range b.Settled(l).Host() {
		b.Settled(l).Host()[i] = float32(b.state[l][i])
	}
}

// The gradients of a network are the central differences of its own loss, with dropout and in
// both orders. ReLU networks are piecewise linear in a weight, so a wide step is exact where
// it crosses no kink; unit rows have the largest curvature near zero, and seed 14 has none
// there.
func TestGradient(t *testing.T) {
	add, initial := model.Design{Residual: "add"}, model.Design{Residual: "initial", Alpha: 0.3}
	for _, spec := range append(plainSpecs(), []model.Spec{
		{Custom: &residual},
		{Kind: "gcn", Design: add, Seed: 4}, {Kind: "sage", Design: initial, Seed: 4}, {Kind: "gin", Design: add},
		{Kind: "mlp", Design: initial},
		{Kind: "gcn", Design: model.Design{Activation: "gelu"}, Seed: 3}, {Kind: "sage",
			Design: model.Design{Activation: "elu", Residual: "add"}}, {Kind: "gin", Design: model.Design{Activation: "leaky"}, Seed: 3},
		{Kind: "gcn", Design: model.Design{Activation: "prelu"}, Seed: 4},
		{Kind: "gcn", Design: model.Design{Norm: "layer", Activation: "gelu"}, Seed: 3},
		{Kind: "gcn", Design: model.Design{Jumping: "cat", Residual: "add", Activation: "gelu"}, Seed: 5},
		{Kind: "sage", Design: model.Design{Jumping: "max", Activation: "gelu"}, Seed: 5},
		{Kind: "sage-pool", Design: model.Design{PoolHidden: 3}, Seed: 9}, {Kind: "sage", Design: model.Design{Norm: "l2",
			Activation: "gelu"}, Seed: 14}, {Kind: "sage-pool", Design: model.Design{Norm: "l2", Activation: "gelu", Residual: "add"},
			Seed: 14}, {Kind: "sage", Design: model.Design{Norm: "ball", Activation: "gelu"}, Seed: 14},
		{Kind: "sage", Design: model.Design{Norm: "batch", Activation: "gelu"}},
		{Kind: "gin", Design: model.Design{Norm: "pair", Activation: "gelu", Residual: "add"}, Seed: 4},
	}...) {
		for _, order := range []string{"gather-first", "apply-first"} {
			name := spec.Kind
			if spec.Custom != nil {
				name = spec.Custom.Name
			}
			t.Run(strings.TrimSpace(fmt.Sprint(name, " ", spec.Design.Norm, spec.Design.Jumping, " ", spec.Design.Activation, " ",
				spec.Design.Residual, " ", order)), func(t *testing.T) {
				spec.Dims, spec.Dropout, spec.InputDropout = []int{5, 4, 4, 3}, 0.3, 0.2
				if spec.Composed() {
					spec.Dims = spec.Widths(4, 5, 4, 3)
				}
				b, err := gradientRig(t, spec, order)
				if err != nil {
					t.Error(err)
				}
				for _, m := range []model.Memory{model.Recompute, model.Separate} {
					other := newRig(t, b.Network.Spec, order, m)
					other.backward()
					b.backward()
					if !slices.Equal(other.Grad.Host(), b.Grad.Host()) {
						t.Errorf("memory of kind %d makes another gradient", m)
					}
				}
			})
		}
	}
}

// plainSpecs returns a network of each kind without attention and relations, which the rig lacks.
func plainSpecs() (list []model.Spec) {
	seeds := map[string]uint64{ // whose steps cross no kink
		"gcn": 1, "sage": 1, "sage-max": 1, "sage-pool": 1, "gin": 1, "mlp": 1, "gcnii": 1, "appnp": 4, "sgc": 1, "sign": 22,
	}
	for _, name := range model.Kinds() {
		kind := model.KindOf(name)
		s := model.Spec{Kind: name, Design: model.Design{Alpha: 0.3, Theta: 0.5}, Seed: seeds[name]}
		if kind.Takes(model.OptionHops) || kind.Takes(model.OptionPowers) {
			s.Design.Hops = 2
		}
		if !kind.Attends && !kind.Relational {
			list = append(list, s)
		}
	}
	return list
}

// gradientRig returns a rig of the spec after its backward pass, and an error if the gradient is
// wrong. A spec without a seed has several tries, since a step may cross a kink.
func gradientRig(t *testing.T, s model.Spec, order string) (b *rig, err error) {
	first, last := s.Seed, s.Seed
	if s.Seed == 0 {
		first, last = 1, 8
	}
	for s.Seed = first; s.Seed <= last; s.Seed++ {
		b = newRig(t, s, order, model.InStep)
		if err = checkGradient(b); err == nil {
			break
		}
	}
	return b, err
}

// checkGradient returns an error that lists the weights with a wrong gradient.
func checkGradient(b *rig) (wrong error) {
	const step = 1.0 / 512
	b.backward()
	got := slices.Clone(b.Grad.Host())
	want, largest := make([]float64, len(got)), 0.0
	for i, w := range b.weights {
		b.weights[i] = w + step
		up := b.loss()
		b.weights[i] = w - step
		want[i] = (up - b.loss()) / (2 * step)
		b.weights[i] = w
		largest = max(largest, math.Abs(want[i]))
	}
	for i := range want {
		if running(b, i) {
			continue
		}
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= 1e-4*largest) {
			wrong = errors.Join(wrong,
				fmt.Errorf("weight %d: gradient %.6g, want %.6g (largest gradient %.2g)", i, got[i], want[i], largest))
		}
	}
	if largest < 0.1 {
		wrong = errors.Join(wrong, fmt.Errorf("the largest gradient is %g: the test shows nothing", largest))
	}
	return wrong
}

// running reports whether a weight is a running mean.
func running(b *rig, i int) bool {
	return slices.ContainsFunc(b.Network.Spec.Params(),
		func(p model.Param) bool { return p.Running && i >= p.Offset && i < p.Offset+p.Len() })
}

// The logits equal a second implementation of the formula.
func TestResidualLogits(t *testing.T) {
	b := newRig(t, model.Spec{Custom: &residual, Dims: []int{5, 4, 4, 3}, Seed: 2}, "auto", model.InStep)
	h, params := b.x, b.Network.Spec.Params()
	for l := range b.Network.Layers {
		w, bias := params[2*l], params[2*l+1].Of(b.weights)
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
			dst[i] += h[i/w.Cols*w.Rows+k] * w.Of(b.weights)[k*w.Cols+i%w.Cols]
		}
	}
	return dst
}

// The documentation's example is the network tested here.
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

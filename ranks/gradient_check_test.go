package ranks

import (
	"math"
	"math/rand/v2"
	"testing"

	"siafu/graph"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
)

// gradientsSampled is the number of weights of a matrix whose gradients are tested.
const gradientsSampled = 6

func checkGradient(t *testing.T, c Config, content graph.Content, data string) {
	spec := c.Network(content.Features.Dim, content.Classes)
	if content.Relations != nil && model.KindOf(spec.Kind).Relational {
		spec.Design.Relations = len(content.Relations.Relations)
	}
	_, weighted := content.Edges.(graph.WeightedSource)
	if f, ok := content.Edges.(graph.FeaturedSource); ok && spec.Dynamic() {
		spec.Design.EdgeDim = f.EdgeDim()
	} else {
		spec.Design.EdgeFeatures = weighted && spec.Dynamic()
	}
	before := make([]float32, spec.NumWeights())
	spec.Initialize(before, c.Initializer, c.Seed)
	for i := range before {
		before[i] += 0.01 * float32(i%7-3) // biases too should matter
	}
	c.Init = weightsFile(t, spec, before)
	after := train(t, c, data).weights(t, spec)

	ref := newReference(content, spec)
	w := make([]float64, len(before))
	for i, x := range before {
		w[i] = float64(x)
	}
	largest := 0.0
	ref.loss(w) // which sets the constants of the gradient
	// A few random weights of each matrix show a wrong formula of its gradient.
	want, sampled := make([]float64, len(w)), make([]bool, len(w))
	rng := rand.New(rand.NewPCG(hosttest.CommitSeed(t, hosttest.CasesVariable), c.Seed))
	for _, p := range spec.Params() {
		for k, i := range rng.Perm(p.Len()) {
			sampled[p.Offset+i] = k < gradientsSampled || hosttest.Big()
		}
	}
	for i := range w {
		if !sampled[i] {
			continue
		}
		const h = 1e-6
		x := w[i]
		w[i] = x + h
		up := ref.loss(w)
		w[i] = x - h
		want[i] = (up - ref.loss(w)) / (2 * h)
		w[i] = x
	}
	gradient := func(i int) float64 { return (float64(before[i]) - float64(after[i])) / c.LR }
	for i := range want {
		if _, ok := ref.running[i]; !ok {
			largest = max(largest, math.Abs(gradient(i)))
		}
	}
	for i := range want {
		if stat, ok := ref.running[i]; ok {
			if want := 0.9*w[i] + 0.1*stat; math.Abs(float64(after[i])-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("running weight %d is %g, want %g", i, after[i], want)
			}
			continue
		}
		if !sampled[i] {
			continue
		}
		got := gradient(i)
		if d := math.Abs(got - want[i]); !(d <= 2e-6*largest+1e-8) {
			t.Errorf("weight %d: gradient %.9g, want %.9g (difference %.2g, largest gradient %.2g)", i, got, want[i], d, largest)
		}
	}
	if largest < 1e-3 {
		t.Errorf("the largest gradient is %g: the test shows nothing", largest)
	}
}

package ranks

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
)

const basketClasses = 6

// baskets returns a graph like one of products bought together: four of five
// neighbours of the same class, and binary features of which a third is set in
// every row.
func baskets() graph.Content {
	const n, dim = 300, 900
	rng := rand.New(rand.NewPCG(3, 1))
	c := graph.Content{
		Name: "baskets", Vertices: n, Symmetrise: true, Classes: basketClasses,
		Features: graph.Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)},
		Labels:   make([]int32, n), Split: make([]uint8, n),
	}
	var pairs graph.EdgePairs
	for v := range n {
		class := v % basketClasses
		c.Labels[v], c.Split[v] = int32(class), uint8(1+v/basketClasses%3)
		for range 4 {
			u := rng.IntN(n)
			if rng.IntN(5) > 0 {
				u += class - u%basketClasses
			}
			pairs = append(pairs, uint32(v), uint32(u))
		}
		for j := range dim {
			share := 0.35
			if j%basketClasses == class {
				share = 0.45
			}
			if rng.Float64() < share {
				c.Features.Dense[v*dim+j] = 1
			}
		}
	}
	c.Edges = pairs
	return c
}

// The first step of Adam moves all weights of a hidden unit by the learning rate, and for
// nonnegative features mostly in one direction. With random logits, units are pushed below
// zero for every vertex, and GraphSAGE learns nothing. With its default initialiser every
// network learns.
func TestNetworksLearnFromBinaryFeatures(t *testing.T) {
	t.Parallel()
	data := write(t, baskets())
	guessing := math.Log(basketClasses)
	for _, tc := range []struct {
		model, initializer string
		lr                 float64
		stuck              bool
	}{
		{"sage", "xavier", 0.01, true},
		{"sage", "auto", 0.01, false},
		{"gcn", "auto", 0.01, false},
		{"gat", "auto", 0.01, false},
		{"mlp", "auto", 0.01, false},
		{"gin", "auto", 0.001, false}, // sums are longer than means
	} {
		t.Run(tc.model+" "+tc.initializer, func(t *testing.T) {
			c := quick(t)
			c.Model, c.Initializer, c.LR, c.Epochs, c.EvalEvery, c.InputDropout = tc.model, tc.initializer, tc.lr, 40, 0, 0
			loss := train(t, c, data).Summary.FinalLoss
			if stuck := loss > 0.98*guessing; stuck != tc.stuck || !stuck && loss > 0.6*guessing {
				t.Errorf("loss %.3f, that of guessing being %.3f", loss, guessing)
			}
		})
	}
}

// First weights are the same on any number of ranks, with and without servers.
func TestFirstWeightsFollowNoRank(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for k, kind := range model.Kinds() {
		for i, name := range model.Initializers() {
			if !hosttest.Sampled(3, k, i) {
				continue
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				c := quick(t)
				c.Model, c.Initializer, c.Epochs = kind, name, 0
				spec := c.Network(12, 4)
				want := make([]float32, spec.NumWeights())
				spec.Initialize(want, name, c.Seed)
				for _, size := range []int{1, 4} {
					c.Ranks = size
					got := train(t, c, data).weights(t, spec)
					for i := range want {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("%d ranks: weight %d is %v, want %v", size, i, got[i], want[i])
						}
					}
				}
			})
		}
	}
}

// A run folder names the resolved initialiser and not "auto", so that the run can be repeated
// after a change of the default.
func TestInitializerIsResolved(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, kind := range model.Kinds() {
		t.Run(kind, func(t *testing.T) {
			c := quick(t)
			c.Model, c.Epochs = kind, 2
			asked := train(t, c, data)
			want := model.Spec{Kind: kind}.Initializer(model.Auto)
			if got := asked.Summary.Initializer; got != want {
				t.Errorf("summary.json has %q, want %q", got, want)
			}
			for file, text := range map[string]string{
				"config.toml": fmt.Sprintf("initializer = %q", want),
				"log.txt":     " initializer=" + want + " ",
			} {
				if b, err := os.ReadFile(filepath.Join(c.Out, file)); err != nil || !strings.Contains(string(b), text) {
					t.Errorf("%s lacks %s: %v\n%s", file, text, err, b)
				}
			}
			c.Initializer = want
			if !bytes.Equal(train(t, c, data).model, asked.model) {
				t.Error("another model by its name")
			}
		})
	}
}

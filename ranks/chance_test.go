package ranks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"siafu/graph"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
)

// chance returns the range that the accuracy on n held-out vertices leaves with probability
// alpha, for random labels among classes classes.
//
// Independent random labels agree with any prediction like n throws of a die: the hits are
// binomial, with no assumption about the network. A tail of alpha/2 is cut off on each side.
func chance(n, classes int, alpha float64) (lo, hi float64) {
	b := distuv.Binomial{N: float64(n), P: 1 / float64(classes)}
	first, last := 0, n
	for b.CDF(float64(first)) < alpha/2 {
		first++
	}
	for 1-b.CDF(float64(last-1)) < alpha/2 {
		last--
	}
	return float64(first) / float64(n), float64(last) / float64(n)
}

// wideFeatures returns enough random numbers per vertex that networks memorise training
// labels, and any leaked labels. They are small, because GIN sums them over neighbours.
func wideFeatures(vertices int) graph.Features {
	const dim = 64
	rng := rand.New(rand.NewPCG(8, 8))
	f := graph.Features{Rows: vertices, Dim: dim, Dense: make([]float32, vertices*dim)}
	for i := range f.Dense {
		f.Dense[i] = float32(rng.NormFloat64() / 10)
	}
	return f
}

// Labels that are independent of features and edges cannot be learned: held-out accuracy is
// chance. A better one means that held-out labels leak into training. One in a million data
// seeds fails without a leak. Training accuracy must be far above chance.
func TestRandomLabelsGiveChance(t *testing.T) {
	t.Parallel()
	const vertices, classes, splits, runs = 1500, 5, 2, 30
	content := randomContent(vertices, classes)
	content.Features = wideFeatures(vertices)
	data := write(t, content)
	partitionBy(t, data, "hash", 3)
	lo, hi := chance(vertices/3, classes, 1e-6/(splits*runs))
	for i, kind := range hosttest.ShareOf(t, 4, model.Kinds()) {
		if kind == "sgc" {
			continue // one matrix between means of neighbours and labels memorises too little
		}
		for m, mode := range []string{"pipe", "nopipe", "async"} {
			for r, ranks := range []int{1, 3} {
				if !hosttest.Sampled(3, i, m, r) || mode == "async" && model.KindOf(kind).Relational {
					continue // each kind runs in two modes, and with each number of ranks
				}
				t.Run(fmt.Sprintf("%s/%s/ranks=%d", kind, mode, ranks), func(t *testing.T) {
					c := quick(t)
					c.Model, c.Mode, c.Ranks, c.Servers = kind, mode, ranks, 0
					c.Intervals = 2 // of async
					c.Epochs, c.EvalEvery, c.Dropout, c.Hidden, c.WeightDecay = 100, 0, 0, 32, 0
					c.Initializer = "xavier" // memorises in these epochs, whatever the order of messages
					s := train(t, c, data).Summary
					for split, acc := range map[string]float64{"validation": s.FinalValAcc, "test": s.FinalTestAcc} {
						if acc < lo || acc > hi {
							t.Errorf("%s accuracy %.3f, where chance is from %.3f to %.3f", split, acc, lo, hi)
						}
					}
					if s.FinalTrainAcc < hi+0.2 {
						t.Errorf("training accuracy %.3f: what was learned is too little to show if it leaked", s.FinalTrainAcc)
					}
				})
			}
		}
	}
}

// Every kind of network trains with any number of layers: the loss is always finite, and
// falls.
func TestOneToManyLayers(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	seed := hosttest.Turn(t, 3)
	for k, kind := range model.Kinds() {
		for l, layers := range []int{1, 2, 5} {
			if !hosttest.Sampled(3, k, l, seed) {
				continue
			}
			if kind == "sgc" && layers > 2 {
				continue // steps and not layers; after them all rows of this graph are equal
			}
			if layers < model.KindOf(kind).MinLayers {
				continue // it is refused
			}
			t.Run(fmt.Sprintf("%s/layers=%d", kind, layers), func(t *testing.T) {
				c := quick(t)
				c.Model, c.Layers, c.Ranks, c.Epochs, c.EvalEvery, c.Dropout = kind, layers, 4, 60, 0, 0
				losses := train(t, c, data).losses()
				for i, loss := range losses {
					if math.IsNaN(loss) || math.IsInf(loss, 0) {
						t.Fatalf("epoch %d has loss %g", i+1, loss)
					}
				}
				if first, last := losses[0], losses[len(losses)-1]; last > 0.9*first {
					t.Errorf("the loss goes from %g to %g", first, last)
				}
			})
		}
	}
}

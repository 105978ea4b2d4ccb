package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"siafu/graph"
	"siafu/kernels/model"
)

// Choice is a setting that a run has selected for its graph in place of a default.
type Choice struct {
	Flag  string `json:"flag"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// What settings for a graph are told apart by. All were measured (docs/recipes.md).
const (
	manyTrain  = 2000       // training vertices from which on a network may be wide
	wide       = 64         // columns of hidden layers, then
	manyEdges  = 10_000_000 // from which on every epoch's evaluation is too many
	someEpochs = 5          // between two evaluations, then

	manyColumns = 256 // of features from which on the perceptron before maxima is narrower (sage-pool)

	fullRow = 10 // non-zeros of a row below which it can spare none

	fewPerClass = 50   // training vertices of a class up to which a penalty is worth its price
	tinyFew     = 0.15 // norms of rows below which features are too small, with so few
	tinyMany    = 0.5  // and with more
	well        = 4    // the norm that is trained as, then: that of a few words
	lopsided    = 0.75 // share of the largest class from which on accuracy tells little
	huge        = 100  // norm of a sum over neighbours above which nothing is learnt (gin)
	steady      = 2    // norm of such a sum that is
)

// Suit replaces the defaults of flags that were not given by settings for the graph, and
// returns these with their reasons. It changes nothing with --defaults fixed, with a
// recipe, or if meta.json does not give the size of features, as for generated graphs.
func (c *Config) Suit(m *graph.Meta, given func(flag string) bool) []Choice {
	c.Chosen = nil
	if m.Task == graph.Links && c.Defaults != "fixed" && c.Recipe == "" {
		return c.suitLinks(given)
	}
	if c.Defaults == "fixed" || c.Recipe != "" || m.FeatureNorm == 0 || m.Train == 0 {
		return nil
	}
	take := func(flag string, value any, why string, args ...any) {
		c.Chosen = append(c.Chosen, Choice{flag, fmt.Sprint(value), fmt.Sprintf(why, args...)})
	}
	if !given("hidden") && !given("heads") && m.Train >= manyTrain && (model.Spec{Kind: c.Model}).HasHidden(c.Layers) {
		c.Hidden = wide
		take("hidden", c.Hidden, "%d training vertices", m.Train)
	}
	if !given("pool-hidden") && c.kind().Takes(model.OptionPoolHidden) && m.FeatureDim > manyColumns {
		c.PoolHidden = wide
		take("pool-hidden", c.PoolHidden, "features of %d columns; a perceptron of this width has its square in weights", m.FeatureDim)
	}
	if row := float64(m.FeatureNNZ) / float64(m.Vertices); !given("input-dropout") && row < fullRow && c.InputDropout < 0 && c.Dropout > 0 {
		c.InputDropout = 0
		take("input-dropout", 0, "rows of features have %.1f non-zeros", row)
	}
	if d := c.kind().Recommended; d.Norm != "" && !few(m) && !given("norm") && !given("jumping") && c.allows(d) {
		if d.Jumping != "" {
			c.Jumping = d.Jumping
			take("jumping", c.Jumping, "%s's last perceptron is as narrow as %d classes", c.Model, m.Classes)
		}
		c.Norm = d.Norm
		take("norm", c.Norm, "sums or maxima of %.0f neighbours", float64(m.Edges)/float64(m.Vertices))
	}
	if k := c.inputScale(m); !given("input-scale") && k != 1 {
		c.InputScale = k
		take("input-scale", k, "rows of features have norm %.2g, and %.0f neighbours", m.FeatureNorm, float64(m.Edges)/float64(m.Vertices))
	}
	if share := largestShare(m); share >= lopsided && (c.Task == "" || c.Task == graph.MultiClass) {
		if !given("monitor") {
			c.Monitor = "loss"
			take("monitor", c.Monitor, "%.0f %% of the labels are of one class", 100*share)
		}
		if !given("class-weights") {
			c.ClassWeights = weightsRoot
			take("class-weights", c.ClassWeights, "%.0f %% of the labels are of one class", 100*share)
		}
	}
	if !given("eval-every") && m.Edges >= manyEdges {
		c.EvalEvery = someEpochs
		take("eval-every", c.EvalEvery, "%d edges", m.Edges)
	}
	return c.Chosen
}

// largestShare is that of the largest class in all labels, 0 of other tasks. Where it is
// large, weights that say nothing else are as accurate as most that have learnt, and come
// first: the loss tells them apart.
func largestShare(m *graph.Meta) float64 {
	var sum, most int64
	for _, n := range m.ClassCounts {
		sum, most = sum+n, max(most, n)
	}
	if m.Task != graph.MultiClass || sum == 0 {
		return 0
	}
	return float64(most) / float64(sum)
}

// few reports whether a class has few training vertices.
func few(m *graph.Meta) bool { return m.Train <= int64(fewPerClass*m.Classes) }

// allows reports whether the run can have the recommended design of its network.
func (c *Config) allows(d model.Design) bool {
	with := *c
	with.Norm, with.Jumping = d.Norm, cmp.Or(d.Jumping, c.Jumping)
	return errors.Join(with.checkLayers(), situation{Config: &with}.refuse("train", conflicts)) == nil
}

// suitLinks takes what link prediction is trained with (Kipf & Welling, "Variational graph
// auto-encoders", 2016, section 3), but for the first weights: rows near zero, with which
// classes begin well, have products near zero and hardly any gradient.
func (c *Config) suitLinks(given func(flag string) bool) []Choice {
	take := func(flag string, set func(), value string) {
		if !given(flag) {
			set()
			c.Chosen = append(c.Chosen, Choice{flag, value, "the task is links"})
		}
	}
	take("hidden", func() { c.Hidden = 32 }, "32")
	take("dropout", func() { c.Dropout = 0 }, "0")
	take("weight-decay", func() { c.WeightDecay = 0 }, "0")
	take("initializer", func() { c.Initializer = "xavier" }, "xavier")
	return c.Chosen
}

// inputScale is what features are to be trained as so many times of.
func (c *Config) inputScale(m *graph.Meta) float64 {
	norm, few := m.FeatureNorm, few(m)
	if c.kind().PlainSum {
		if sum := norm * (1 + float64(m.Edges)/float64(m.Vertices)); sum > huge {
			return rounded(steady / sum)
		}
		return 1
	}
	switch {
	case few && norm < tinyFew:
		return rounded(1 / norm)
	case !few && norm < tinyMany:
		return rounded(well / norm)
	case !few && c.kind().Averages() && norm < tinyMany*spread(m):
		return rounded(spread(m))
	}
	return 1
}

// spread is how many times smaller than rows their means over neighbours differ, were
// neighbours independent: the root of the mean degree.
func spread(m *graph.Meta) float64 {
	return math.Sqrt(max(1, float64(m.Edges)/float64(m.Vertices)))
}

// rounded is x to two digits: a setting that people can type.
func rounded(x float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	return r
}

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

// Thresholds that select settings for a graph. All were measured (docs/recipes.md).
const (
	manyTrain  = 2000       // from this number of training vertices on, hidden layers are wide
	wide       = 64         // columns of wide hidden layers
	manyEdges  = 10_000_000 // from this number of edges on, not every epoch is evaluated
	someEpochs = 5          // epochs between two evaluations of such a graph

	manyColumns = 256 // above this number of features, the perceptron before maxima is narrower (sage-pool)

	fullRow = 10 // rows with fewer non-zeros have no dropout

	fewPerClass = 50   // up to this number of training vertices per class, there are few
	tinyFew     = 0.15 // with few training vertices, feature rows of a smaller norm are scaled
	tinyMany    = 0.5  // with more training vertices, feature rows of a smaller norm are scaled
	well        = 4    // the norm of scaled rows with more training vertices, that of a few words
	lopsided    = 0.75 // from this fraction of the largest class on, accuracy is not informative
	huge        = 100  // above this norm of a sum over neighbours, nothing is learnt (gin)
	steady      = 2    // the norm of a scaled sum
)

// Suit replaces the defaults of flags that were not given by settings for the graph, and
// returns these with their reasons. It changes nothing with --defaults fixed, with a
// recipe, or if meta.json does not give the size of features, as for generated graphs.
func (c *Config) Suit(m *graph.Meta, given func(flag string) bool) []Choice {
	c.Chosen = nil
	if m.Task == graph.Links && c.Defaults != "fixed" && c.Recipe == "" {
		return c.suitLinks(m, given)
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

// largestShare returns the fraction of labels in the largest class, 0 for other tasks. If it is
// large, weights that always predict this class come first and are as accurate as most trained
// weights. Only the loss distinguishes them.
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

func few(m *graph.Meta) bool { return m.Train <= int64(fewPerClass*m.Classes) }

// allows reports whether the other options permit the recommended design of the network.
func (c *Config) allows(d model.Design) bool {
	with := *c
	with.Norm, with.Jumping = d.Norm, cmp.Or(d.Jumping, c.Jumping)
	return errors.Join(with.checkLayers(), situation{Config: &with}.refuse("train", conflicts)) == nil
}

// suitLinks sets the options of link prediction (Kipf & Welling, "Variational graph auto-encoders",
// 2016, section 3), but with other initial weights. The default initial weights give rows near zero,
// which is good for classes. For links, their products would be near zero with hardly any gradient.
//
// Edges of a relational graph are scored by DistMult. A random negative is easy for most edges, so that the area
// under the curve hardly distinguishes weights. The filtered rank does, but takes longer.
func (c *Config) suitLinks(m *graph.Meta, given func(flag string) bool) []Choice {
	why := "the task is links"
	take := func(flag string, set func(), value string) {
		if !given(flag) {
			set()
			c.Chosen = append(c.Chosen, Choice{flag, value, why})
		}
	}
	take("hidden", func() { c.Hidden = 32 }, "32")
	take("dropout", func() { c.Dropout = 0 }, "0")
	take("weight-decay", func() { c.WeightDecay = 0 }, "0")
	take("initializer", func() { c.Initializer = "xavier" }, "xavier")
	if why = "edges have relations"; m.Relations != nil {
		take("link-score", func() { c.LinkScore = string(model.DistMult) }, string(model.DistMult))
		take("monitor", func() { c.Monitor = "mrr" }, "mrr")
		take("eval-every", func() { c.EvalEvery = 10 }, "10")
	}
	return c.Chosen
}

// inputScale returns the factor of the features that suits a graph.
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

// spread returns the factor by which means over neighbours vary less than single rows, if neighbours
// were independent: the root of the mean degree.
func spread(m *graph.Meta) float64 {
	return math.Sqrt(max(1, float64(m.Edges)/float64(m.Vertices)))
}

// rounded returns x rounded to two digits, which users can type.
func rounded(x float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	return r
}

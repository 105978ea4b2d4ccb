package ranks

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/pairs"
	"siafu/internal/npy"
	"siafu/internal/safetensors"
	"siafu/ranks/predictions"
)

// linked returns a generated dataset with held-out edges.
func linked(t testing.TB, directed bool) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "links")
	o := pairs.HoldOutOptions{Split: "80/10/10", Ranked: 20, Seed: 3}
	if _, err := pairs.HoldOut(generated(t, directed), dst, o, false); err != nil {
		t.Fatal(err)
	}
	return dst
}

// The gradient of pairs equals the central difference of a run's loss along random directions,
// on one rank and on three.
func TestGradientOfLinks(t *testing.T) {
	t.Parallel()
	for _, directed := range []bool{false, true} {
		data := linked(t, directed)
		meta, err := graph.ReadMeta(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"mlp", "gcn", "gcn, scored by a perceptron", "gcn, scored by a perceptron with dropout"} {
			c := quick(t)
			kind, scored, _ := strings.Cut(kind, ", ")
			if scored != "" {
				c.LinkScore, c.LinkHidden = "mlp", 7
			}
			c.Model, c.Dropout, c.WeightDecay, c.Epochs, c.Embedding, c.Servers = kind, 0, 0, 1, 5, 0
			c.EvalEvery = 0 // the last weights are saved
			if strings.HasSuffix(scored, "dropout") {
				// The loss of an epoch is the loss of its training pass. The masks of a pair
				// must not depend on the order of its ends; a small dropout would hide that.
				c.LinkDropout = 0.9
			}
			c.Optimizer, c.Momentum, c.LR, c.Hidden = "sgd", 0, 1, 6
			s := c.NetworkOf(meta)
			rng := rand.New(rand.NewPCG(1, 2))
			from := make([]float32, s.NumWeights())
			for i := range from {
				from[i] = float32(rng.NormFloat64()) / 2
			}
			along := func(h float64, by []float64) []float32 {
				to := make([]float32, len(from))
				for i := range to {
					to[i] = from[i] + float32(h*by[i])
				}
				return to
			}
			loss := func(ranks int, w []float32) (float64, []float32) {
				c.Ranks, c.Init = ranks, weightsFile(t, s, w)
				r := train(t, c, data)
				return r.Epochs[0].Loss, r.weights(t, s)
			}
			for _, ranks := range []int{1, 3} {
				_, after := loss(ranks, from)
				for range 2 {
					by, got := make([]float64, len(from)), 0.0
					for i := range by {
						by[i] = rng.NormFloat64()
						got += float64(from[i]-after[i]) * by[i]
					}
					const h = 1e-4
					up, _ := loss(1, along(h, by))
					down, _ := loss(1, along(-h, by))
					want := (up - down) / (2 * h)
					// float32 rows are off by 1e-7 of values of about 10, in a mean over pairs; over 2h
					if d := math.Abs(got - want); d > 1e-2*max(1, math.Abs(want)) {
						t.Errorf("%s %s on %d ranks, directed %t: %v along a direction, want %v", kind, scored, ranks, directed, got, want)
					}
				}
			}
		}
	}
}

// Links are predicted as well as the graph's blocks allow, equally on any number of ranks and
// parts and with dropout. Predictions have the run's scores.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, score := range []string{"dot", "mlp"} {
		t.Run(score, func(t *testing.T) { linksAlike(t, score) })
	}
}

func linksAlike(t *testing.T, score string) {
	data := linked(t, false)
	c := quick(t)
	c.LinkScore, c.LinkHidden = score, 12
	c.Dropout, c.WeightDecay, c.Epochs, c.Servers, c.Initializer, c.Ranks = 0.2, 0, 15, 0, "xavier", 1
	one := train(t, c, data)
	m := one.Summary.Metrics.Test
	if one.Summary.Task != graph.Links || one.Summary.Metric != "roc_auc" || math.Abs(*m.ROCAUC-one.Summary.TestAccAtBestVal) > 1e-6 {
		t.Errorf("the summary says %+v, %v", one.Summary, *m.ROCAUC)
	}
	for name, set := range map[string]func(c *Config){
		"three":   func(c *Config) { c.Ranks = 3 },
		"hash":    func(c *Config) { c.Ranks, c.Partitioner = 2, "hash" },
		"servers": func(c *Config) { c.Ranks, c.Servers = 3, 1 },
		"parts":   func(c *Config) { c.Ranks, c.Parts = 2, 3 },
		"memory":  func(c *Config) { c.Recompute, c.Intervals = true, 3 },
	} {
		other := c
		other.Out = filepath.Join(t.TempDir(), "run")
		set(&other)
		got := train(t, other, data)
		sameLosses(t, name, got.losses(), one.losses(), 1e-4) // other orders of float32 sums
		of := got.Summary.Metrics.Test
		// of 300 test edges and as many pairs without one a few may change places
		for what, pair := range map[string][2]*float64{"auc": {of.ROCAUC, m.ROCAUC}, "mrr": {of.MRR, m.MRR},
			"hits": {of.Hits50, m.Hits50}, "precision": {of.AP, m.AP}} {
			if math.Abs(*pair[0]-*pair[1]) > 0.01 {
				t.Errorf("%s: %s is %v, want %v", name, what, *pair[0], *pair[1])
			}
		}
	}
	c.Epochs, c.Out = 3, filepath.Join(t.TempDir(), "elsewhere")
	alikeElsewhere(t, c, data)
}

// A run has the same bits on any number of threads, on directed and undirected graphs.
func TestLinksOnThreads(t *testing.T) {
	t.Parallel()
	for i, directed := range []bool{false, true, false, true} {
		data := linked(t, directed)
		c := quick(t)
		if i > 1 {
			c.LinkScore, c.LinkDropout = "mlp", 0.3
		}
		c.Epochs, c.Ranks, c.Servers, c.Threads = 3, 2, 0, 1
		one := train(t, c, data)
		for _, threads := range []int{2, 5} {
			c.Threads, c.Out = threads, filepath.Join(t.TempDir(), "run")
			got := train(t, c, data)
			if !reflect.DeepEqual(got.losses(), one.losses()) || !reflect.DeepEqual(got.Summary.Metrics, one.Summary.Metrics) {
				t.Errorf("directed %t, %s: on %d threads losses are %v, want %v", directed, c.LinkScore,
					threads, got.losses(), one.losses())
			}
		}
	}
}

// Options that do not support held-out edges are refused with a remedy.
func TestLinksRefused(t *testing.T) {
	t.Parallel()
	data := linked(t, false)
	for _, r := range []struct {
		data string
		set  func(c *Config)
		want string
	}{
		{generated(t, false), func(c *Config) { c.Task = graph.Links }, "siafu holdout"},
		{data, func(c *Config) { c.Task = graph.MultiClass }, "has no labels"},
		{data, func(c *Config) { c.Mode = "async" }, "leave --mode out"},
		{data, func(c *Config) { c.Mode = "free" }, "leave --mode out"},
		{data, func(c *Config) { c.Batch = "neighbor:4,4,60" }, "leave --batch out"},
		{data, func(c *Config) { c.LocalEpochs = 2 }, "leave --local-epochs out"},
		{data, func(c *Config) { c.ClassWeights = "balanced" }, "there are no classes"},
		{data, func(c *Config) { c.Embedding = 0 }, "1 or more"},
		{data, func(c *Config) { c.LinkLayers = 0 }, "1 to 64"},
		{data, func(c *Config) { c.LinkHidden = 0 }, "1 to 65536"},
		{data, func(c *Config) { c.LinkDropout = 1 }, "below 1"},
		{generated(t, false), func(c *Config) { c.LinkScore = "mlp" }, "leave --link-score out"},
	} {
		c := quick(t)
		c.Ranks, c.Epochs, c.Servers = 2, 1, 0
		if r.set(&c); c.Mode != "pipe" {
			c.Servers = 1
		}
		if err := Train(context.Background(), c, r.data, IO{Out: io.Discard, Err: io.Discard}); !strings.Contains(fmt.Sprint(err), r.want) {
			t.Errorf("it says %q, want %q", err, r.want)
		}
	}
}

// Scores of pairs are the products of the embeddings, with the user's ids, on one rank and on
// three. A file of pairs with unknown ids is refused.
func TestPredictPairs(t *testing.T) {
	t.Parallel()
	data := linked(t, false)
	c := quick(t)
	c.Ranks, c.Epochs, c.Embedding = 2, 3, 4
	train(t, c, data)
	file := filepath.Join(t.TempDir(), "pairs.csv")
	text := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text("dst,why,src\n7,x,3\n399,y,0\n5,z,5\n")
	for _, ranks := range []int{1, 3} {
		p := PredictConfig{Ranks: ranks, Tensor: "cpu", StallWarn: "1m", StallAbort: "1m",
			Out: filepath.Join(t.TempDir(), "out"), Pairs: file}
		if err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		f, err := npy.ReadFile(filepath.Join(p.Out, predictions.EmbeddingFile))
		if err != nil {
			t.Fatal(err)
		}
		z, err := f.Float32s()
		if err != nil || len(z) != 400*4 {
			t.Fatal(len(z), err)
		}
		rows := readCSV(t, filepath.Join(p.Out, predictions.PairsFile))
		for i, pair := range [][2]int{{3, 7}, {0, 399}, {5, 5}} {
			dot := float32(0)
			for k := range 4 {
				dot += z[4*pair[0]+k] * z[4*pair[1]+k]
			}
			if row := rows[i]; row[0] != fmt.Sprint(pair[0]) || row[1] != fmt.Sprint(pair[1]) || row[2] != fmt.Sprintf("%.6g", dot) {
				t.Errorf("%v, want %v %.6g", row, pair, dot)
			}
		}
	}
	for _, bad := range [][2]string{{"", "first line"}, {"a,b\n1,2\n", "first line"}, {"src,dst\n", "no pairs"}, {"src,dst\n1\n", "line 2"},
		{"src,dst\n1,400\n", `line 2 names "400"`}} {
		text(bad[0])
		p := PredictConfig{Ranks: 2, Tensor: "cpu", StallWarn: "1m", StallAbort: "1m", Out: t.TempDir(), Pairs: file}
		if err := Predict(context.Background(), p, c.Out, data,
			IO{Out: io.Discard, Err: io.Discard}); !strings.Contains(fmt.Sprint(err), bad[1]) {
			t.Errorf("%q: it says %q, want %q", bad[0], err, bad[1])
		}
	}
}

// Scores by a perceptron equal those of its weights in model.safetensors, computed in float64.
// A run that starts from these weights begins where the other ended. A model without a
// perceptron refuses them.
func TestPairsByPerceptron(t *testing.T) {
	t.Parallel()
	data := linked(t, true)
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	c := quick(t)
	c.Ranks, c.Epochs, c.Embedding, c.LinkScore, c.LinkLayers, c.LinkHidden, c.Initializer = 2, 4, 4, "mlp", 3, 5, "torch"
	run := train(t, c, data)
	list, _, err := safetensors.Read(filepath.Join(c.Out, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	weights := map[string][]float32{}
	for _, w := range list {
		weights[w.Name] = w.Data
	}
	file := filepath.Join(t.TempDir(), "pairs.csv")
	if err := os.WriteFile(file, []byte("src,dst\n3,7\n0,399\n5,5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := PredictConfig{Ranks: 3, Tensor: "cpu", StallWarn: "1m", StallAbort: "1m", Out: filepath.Join(t.TempDir(), "out"), Pairs: file}
	if err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	f, err := npy.ReadFile(filepath.Join(p.Out, predictions.EmbeddingFile))
	if err != nil {
		t.Fatal(err)
	}
	z, err := f.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	rows := readCSV(t, filepath.Join(p.Out, predictions.PairsFile))
	for i, pair := range [][2]int{{3, 7}, {0, 399}, {5, 5}} {
		h := make([]float64, 4)
		for j := range h {
			h[j] = float64(z[4*pair[0]+j]) * float64(z[4*pair[1]+j])
		}
		for l := range 3 {
			w, b := weights[fmt.Sprintf("score.%d.weight", l)], weights[fmt.Sprintf("score.%d.bias", l)]
			out := make([]float64, len(b))
			for k := range out {
				out[k] = float64(b[k])
				for j, v := range h {
					out[k] += v * float64(w[j*len(b)+k])
				}
				if l < 2 {
					out[k] = max(out[k], 0)
				}
			}
			h = out
		}
		got, err := strconv.ParseFloat(rows[i][2], 64)
		// six digits are written, of a sum of float32s
		if err != nil || len(h) != 1 || math.Abs(got-h[0]) > 1e-5*max(1, math.Abs(h[0])) {
			t.Errorf("pair %v has the score %v, want %v", pair, rows[i][2], h)
		}
	}
	s := c.NetworkOf(meta)
	if n := 4*5 + 5 + 5*5 + 5 + 5 + 1; s.HeadRange().Hi-s.HeadRange().Lo != n || len(run.weights(t, s)) != s.NumWeights() {
		t.Errorf("the perceptron has the weights %v of %d, want %d", s.HeadRange(), s.NumWeights(), n)
	}
	other := c
	other.Init, other.Out, other.LinkHidden = filepath.Join(c.Out, "model.safetensors"), filepath.Join(t.TempDir(), "run"), 6
	if err := Train(context.Background(), other, data,
		IO{Out: io.Discard, Err: io.Discard}); !strings.Contains(fmt.Sprint(err), "score.0.weight") {
		t.Errorf("weights of another width: %v", err)
	}
}

// The blocks of a planted partition give the best possible score, because edges are equally
// likely between all vertices of a block. A network reaches it.
func TestLinksOfBlocks(t *testing.T) {
	t.Parallel()
	const n, blocks = 400, 8
	c := graph.Content{
		Name: "blocks", Vertices: n, Symmetrise: true, Labels: make([]int32, n), Split: make([]uint8, n),
		Features: graph.Features{Rows: n, Dim: blocks, Dense: make([]float32, n*blocks)},
	}
	rng := rand.New(rand.NewPCG(4, 4))
	var ends graph.EdgePairs
	for v := range n {
		c.Features.Dense[v*blocks+v%blocks] = 1
		for u := range v {
			if chance := rng.Float64(); u%blocks == v%blocks && chance < 0.2 || chance < 0.004 {
				ends = append(ends, uint32(u), uint32(v))
			}
		}
	}
	c.Edges = ends
	data := filepath.Join(t.TempDir(), "links")
	if _, err := pairs.HoldOut(write(t, c), data, pairs.HoldOutOptions{Split: "70/10/20", Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	h, done, err := graph.OpenHeldOut(data)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	inside := func(p graph.Pairs) (share float64) {
		for i := range p.Src {
			if p.Src[i]%blocks == p.Dst[i]%blocks {
				share += 1 / float64(p.Len())
			}
		}
		return share
	}
	are, not := inside(h.Test.Edges), inside(h.Test.Not)
	best := are*(1-not) + (are*not+(1-are)*(1-not))/2
	cfg := quick(t)
	cfg.Ranks, cfg.Servers, cfg.Dropout, cfg.WeightDecay, cfg.Epochs, cfg.Initializer = 2, 0, 0, 0, 60, "xavier"
	got := *train(t, cfg, data).Summary.Metrics.Test.ROCAUC
	// what is left to chance is the order within ties: with 400 test edges and as many
	// others, an AUC of 0.9 has a standard error of 0.011 (Hanley & McNeil 1982)
	if math.Abs(got-best) > 0.03 || best < 0.8 || h.Test.Edges.Len() < 350 {
		t.Errorf("the area is %.4f, of blocks %.4f", got, best)
	}
}

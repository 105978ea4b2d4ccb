package ranks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"siafu/graph"
	"siafu/graph/importers"
	"siafu/graph/pairs"
	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/internal/signals"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/predictions"
)

// knowledge writes a random knowledge graph with the given splits, and imports it. Triples may be repeated, also
// across splits, and connect a vertex with itself.
func knowledge(t testing.TB, seed uint64, entities, relations int, reverse string, sizes ...int) (data, src string) {
	t.Helper()
	src = t.TempDir()
	rng := rand.New(rand.NewPCG(seed, 0))
	for i, n := range sizes {
		var text bytes.Buffer
		for range n {
			u, r := rng.IntN(entities), rng.IntN(relations)
			v := (u*(r+2) + r + rng.IntN(3)) % entities
			fmt.Fprintf(&text, "e%d\tr%d\te%d\n", u, r, v)
		}
		writeTriples(t, src, i, text.Bytes())
	}
	return imported(t, src, reverse), src
}

func writeTriples(t testing.TB, dir string, split int, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, []string{"train.txt", "valid.txt", "test.txt"}[split]), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func imported(t testing.TB, src, reverse string) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "triples")
	if _, err := importers.Import("auto", importers.Options{Src: src, Dst: data, ReverseRelations: reverse, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return data
}

// embeddings returns a configuration of an encoder without a graph.
func embeddings(t testing.TB, score string) Config {
	c := quick(t)
	c.Model, c.Layers, c.Embedding, c.LinkScore, c.Servers, c.Ranks = "mlp", 1, 8, score, 0, 1
	c.Dropout, c.WeightDecay, c.Initializer, c.Monitor = 0, 0, "xavier", "mrr"
	return c
}

// The gradient of triples equals the central difference of a run's loss along random directions, on one rank and on
// three, with reverse relations or without.
func TestGradientOfTriples(t *testing.T) {
	t.Parallel()
	for _, reverse := range []string{"on", "off"} {
		data, _ := knowledge(t, 1, 40, 3, reverse, 200, 10, 10)
		meta, err := graph.ReadMeta(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"mlp", "gcn", "rgcn"} {
			scores := map[string][]string{"mlp": {"dot", "distmult", "complex"}, "gcn": {"complex"}, "rgcn": {"distmult"}}
			for _, score := range scores[kind] {
				c := embeddings(t, score)
				c.Model, c.Layers, c.Hidden, c.Embedding, c.LinkNegatives, c.Epochs, c.EvalEvery = kind, 2, 6, 4, 2, 1, 0
				c.Optimizer, c.Momentum, c.LR, c.Monitor = "sgd", 0, 1, "accuracy"
				s := c.NetworkOf(meta)
				rng := rand.New(rand.NewPCG(1, 2))
				from := make([]float32, s.NumWeights())
				for i := range from {
					from[i] = float32(rng.NormFloat64()) / 2
				}
				loss := func(ranks int, w []float32) (float64, []float32) {
					c.Ranks, c.Init = ranks, weightsFile(t, s, w)
					r := train(t, c, data)
					return r.Epochs[0].Loss, r.weights(t, s)
				}
				for _, ranks := range []int{1, 3} {
					_, after := loss(ranks, from)
					by, got := make([]float64, len(from)), 0.0
					for i := range by {
						by[i] = rng.NormFloat64()
						got += float64(from[i]-after[i]) * by[i]
					}
					along := func(h float64) float64 {
						to := make([]float32, len(from))
						for i := range to {
							to[i] = from[i] + float32(h*by[i])
						}
						l, _ := loss(1, to)
						return l
					}
					const h = 1e-4
					want := (along(h) - along(-h)) / (2 * h)
					if d := math.Abs(got - want); d > 1e-2*max(1, math.Abs(want)) {
						t.Errorf("%s, %s on %d ranks, reverse %s: %v along a direction, want %v", kind, score, ranks, reverse, got, want)
					}
				}
			}
		}
	}
}

// bruteForce returns the filtered MRR and Hits@1, 3, 10 of the test triples, from the definition, by the
// embeddings and the weights of a run.
func bruteForce(t *testing.T, c Config, data, src string) [4]float64 {
	t.Helper()
	z, vertex := predictedRows(t, c, data)
	list, _, err := safetensors.Read(filepath.Join(c.Out, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	var w []float32
	for _, x := range list {
		if x.Name == "score.relations" {
			w = x.Data
		}
	}
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	relation := map[string]int{}
	for i, r := range meta.Relations.Relations {
		relation[r.Name] = i
	}
	width := c.Embedding
	score := func(s, r, o int) (sum float64) {
		a, b := z[s*width:(s+1)*width], z[o*width:(o+1)*width]
		for j := range width {
			switch half := width / 2; {
			case c.LinkScore == "dot":
				sum += float64(a[j]) * float64(b[j])
			case c.LinkScore == "distmult":
				sum += float64(a[j]) * float64(w[r*width+j]) * float64(b[j])
			case j < half:
				x := complex(float64(a[j]), float64(a[half+j])) * complex(float64(w[r*width+j]), float64(w[r*width+half+j]))
				product := x * complex(float64(b[j]), -float64(b[half+j]))
				sum += realPart(product)
			}
		}
		return sum
	}
	known := map[[3]int]bool{}
	var test [][3]int
	for i, name := range []string{"train.txt", "valid.txt", "test.txt"} {
		text, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			x := [3]int{vertex[f[0]], relation[f[1]], vertex[f[2]]}
			known[x] = true
			if i == 2 {
				test = append(test, x)
			}
		}
	}
	var m [4]float64
	for _, x := range test {
		right := score(x[0], x[1], x[2])
		for end := 0; end < 3; end += 2 {
			above, equal := 0, 0
			for v := range len(vertex) {
				y := x
				if y[end] = v; known[y] {
					continue
				}
				switch s := score(y[0], y[1], y[2]); {
				case math.Abs(s-right) <= 1e-6*math.Abs(right):
					equal++
				case s > right:
					above++
				}
			}
			rank := 1 + float64(above) + float64(equal)/2
			share := 1 / float64(2*len(test))
			m[0] += share / rank
			for i, k := range []float64{1, 3, 10} {
				if rank <= k {
					m[i+1] += share
				}
			}
		}
	}
	return m
}

// realPart is the builtin real, which a test of this package hides.
func realPart(x complex128) float64 { return cmplx.Abs(x) * math.Cos(cmplx.Phase(x)) }

// predictedRows returns the embeddings of a run and the vertices by id.
func predictedRows(t *testing.T, c Config, data string) ([]float32, map[string]int) {
	t.Helper()
	p := PredictConfig{Ranks: 2, Tensor: "cpu", StallWarn: "1m", StallAbort: "1m", Out: filepath.Join(t.TempDir(), "out")}
	if err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	ids, err := os.ReadFile(filepath.Join(p.Out, predictions.IDFile))
	if err != nil {
		t.Fatal(err)
	}
	vertex := map[string]int{}
	for i, id := range strings.Fields(string(ids)) {
		vertex[id] = i
	}
	return readFloats(t, filepath.Join(p.Out, predictions.EmbeddingFile), c.Embedding), vertex
}

// Metrics equal the definition of Bordes et al. 2013: "we remove from the list all the corrupted triplets that
// appear either in the training, validation or test set". Losses and metrics are the same on any number of ranks.
func TestTriples(t *testing.T) {
	t.Parallel()
	data, src := knowledge(t, 2, 60, 4, "on", 400, 40, 40)
	for _, score := range []string{"dot", "distmult", "complex"} {
		t.Run(score, func(t *testing.T) {
			t.Parallel()
			c := embeddings(t, score)
			c.Model, c.Layers, c.Hidden, c.Epochs, c.EvalEvery, c.LinkNegatives = "gcn", 2, 12, 20, 5, 3
			if score == "complex" {
				c.Model = "rgcn"
			}
			c.LR = 0.05
			one := train(t, c, data)
			m := one.Summary.Metrics.Test
			want := bruteForce(t, c, data, src)
			for i, got := range []*float64{m.MRR, m.Hits1, m.Hits3, m.Hits10} {
				if math.Abs(*got-want[i]) > 1e-6 {
					t.Errorf("metric %d is %v, want %v", i, *got, want[i])
				}
			}
			if m.Hits20 != nil || m.Links != 40 || *m.MRR < 0.05 {
				t.Errorf("metrics are %+v", m)
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
				if of := got.Summary.Metrics.Test; math.Abs(*of.MRR-*m.MRR) > 0.01 || math.Abs(*of.ROCAUC-*m.ROCAUC) > 0.01 {
					t.Errorf("%s: MRR is %v, AUC is %v, want %v and %v", name, *of.MRR, *of.ROCAUC, *m.MRR, *m.ROCAUC)
				}
			}
			c.Threads, c.Out = 1, c.Out+"-threads"
			if got := train(t, c, data); !reflect.DeepEqual(got.losses(), one.losses()) || !bytes.Equal(got.model, one.model) {
				t.Error("one thread gives other bits")
			}
		})
	}
}

// Equal scores get the mean rank: with weights of zero, all candidates are equal.
func TestTiesOfTriples(t *testing.T) {
	t.Parallel()
	data, src := knowledge(t, 3, 30, 2, "off", 100, 8, 8)
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{1, 3} {
		c := embeddings(t, "distmult")
		s := c.NetworkOf(meta)
		c.Ranks, c.Epochs, c.Init = ranks, 0, weightsFile(t, s, make([]float32, s.NumWeights()))
		m, want := train(t, c, data).Summary.Metrics.Test, bruteForce(t, c, data, src)
		if math.Abs(*m.MRR-want[0]) > 1e-9 || want[0] > 0.2 {
			t.Errorf("on %d ranks MRR is %v, want %v", ranks, *m.MRR, want[0])
		}
	}
}

// A run that is resumed after a stop ends with the bits of one that never stopped.
func TestTriplesResumed(t *testing.T) {
	keep := signals.Watch(signals.Options{}) // no signal may kill the tests between two runs
	defer keep.Close()
	data, _ := knowledge(t, 4, 60, 3, "on", 300, 20, 20)
	c := embeddings(t, "complex")
	c.CheckpointEvery, c.EvalEvery, c.Ranks, c.Epochs, c.LinkNegatives = "2e", 1, 2, 4000, 2
	if err := stopAt(t, c, data, syscall.SIGTERM, 8); fault.KindOf(err) != fault.Stopped {
		t.Fatalf("a stopped run says %v", err)
	}
	state, _, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
	if err != nil || state == nil {
		t.Fatalf("%+v %v", state, err)
	}
	c.Resume, c.Epochs = "auto", state.Epoch+4
	train(t, c, data)
	undisturbed := c
	undisturbed.Resume, undisturbed.CheckpointEvery, undisturbed.Out = "", "off", c.Out+"-undisturbed"
	want, got := train(t, undisturbed, data), readRun(t, c.Out)
	sameLosses(t, "resumed", got.losses(), want.losses(), 0)
	if !bytes.Equal(got.model, want.model) || !reflect.DeepEqual(got.Summary.Metrics, want.Summary.Metrics) {
		t.Error("models or metrics differ")
	}
	for flag, set := range map[string]func(c *Config){
		"link-negatives": func(c *Config) { c.LinkNegatives = 3 },
		"link-score":     func(c *Config) { c.LinkScore = "distmult" },
	} {
		other := c
		other.Epochs++
		set(&other)
		if err := Train(context.Background(), other, data, IO{Out: io.Discard, Err: io.Discard}); !strings.Contains(fmt.Sprint(err), flag) {
			t.Errorf("with another %s it says %v", flag, err)
		}
	}
}

// rules writes a knowledge graph of a hierarchy: parent and its inverse child are asymmetric, grandparent is
// parent after parent, and sibling is symmetric. Triples of the rules' conclusions are held out.
func rules(t *testing.T, families int) string {
	var all [3][]string
	rng := rand.New(rand.NewPCG(5, 5))
	add := func(split int, u int, relation string, v int) {
		all[split] = append(all[split], fmt.Sprintf("p%d\t%s\tp%d\n", u, relation, v))
	}
	const size = 15 // a binary tree
	for f := range families {
		for i := 1; i < size; i++ {
			v, up := f*size+i, f*size+(i-1)/2
			split := max(0, rng.IntN(10)-7) // 8 of 10 for training
			add(0, up, "parent", v)
			add(split, v, "child", up)
			if i > 2 {
				add(max(0, rng.IntN(10)-7), f*size+((i-1)/2-1)/2, "grandparent", v)
			}
			if i%2 == 0 {
				add(0, v-1, "sibling", v)
				add(max(0, rng.IntN(10)-7), v, "sibling", v-1)
			}
		}
	}
	src := t.TempDir()
	for i, lines := range all {
		writeTriples(t, src, i, []byte(strings.Join(lines, "")))
	}
	return imported(t, src, "on")
}

// DistMult distinguishes relations, so that it beats the dot product. It gives both directions of a relation the
// same score, so that ComplEx is better on asymmetric relations (Trouillon et al. 2016, section 2).
func TestScoresOfRules(t *testing.T) {
	t.Parallel()
	data := rules(t, 12)
	var mrr []float64
	for _, score := range []string{"dot", "distmult", "complex"} {
		best := 0.0
		c := embeddings(t, score)
		c.Embedding, c.Epochs, c.LR, c.EvalEvery = 32, 150, 0.02, 25
		c.WeightDecay, c.WeightDecayOn = 1e-4, "all"
		m := train(t, c, data).Summary.Metrics.Test
		best = max(best, *m.MRR)
		mrr = append(mrr, best)
		t.Logf("%s: MRR %.3f, Hits@1 %.3f, Hits@10 %.3f, AUC %.3f", score, *m.MRR, *m.Hits1, *m.Hits10, *m.ROCAUC)
	}
	if mrr[1] < mrr[0]+0.1 || mrr[2] < mrr[1]+0.1 {
		t.Errorf("MRR of dot, distmult, complex: %v", mrr)
	}
}

// Scores of triples are those of their definition, with names of relations, on any number of ranks. What cannot be
// scored is refused with a remedy.
func TestPredictTriples(t *testing.T) {
	t.Parallel()
	data, _ := knowledge(t, 6, 30, 3, "on", 150, 10, 10)
	c := embeddings(t, "distmult")
	c.Epochs = 3
	train(t, c, data)
	z, vertex := predictedRows(t, c, data)
	list, _, err := safetensors.Read(filepath.Join(c.Out, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	w := list[len(list)-1]
	predict := func(name, text string, ranks int) ([][]string, error) {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		p := PredictConfig{Ranks: ranks, Tensor: "cpu", StallWarn: "1m", StallAbort: "1m",
			Out: filepath.Join(t.TempDir(), "out"), Pairs: file}
		if err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard}); err != nil {
			return nil, err
		}
		return readCSV(t, filepath.Join(p.Out, predictions.PairsFile)), nil
	}
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"head,relation,tail\ne1,r0,e2\ne2,r2,e2\n", "e1\tr0\te2\ne2\tr2\te2\n",
		"dst,src,relation\ne2,e1,r0\ne2,e2,entity-r2-entity\n"} {
		rows, err := predict([]string{"a.csv", "a.txt", "b.csv"}[i], text, i+1)
		if err != nil {
			t.Fatal(err)
		}
		for k, x := range [][3]string{{"e1", "r0", "e2"}, {"e2", "r2", "e2"}} {
			want, r := float32(0), 0
			for meta.Relations.Relations[r].Name != x[1] {
				r++
			}
			for j := range 8 {
				want += z[8*vertex[x[0]]+j] * w.Data[8*r+j] * z[8*vertex[x[2]]+j]
			}
			var got float32
			fmt.Sscan(rows[k][3], &got)
			if [3]string(rows[k][:3]) != x || math.Abs(float64(got-want)) > 1e-5*max(1, math.Abs(float64(want))) {
				t.Errorf("row %v, want %v %v", rows[k], x, want)
			}
		}
	}
	for text, want := range map[string]string{"src,dst\ne1,e2\n": "src,relation,dst",
		"src,relation,dst\ne1,likes,e2\n":  `line 2 names the relation "likes"`,
		"src,relation,dst\ne1,rev_r0,e2\n": "line 2", "src,relation,dst\ne1,entity-rev_r0-entity,e2\n": "reverse of another",
		"src,relation,dst\nx,r0,e2\n": `names "x"`} {
		if _, err := predict("bad.csv", text, 1); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error()+remedyOf(err), want) {
			t.Errorf("%q: it says %q, want %q", text, err, want)
		}
	}
	other, _ := knowledge(t, 6, 30, 2, "on", 150, 10, 10)
	p := PredictConfig{Ranks: 1, Tensor: "cpu", StallWarn: "1m", StallAbort: "1m", Out: filepath.Join(t.TempDir(), "out")}
	if err := Predict(context.Background(), p, c.Out, other, IO{Out: io.Discard, Err: io.Discard}); fault.KindOf(err) != fault.Data {
		t.Errorf("a graph of other relations: %v", err)
	}
}

func remedyOf(err error) string {
	if f, ok := err.(*fault.Error); ok {
		return f.Remedy
	}
	return ""
}

// A relational graph without a split is split by siafu holdout. Held-out edges and their reverses are no training
// edges.
func TestHeldOutTriples(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "triples.txt")
	var text bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&text, "%d r%d %d\n", i%40, i%3, (i*7+i/40)%40)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	whole, held := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "held")
	if _, err := importers.Import("triples", importers.Options{Src: file, Dst: whole}); err != nil {
		t.Fatal(err)
	}
	o := pairs.HoldOutOptions{Split: "80/10/10", Ranked: 1000, Seed: 1}
	if _, err := pairs.HoldOut(whole, held, o, false); err != nil {
		t.Fatal(err)
	}
	h, done, err := graph.OpenHeldOut(held)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ds, err := graph.Open(held)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	edges := map[graph.Triple]bool{}
	for v := range ds.In.Rows() {
		for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
			edges[graph.Triple{Src: ds.In.Cols[i], Dst: uint32(v), Relation: ds.Relations[i]}] = true
		}
	}
	count := int64(len(edges))
	for _, x := range []graph.Held{h.Val, h.Test} {
		for i, r := range x.Relations {
			y := graph.Triple{Src: x.Edges.Src[i], Dst: x.Edges.Dst[i], Relation: r}
			back := graph.Triple{Src: y.Dst, Dst: y.Src, Relation: uint16(ds.Meta.Relations.Relations[r].Inverse)}
			if edges[y] || edges[back] || ds.Meta.Relations.Relations[r].Reverse {
				t.Fatalf("held-out edge %v is a training edge", y)
			}
			count += 2
		}
	}
	if before, err := graph.ReadMeta(whole); err != nil || before.Edges != count || ds.Meta.Links.Train*2 != int64(len(edges)) {
		t.Errorf("%d edges, want %d (%v); %+v", count, before.Edges, err, ds.Meta.Links)
	}
	o.Val, o.Test = filepath.Join(t.TempDir(), "v.csv"), file
	if err := os.WriteFile(o.Val, []byte("src,relation,dst\n0,r0,0\n1,r1,7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"src,relation,dst\n1,r1,7\n", ""}, {"src,dst\n1,7\n", "src,relation,dst"},
		{"src,relation,dst\n1,r9,7\n", `"r9"`}} {
		o.Test = filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(o.Test, []byte(c[0]), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := pairs.HoldOut(whole, held+"-given", o, true)
		if got := cmp.Or(fmt.Sprint(err), "") + remedyOf(err); (err == nil) != (c[1] == "") || !strings.Contains(got, c[1]) {
			t.Errorf("%q: it says %v", c[0], err)
		}
	}
}

// Options that do not fit a relational graph, or need one, are refused with a remedy.
func TestTriplesRefused(t *testing.T) {
	t.Parallel()
	data, _ := knowledge(t, 7, 30, 3, "on", 100, 5, 5)
	for _, r := range []struct {
		data string
		set  func(c *Config)
		want string
	}{
		{data, func(c *Config) { c.LinkScore = "mlp" }, "dot, distmult or complex"},
		{data, func(c *Config) { c.LinkScore, c.Embedding = "complex", 5 }, "even number"},
		{data, func(c *Config) { c.Monitor = "hits@20" }, "does not have this metric"},
		{data, func(c *Config) { c.LinkNegatives = 0 }, "1 to 65536"},
		{linked(t, false), func(c *Config) { c.Monitor = "roc_auc" }, "train on a relational graph"},
		{linked(t, false), func(c *Config) { c.LinkScore, c.Monitor = "dot", "hits@1" }, "does not have this metric"},
	} {
		c := embeddings(t, string(model.DistMult))
		c.Epochs = 1
		r.set(&c)
		err := Train(context.Background(), c, r.data, IO{Out: io.Discard, Err: io.Discard})
		if !strings.Contains(fmt.Sprint(err)+remedyOf(err), r.want) {
			t.Errorf("it says %q, want %q", err, r.want)
		}
	}
}

// The bytes that ranks send for the ends of triples are estimated by mean and deviation.
func TestTripleTrafficEstimate(t *testing.T) {
	t.Parallel()
	data, _ := knowledge(t, 8, 3000, 3, "off", 2000, 5, 5)
	c := embeddings(t, "distmult")
	c.Ranks, c.Epochs, c.EvalEvery, c.LinkNegatives, c.Monitor, c.Partitioner = 3, 10, 0, 2, "accuracy", "hash"
	run := train(t, c, data)
	f, parts := foreseen(t, c, data, 3, 0)
	want := f.PairTraffic(parts)
	for _, e := range run.Epochs {
		if d := math.Abs(float64(e.PairBytes - want.Sent)); d > 5*float64(want.Deviation) || want.Deviation*20 > want.Sent {
			t.Errorf("epoch %d sends %d bytes for triples, estimated are %d ± %d", e.Epoch, e.PairBytes, want.Sent, want.Deviation)
		}
	}
}

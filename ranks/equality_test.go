package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
	"siafu/ranks/schedule"
)

// compared returns a run whose losses are compared epoch by epoch: a difference persists in all
// later epochs.
func compared(t testing.TB, dropout float64) Config {
	c := quick(t)
	c.Epochs, c.Dropout, c.EvalEvery = 12, dropout, 0
	if hosttest.Big() {
		c.Epochs = 50
	}
	return c
}

// The loss of every epoch equals that of one rank, for each number of ranks, each partitioner
// and any number of servers, with and without dropout: the mask depends on the vertex and not
// on its rank. Each number of ranks runs with each partitioner on half of the graphs and
// dropout rates. Sums over neighbours and ranks have another order, an error of about 1e-7 per
// step in float32; 1e-4 allows 50 steps of Adam.
func TestLossIndependentOfRanks(t *testing.T) {
	t.Parallel()
	seed := hosttest.Turn(t, 4)
	for d, directed := range []bool{false, true} {
		data := generated(t, directed)
		for p, dropout := range []float64{0, 0.5} {
			want := train(t, compared(t, dropout), data).losses()
			for k, graphRanks := range []int{2, 3, 4, 7} {
				for i, method := range []string{"contiguous", "hash", "ldg", "fennel", "multilevel"} {
					if !hosttest.Sampled(4, 2*d+p, k, i, seed) {
						continue
					}
					servers := (i + graphRanks) % 3
					name := fmt.Sprintf("directed=%t dropout=%g ranks=%d %s servers=%d", directed, dropout, graphRanks, method, servers)
					t.Run(name, func(t *testing.T) {
						c := compared(t, dropout)
						c.Ranks, c.Servers, c.Partitioner = graphRanks+servers, servers, method
						sameLosses(t, name, train(t, c, data).losses(), want, 1e-4)
					})
				}
			}
		}
	}
}

// The ranks' numbering of vertices changes only the order of sums.
func TestLossIndependentOfVertexOrder(t *testing.T) {
	t.Parallel()
	for _, directed := range []bool{false, true} {
		data := generated(t, directed)
		want := train(t, compared(t, 0.5), data).losses()
		for _, order := range []string{"lp", "rabbit"} {
			for _, ranks := range []int{1, 4} {
				name := fmt.Sprintf("directed=%t %s ranks=%d", directed, order, ranks)
				t.Run(name, func(t *testing.T) {
					c := compared(t, 0.5)
					c.Ranks, c.VertexOrder = ranks, order
					sameLosses(t, name, train(t, c, data).losses(), want, 1e-4)
					o := partition.Options{Order: order, Parts: max(ranks-1, 1), Seed: 1}
					if folder, made, err := (partition.Place{Data: data}).Ensure(o, func(partition.Options) {}); err != nil || made != nil {
						t.Errorf("it was not trained in that order: %s, %v", folder, err)
					}
				})
			}
		}
	}
}

// The same for the other kinds of network. Each runs in each world on one of the graphs, with
// SIAFU_BIG=1 on both.
func TestLossIndependentOfRanksForEveryKind(t *testing.T) {
	t.Parallel()
	seed := hosttest.Turn(t, 4)
	for d, directed := range []bool{false, true} {
		data := generated(t, directed)
		for i, kind := range model.Kinds() {
			if !hosttest.Sampled(2, d, i, seed) {
				continue
			}
			turn := func(k int) bool { return hosttest.Sampled(2, k, i/2, seed/2) }
			run := func(ranks, servers int, set ...func(*Config)) []float64 {
				c := compared(t, 0.3)
				c.Model, c.Ranks, c.Servers, c.LR, c.Heads = kind, ranks, servers, 0.005, 2
				for _, f := range set {
					f(&c)
				}
				return train(t, c, data).losses()
			}
			want := run(1, 0)
			for k, n := range [][2]int{{2, 0}, {3, 1}, {4, 1}, {7, 2}, {7, 3}} {
				if !turn(k) {
					continue
				}
				t.Run(fmt.Sprintf("%s directed=%t ranks=%d servers=%d", kind, directed, n[0], n[1]), func(t *testing.T) {
					sameLosses(t, kind, run(n[0], n[1]), want, 1e-4)
				})
			}
			if !turn(0) {
				continue
			}
			t.Run(kind+" nopipe", func(t *testing.T) {
				sameLosses(t, kind, run(4, 1, func(c *Config) { c.Mode = "nopipe" }), run(4, 1), 0)
			})
		}
	}
}

// The same for layers of several kinds, with rows summed before they are sent, with computed ghost rows,
// and in mini-batches of all vertices.
func TestLossIndependentOfRanksWithMixedLayers(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	run := func(ranks int, set func(*Config)) []float64 {
		c := compared(t, 0.3)
		c.LayerKinds, c.Layers, c.Ranks, c.Servers, c.LR = "gcn,sage", 3, ranks, 0, 0.05
		set(&c)
		return train(t, c, data).losses()
	}
	want := run(1, func(*Config) {})
	for name, set := range map[string]func(*Config){
		"sums": func(c *Config) { c.PreAggregate = "on" }, "computed ghosts": func(c *Config) { c.RecomputeGhosts = "all" },
		"approximation": func(c *Config) { c.Batch, c.Partitioner = "approximate:1", "hash" },
	} {
		sameLosses(t, name, run(4, set), want, 1e-4)
	}
	sameLosses(t, "walks", run(1, func(c *Config) { c.Batch = "saint:1000" }), want, 1e-4)
	if plain := run(1, func(c *Config) { c.LayerKinds = "" }); math.Abs(plain[len(plain)-1]-want[len(want)-1]) < 1e-2 {
		t.Errorf("layers of one kind have the final loss %v, mixed ones %v", plain[len(plain)-1], want[len(want)-1])
	}
}

// The same on a real graph, with a partition from a file.
func TestLossIndependentOfRanksOnCora(t *testing.T) {
	t.Parallel()
	data := real(t, "cora")
	for _, dropout := range []float64{0, 0.5} {
		want := train(t, compared(t, dropout), data).losses()
		owner := make([]int, 2708)
		for v := range owner {
			owner[v] = v * v % 5
		}
		partitionBy(t, data, "", 5, owner...)
		for _, ranks := range []int{2, 4, 5, 8} {
			t.Run(fmt.Sprintf("dropout=%g ranks=%d", dropout, ranks), func(t *testing.T) {
				c := compared(t, dropout)
				c.Ranks = ranks
				if ranks == 5 {
					c.Servers = 0 // five graph ranks: the partition from the file
				}
				sameLosses(t, "cora", train(t, c, data).losses(), want, 1e-4)
			})
		}
	}
}

// The same order of sums gives the same bits: with replicated weights or one server, and if the same
// command runs twice. TestPairsOfFeatures has the flags that promise equal bits.
func TestBitIdentity(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	base := func() Config {
		c := compared(t, 0.3)
		c.Ranks, c.Servers, c.EvalEvery = 4, 1, 7
		return c
	}
	want := train(t, base(), data)
	for name, set := range map[string]func(*Config){
		"again":      func(*Config) {},
		"replicated": func(c *Config) { c.Ranks, c.Servers = 3, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c := base()
			set(&c)
			got := train(t, c, data)
			if !bytes.Equal(got.model, want.model) {
				t.Error("model.safetensors differs")
			}
			sameLosses(t, name, got.losses(), want.losses(), 0)
		})
	}
}

// After partitioning, a run needs only meta.json and the shards: no rank reads the whole
// graph.
func TestRunsWithoutTheWholeGraph(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := compared(t, 0)
	c.Ranks = 4
	want := train(t, c, data).losses()
	entries, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "meta.json" {
			if err := os.Remove(filepath.Join(data, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	sameLosses(t, "shards alone", train(t, c, data).losses(), want, 0)
}

func TestStopping(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	t.Run("patience", func(t *testing.T) {
		c := quick(t)
		c.Ranks, c.Epochs, c.Patience, c.LR = 3, 200, 3, 1e-9
		s := train(t, c, data).Summary
		if s.StoppedBy != "patience" || s.Epochs != 3 || s.BestEpoch != 1 {
			t.Errorf("stopped by %q after %d epochs, best %d; want patience, 3, 1", s.StoppedBy, s.Epochs, s.BestEpoch)
		}
	})
	t.Run("target", func(t *testing.T) {
		c := quick(t)
		c.Ranks, c.TargetAcc = 4, 0.5
		r := train(t, c, data)
		if r.Summary.StoppedBy != "target-acc" || r.Summary.BestValAcc < 0.5 || r.Summary.Epochs >= c.Epochs {
			t.Errorf("stopped by %q after %d epochs at %.3f", r.Summary.StoppedBy, r.Summary.Epochs, r.Summary.BestValAcc)
		}
		for _, e := range r.Epochs {
			if *e.ValAcc >= 0.5 {
				t.Errorf("epoch %d was trained although it began at %.3f", e.Epoch, *e.ValAcc)
			}
		}
	})
	t.Run("no epochs", func(t *testing.T) {
		c := quick(t)
		c.Ranks, c.Epochs = 2, 0
		if s := train(t, c, data).Summary; s.Epochs != 0 || s.BestEpoch != 1 {
			t.Errorf("%d epochs, best %d", s.Epochs, s.BestEpoch)
		}
	})
}

// Without dropout the training pass is the evaluation, without extra time; else one more
// forward pass is timed separately.
func TestEvaluationPass(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, dropout := range []float64{0, 0.5} {
		c := quick(t)
		c.Epochs, c.Dropout, c.EvalEvery, c.Ranks = 6, dropout, 2, 3
		r := train(t, c, data)
		for _, e := range r.Epochs {
			due := e.Epoch%2 == 1
			if (e.ValAcc != nil) != due {
				t.Errorf("dropout %g: epoch %d evaluated: %t", dropout, e.Epoch, e.ValAcc != nil)
			}
			if (e.EvalSeconds > 0) != (due && dropout > 0) {
				t.Errorf("dropout %g: epoch %d took %g s for evaluation", dropout, e.Epoch, e.EvalSeconds)
			}
		}
	}
}

// metrics.jsonl, summary.json and the ranks' reports are consistent.
func TestRunFolder(t *testing.T) {
	data := generated(t, false)
	c := quick(t)
	c.Ranks, c.Epochs = 4, 10
	r := train(t, c, data)
	if len(r.Epochs) != 10 || r.Summary.Epochs != 10 {
		t.Fatalf("%d lines and %d epochs, want 10", len(r.Epochs), r.Summary.Epochs)
	}
	var raw int64
	for i, e := range r.Epochs {
		raw += e.GhostBytesRaw
		if e.Epoch != i+1 || e.Seconds <= 0 || e.GhostBytesRaw != e.GhostBytesSent {
			t.Errorf("line %d: %+v", i+1, e)
		}
		for _, task := range schedule.Kinds() {
			if _, ok := e.TaskSeconds[task]; !ok {
				t.Errorf("line %d lacks task %s", i+1, task)
			}
		}
	}
	ghosts := int64(0)
	vertices := int64(0)
	for _, p := range r.Summary.PerRank {
		ghosts += p.Ghosts
		vertices += p.Vertices
		if p.PeakRSSBytes <= 0 {
			t.Errorf("rank %d reports no memory", p.Rank)
		}
	}
	if len(r.Summary.PerRank) != 4 || vertices != 400 || r.Summary.PerRank[3].Role != "server" {
		t.Errorf("ranks: %+v", r.Summary.PerRank)
	}
	if raw != r.Summary.GhostBytesRaw || raw == 0 || ghosts == 0 {
		t.Errorf("%d ghosts, %d bytes in lines, %d in the summary", ghosts, raw, r.Summary.GhostBytesRaw)
	}
	c.Force = false
	if err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard}); fault.KindOf(err) != fault.Usage {
		t.Errorf("a second run may write into the folder: %v", err)
	}
}

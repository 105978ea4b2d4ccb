package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/config"
	"siafu/ranks/trace"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
	"siafu/ranks/world/parts"
)

// trainSpread trains with parts on ranks as under a launcher: messages to parts of other
// ranks use the transport, although all ranks are in this process.
func trainSpread(t testing.TB, c Config, v world.View, data string) trained {
	t.Helper()
	err := inproc.Run(v.Started(), func(rank world.Comm) error {
		return parts.RunParts(rank, v, func(w world.Comm) error {
			return trainMember(c, data, v, w, "in-process")
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return readRun(t, c.Out)
}

// eight returns a run of eight parts.
func eight(t testing.TB, servers int) Config {
	c := quick(t)
	c.Epochs, c.Parts, c.Servers, c.Dropout, c.Layers, c.Intervals = 8, 8, servers, 0.5, 3, 3
	return c
}

// Eight parts on any number of ranks leave the bytes of eight graph ranks, with one server or
// none. The number of servers alternates, as do the runs in one process; SIAFU_BIG=1 runs all
// combinations.
func TestPartsOnAnyRanks(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	spread := map[string]func(*Config){
		"gcn":           func(c *Config) {},
		"gat":           func(c *Config) { c.Model, c.Heads = "gat", 2 },
		"sage":          func(c *Config) { c.Model = "sage" },
		"int8":          func(c *Config) { c.Codec = "int8" },
		"nopipe, int4":  func(c *Config) { c.Mode, c.Codec = "nopipe", "int4+ef" },
		"recurrent":     func(c *Config) { c.Refresh, c.Predict, c.PredictEvery = "previous:none", "gru-gcn", 2 },
		"predicted":     func(c *Config) { c.Refresh, c.Predict = "previous:none", "transfer" },
		"previous":      func(c *Config) { c.Refresh = "previous:none" },
		"delay":         func(c *Config) { c.Refresh, c.Codec = "delay:2", "int8" },
		"kept, patient": func(c *Config) { c.InputDropout, c.CacheInput, c.Patience = 0, "on", 2 },
		"powers kept":   func(c *Config) { c.Model, c.InputDropout, c.CacheInput = "sign", 0, "on" },
	}
	for k, name := range slices.Sorted(maps.Keys(hosttest.Share(t, 4, spread))) {
		t.Run(name, func(t *testing.T) {
			c := eight(t, 0)
			spread[name](&c)
			flat := c
			flat.Ranks, flat.Parts = 8, 0
			want := train(t, flat, data).model
			for i, ranks := range []int{1, 2, 3, 4, 8} {
				for servers := range 2 {
					if !hosttest.Sampled(4, i, k, servers) {
						continue
					}
					v := world.View{Parts: 8, Ranks: ranks, Servers: servers}
					c.Ranks, c.Servers = v.Started(), servers
					if got := trainSpread(t, c, v, data); !bytes.Equal(got.model, want) {
						t.Errorf("%+v: model.safetensors differs", v)
					}
				}
				if i != k%5 && !hosttest.Big() {
					continue
				}
				if got := train(t, c, data); !bytes.Equal(got.model, want) {
					t.Errorf("--ranks %d in process: model.safetensors differs", c.Ranks)
				}
			}
		})
	}
}

// A run resumed with the same parts on another number of ranks ends as one that never stopped;
// with other parts its losses differ by the order of sums.
func TestPartsResumeOnOtherRanks(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := eight(t, 0)
	c.Epochs = 40
	want := trainSpread(t, c, world.View{Parts: 8, Ranks: 3}, data)
	c.CheckpointEvery, c.Out = "5e", c.Out+"-resumed"
	for i, ranks := range []int{2, 8, 1, 3} {
		c.Epochs = []int{7, 10, 31, 40}[i]
		trainSpread(t, c, world.View{Parts: 8, Ranks: ranks}, data)
		c.Resume = "auto"
	}
	got := readRun(t, c.Out)
	sameLosses(t, "resumed", got.losses(), want.losses(), 0)
	if !bytes.Equal(got.model, want.model) {
		t.Error("the models differ")
	}
	c.Out, c.Epochs, c.Resume = c.Out+"-others", 20, ""
	train(t, c, data)
	c.Parts, c.Ranks, c.Epochs, c.Resume = 3, 2, 40, "auto"
	sameLosses(t, "other parts", train(t, c, data).losses(), want.losses(), 1e-4)
}

// Bounded asynchrony trains with parts too, with servers and with none.
func TestPartsAsync(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for servers := range 3 {
		c := asynchronous(quick(t), 1, 2)
		c.Epochs, c.Servers, c.Codec = 30, servers, "s2"
		r := trainSpread(t, c, world.View{Parts: 5, Ranks: 2, Servers: servers}, data)
		if len(r.Epochs) != 30 || !(r.Summary.FinalLoss < r.Epochs[0].Loss) {
			t.Errorf("%d servers: %d epochs, the loss goes from %g to %g", servers, len(r.Epochs), r.Epochs[0].Loss, r.Summary.FinalLoss)
		}
	}
}

// A codec is chosen with parts on ranks as it is with ranks.
func TestPartsAutoCodec(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Codec, c.Epochs, c.Hidden, c.EvalEvery = "auto", 60, 64, 0
	if r := trainSpread(t, c, world.View{Parts: 4, Ranks: 2}, generated(t, true)); r.Summary.Chosen == "" {
		t.Error("none was chosen")
	}
}

// Summary, reports, header and timeline distinguish ranks and parts.
func TestPartsAreReported(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := eight(t, 1)
	c.Trace = filepath.Join(t.TempDir(), "trace.json")
	c.Ranks, c.Threads, c.Quiet = 4, 5, false
	v := world.View{Parts: 8, Ranks: 3, Servers: 1}
	r := trainSpread(t, c, v, data)
	s := r.Summary
	if s.Ranks != 4 || s.Servers != 1 || s.Parts != 8 || s.Threads != 5 || len(s.PerRank) != 9 {
		t.Fatalf("summary: %+v", s)
	}
	for m, p := range s.PerRank {
		if p.Rank != v.Rank(m) || (p.Part == nil) != (m == 8) || p.Part != nil && *p.Part != m {
			t.Errorf("report %d: %+v", m, p)
		}
	}
	log, err := os.ReadFile(filepath.Join(c.Out, "log.txt"))
	if err != nil || !strings.Contains(string(log), "ranks=4 graph_ranks=3 servers=1 parts=8 threads=5 ") {
		t.Errorf("log.txt: %v\n%s", err, log)
	}
	f, err := trace.Read(c.Trace)
	if err != nil || len(f.Processes) != 9 ||
		!strings.HasPrefix(f.Processes[4].Name, "part 4 of rank 1 graph on ") || f.Info["ranks"] != "4" {
		t.Errorf("timeline: %v %+v", err, f)
	}
}

// The parts of a rank share its workers; each has at least one.
func TestPartsShareThreads(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ threads, parts, ranks, rank, of, rankThreads int }{
		{8, 4, 2, 0, 4, 8}, {5, 4, 2, 0, 3, 5}, {5, 4, 2, 1, 2, 5}, {1, 4, 2, 3, 1, 2}, {3, 2, 2, 1, 3, 3},
	} {
		err := inproc.Run(tc.parts, func(w world.Comm) error {
			r, err := assign(Config{RankOptions: config.RankOptions{Threads: tc.threads}}, world.View{Parts: tc.parts, Ranks: tc.ranks}, w)
			if w.Rank() == tc.rank && (r.threads != tc.of || r.rankThreads != tc.rankThreads) {
				t.Errorf("%+v: %d of %d", tc, r.threads, r.rankThreads)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Fewer parts than graph ranks are refused before anything is opened.
func TestTooFewParts(t *testing.T) {
	t.Parallel()
	c := config.Defaults()
	c.Parts, c.Ranks = 2, 4
	err := Train(context.Background(), c, "nowhere", IO{Out: io.Discard, Err: io.Discard})
	if fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), "--parts=2 for 3 graph ranks") {
		t.Errorf("%v", err)
	}
}

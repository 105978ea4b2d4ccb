package ranks

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/wire"
	"siafu/kernels/model"
	"siafu/ranks/params"
	"siafu/ranks/world"
)

// freely returns a fully asynchronous configuration.
func freely(c Config, ranks, servers int, policy string) Config {
	c.Mode, c.Ranks, c.Servers, c.Refresh = "free", ranks+servers, servers, policy
	return c
}

// On one rank the fully asynchronous run equals the synchronous one, with every network, with
// and without a server.
func TestFreeOfOneRankIsSynchronous(t *testing.T) {
	t.Parallel()
	for d, directed := range []bool{false, true} {
		data := generated(t, directed)
		for k, kind := range model.Kinds() {
			if model.KindOf(kind).Relational {
				continue // needs one epoch for all ranks
			}
			base := compared(t, 0)
			base.Model, base.LR, base.EvalEvery, base.Heads = kind, 0.005, 1, 2
			want := train(t, base, data)
			for servers := range 2 {
				if !hosttest.Sampled(2, d, k, servers) {
					continue
				}
				c := freely(base, 1, servers, "every:10")
				c.Out += "-free"
				got := train(t, c, data)
				sameLosses(t, fmt.Sprint(kind, directed, servers), got.losses(), want.losses(), 0)
			}
		}
	}
}

// "DIGEST-A ... converge[s] to high F1-score at the early stage" (DIGEST, §5): in the same
// number of epochs as synchronous DIGEST, four ranks learn about as much, or more because of
// four steps per epoch. They alternate, so that the scheduler has no influence. When each rank
// had its own optimiser, the loss was 0.19 worse.
func TestFreeLearnsAsInStep(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for servers := range 2 {
		c := compared(t, 0.5)
		c.Ranks, c.Servers, c.Partitioner, c.Refresh = 4, 0, "hash", "every:10"
		want := train(t, c, data).Summary.FinalLoss
		c = freely(c, 4, servers, "every:10")
		c.DelayBound, c.Out = 3, c.Out+"-free"
		if got := train(t, c, data).Summary.FinalLoss; !(got < want+0.05) {
			t.Errorf("%d servers: the loss is %v after as many epochs as take it to %v in step", servers, got, want)
		}
	}
}

// Under all kinds of delays no run stalls. With a bound, ranks roughly alternate and the loss
// falls; without, one rank may make all updates.
func TestFreeUnderHostileDelivery(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 9))
		graphRanks := 1 + rng.IntN(5)
		c := freely(quick(t), graphRanks, rng.IntN(2), []string{"always", "every:3"}[rng.IntN(2)])
		c.Model = []string{"gcn", "sage", "gin", "gat", "gatv2"}[seed%5]
		c.Epochs, c.Dropout, c.Layers, c.LR, c.CheckpointEvery = 30, 0, 1+rng.IntN(2), 0.03, "11e"
		if c.Model == "gin" { // sums of neighbours and long stale steps give dead ReLUs
			c.LR = 0.01
		}
		if seed%2 == 0 {
			c.DelayBound = graphRanks
		}
		t.Run(fmt.Sprintf("seed=%d %s %s bound=%d ranks=%d servers=%d", seed, c.Model, c.Refresh, c.DelayBound, graphRanks,
			c.Servers), func(t *testing.T) {
			err := launch(c.Ranks, world.Limits{Abort: hosttest.Patience}, IO{Out: io.Discard, Err: os.Stderr},
				func(w world.Comm, kind string) error {
					h := &hostile{Comm: w, rng: rand.New(rand.NewPCG(seed, uint64(w.Rank())))}
					return trainMember(c, data, world.View{}, h, kind)
				})
			if err != nil {
				t.Fatal(err)
			}
			numbered(t, readRun(t, c.Out), 30)
			if losses := readRun(t, c.Out).losses(); c.DelayBound > 0 && !(slices.Min(losses) < losses[0]-0.02) {
				t.Errorf("the losses are %v", losses)
			}
		})
	}
}

// numbered checks that the run has one line per epoch.
func numbered(t *testing.T, r trained, epochs int) {
	t.Helper()
	if len(r.Epochs) != epochs || r.Summary.Epochs != epochs {
		t.Fatalf("%d lines of %d epochs, want %d", len(r.Epochs), r.Summary.Epochs, epochs)
	}
	for i, e := range r.Epochs {
		if e.Epoch != i+1 {
			t.Fatalf("line %d tells of epoch %d", i+1, e.Epoch)
		}
	}
}

// standstill is a rank that pauses before it sends the gradients of its first epoch, until the
// run has trained a given number of epochs.
type standstill struct {
	world.Comm
	lines   string // metrics.jsonl
	epochs  int
	updates atomic.Int64 // sent by it
	stood   atomic.Bool  // paused, and saw these lines
}

func (s *standstill) Isend(buf []byte, dst, tag int) (world.Request, error) {
	if tag == params.TagAsync && len(buf) > 0 && buf[0] == byte(wire.Gradient) && buf[8]|buf[12] == 0 {
		if s.updates.Add(1); !s.stood.Load() && buf[4] == 1 {
			s.wait()
		}
	}
	return s.Comm.Isend(buf, dst, tag)
}

func (s *standstill) wait() {
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if text, err := os.ReadFile(s.lines); err == nil && bytes.Count(text, []byte("\n")) >= s.epochs {
			s.stood.Store(true)
			return
		}
	}
}

func (s *standstill) Sub(ranks []int) (world.Comm, error) { return s.Comm.Sub(ranks) }

// "Asynchronous, non-blocking ..., without blindly waiting for the slowest subgraph to finish"
// (DIGEST, §3.2): while one rank pauses in its first epoch, the others train 25 of the run's
// 30 epochs, and make its updates too.
func TestFreeWaitsForNoStraggler(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := freely(quick(t), 3, 1, "every:2")
	c.Epochs = 30
	var slow *standstill
	err := launch(c.Ranks, world.Limits{Abort: hosttest.Patience}, IO{Out: io.Discard, Err: os.Stderr},
		func(w world.Comm, kind string) error {
			if w.Rank() == 1 {
				slow = &standstill{Comm: w, lines: filepath.Join(c.Out, "metrics.jsonl"), epochs: 25}
				w = slow
			}
			return trainMember(c, data, world.View{}, w, kind)
		})
	if err != nil {
		t.Fatal(err)
	}
	if !slow.stood.Load() {
		t.Error("others have waited for the slow rank")
	}
	if n := slow.updates.Load(); n < 1 || n > 15 { // of the last 5 epochs
		t.Errorf("the slow rank has made %d updates", n)
	}
	numbered(t, readRun(t, c.Out), 30)
}

// A run stops between two epochs of the run, and resumes there, also synchronously.
func TestResumeFree(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for servers := range 2 {
		c := freely(saving(t, "7e"), 3, servers, "every:4")
		c.Epochs = 17
		numbered(t, train(t, c, data), 17)
		c.Epochs, c.Resume, c.Ranks = 30, "auto", 2+servers
		numbered(t, train(t, c, data), 30)
		c.Epochs, c.Mode, c.Refresh = 40, "pipe", "always"
		numbered(t, train(t, c, data), 40)
	}
}

// A run with a target accuracy stops on all ranks after the same epoch.
func TestFreeStops(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := freely(quick(t), 3, 1, "always")
	c.Epochs, c.Dropout, c.TargetAcc = 500, 0, 0.5
	got := train(t, c, data)
	if n := len(got.Epochs); got.Summary.StoppedBy != "target-acc" || n == 500 || n != got.Summary.Epochs {
		t.Errorf("stopped by %s after %d epochs, %d lines", got.Summary.StoppedBy, got.Summary.Epochs, n)
	}
}

// Invalid configurations are refused with a reason.
func TestFreeIsRefused(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Config){
		"previous":      func(c *Config) { c.Refresh = "previous:none" },
		"lag":           func(c *Config) { c.Refresh = "every:4,2" },
		"servers":       func(c *Config) { c.Servers = 2 },
		"auto":          func(c *Config) { c.Codec = "auto" },
		"feedback":      func(c *Config) { c.Codec = "int8+ef" },
		"lambda":        func(c *Config) { c.Tensor, c.Lambda = "lambda", "local" },
		"sums":          func(c *Config) { c.PreAggregate = "on" },
		"measured":      func(c *Config) { c.MeasureStaleness = 5 },
		"staleness":     func(c *Config) { c.Staleness = 1 },
		"rounds":        func(c *Config) { c.LocalEpochs = 2 },
		"bound in step": func(c *Config) { c.Mode, c.DelayBound = "pipe", 4 },
	} {
		c := freely(quick(t), 3, 1, "always")
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		set(&c)
		if err := c.Validate(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := freely(quick(t), 4, 1, "always")
	c.DelayBound = 2
	if err := ending(c, generated(t, false)); fault.KindOf(err) != fault.Usage {
		t.Errorf("a bound that cannot be kept: %v", err)
	}
}

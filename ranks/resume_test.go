package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/halo/refresh"
	"siafu/internal/fault"
	"siafu/internal/signals"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/ranks/checkpoint"
	"siafu/ranks/runfolder"
)

// saving returns a configuration that saves often.
func saving(t testing.TB, every string) Config {
	c := quick(t)
	c.Epochs, c.EvalEvery, c.CheckpointEvery = 40, 1, every
	return c
}

// A run that is stopped and resumed ends as one that never stopped: the same bits of the model
// and the same lines of metrics, for any optimiser, servers and mode.
func TestResumedIsNeverStopped(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	tested := map[string]bool{
		refresh.NameNever: true, // has no state to resume
		refresh.NameAuto:  true, // TestRefreshAutoGoesOn
	}
	commits := 4 // that test all cases
	if os.Getenv(kernels.CPUVariable) != "" {
		commits = 6 // on each older processor
	}
	cases := map[string]func(*Config){
		"one rank":        func(c *Config) {},
		"two servers":     func(c *Config) { c.Ranks, c.Servers = 5, 2 },
		"no server":       func(c *Config) { c.Ranks, c.Servers = 3, 0 },
		"momentum":        func(c *Config) { c.Optimizer, c.LR, c.Ranks = "sgd", 0.1, 3 },
		"plain sgd":       func(c *Config) { c.Optimizer, c.Momentum, c.LR = "sgd", 0, 0.1 },
		"adamw, nopipe":   func(c *Config) { c.Optimizer, c.Mode, c.Ranks, c.Servers = "adamw", "nopipe", 4, 1 },
		"int4":            func(c *Config) { c.Codec, c.Ranks = "int4", 4 },
		"gat":             func(c *Config) { c.Model, c.Heads, c.Ranks = "gat", 2, 3 },
		"gatv2":           func(c *Config) { c.Model, c.Heads, c.Ranks = "gatv2", 2, 3 },
		"gcnii":           func(c *Config) { c.Model, c.Layers, c.Ranks = "gcnii", 3, 3 },
		"sage-pool":       func(c *Config) { c.Model, c.PoolHidden, c.Norm, c.Ranks = "sage-pool", 5, "l2", 3 },
		"batch":           func(c *Config) { c.Norm, c.Activation, c.Ranks, c.Servers = "batch", "prelu", 3, 1 },
		"few evaluations": func(c *Config) { c.EvalEvery, c.Ranks = 7, 2 },
		"patience":        func(c *Config) { c.Patience, c.LR = 6, 0.05 },
		"on both":         func(c *Config) { c.Patience, c.Monitor, c.LR = 6, "both", 0.2 },
		"on loss":         func(c *Config) { c.Patience, c.Monitor, c.LR = 6, "loss", 0.2 },
		"on a metric":     func(c *Config) { c.Patience, c.Monitor, c.LR, c.Ranks = 6, "macro_f1", 0.2, 3 },
		"on the penalty":  func(c *Config) { c.Patience, c.Monitor, c.LR, c.WeightDecay, c.Ranks = 6, "penalised", 0.2, 0.05, 3 },
		"previous":        func(c *Config) { c.Ranks, c.Refresh = 4, "previous:none" },
		"previous, s2":    func(c *Config) { c.Ranks, c.Refresh, c.Codec, c.Mode = 4, "previous:none", "s2", "nopipe" },
		"smoothed":        func(c *Config) { c.Ranks, c.Refresh, c.Model = 3, "previous:GF0.9", "gat" },
		"gatv2, previous": func(c *Config) { c.Model, c.Heads, c.Ranks, c.Refresh = "gatv2", 2, 3, "previous:none" },
		"gatv2, every":    func(c *Config) { c.Model, c.Heads, c.Ranks, c.Refresh = "gatv2", 2, 3, "every:4,1" },
		"every":           func(c *Config) { c.Ranks, c.Refresh, c.EvalEvery = 4, "every:4", 3 },
		"every, late":     func(c *Config) { c.Ranks, c.Refresh, c.GhostGradients = 4, "every:6,5", "no" },
		"sample":          func(c *Config) { c.Ranks, c.Refresh, c.Codec = 4, "sample:0.3", "int4+ef" },
		"delay":           func(c *Config) { c.Ranks, c.Refresh, c.Model = 4, "delay:5", "sage" },
		"delay, int4+ef":  func(c *Config) { c.Ranks, c.Refresh, c.Codec = 4, "delay:3", "int4+ef" },
		"drift":           func(c *Config) { c.Ranks, c.Refresh, c.Dropout = 4, "drift:0.02,7", 0 },
		"age":             func(c *Config) { c.Ranks, c.Refresh, c.Model = 4, "age:4,0.9", "gin" },
		"predicted":       func(c *Config) { c.Ranks, c.Refresh, c.Predict, c.Layers = 4, "every:4,2", "transfer", 3 },
		"recurrent": func(c *Config) {
			c.Ranks, c.Refresh, c.Predict, c.Layers, c.PredictEvery = 3, "every:4", "lstm-gcn", 3, 2
		},
		"recurrent, held": func(c *Config) {
			c.Ranks, c.Refresh, c.Predict, c.PredictEvery, c.PredictHold, c.PredictInput = 3, "every:2,1", "lstm-gat", 3, true, "past"
		},
		"predicted, late": func(c *Config) { c.Ranks, c.Refresh, c.Predict, c.Model = 2, "delay:3", "transfer", "gat" },
		"compressed":      func(c *Config) { c.Ranks, c.Refresh, c.Predict, c.PredictHistory = 3, "delay:3", "transfer", "auto" },
		"predicted, age":  func(c *Config) { c.Ranks, c.Refresh, c.Predict, c.Dropout = 3, "age:3,0.9", "transfer", 0 },
		"predicted means": func(c *Config) { c.Ranks, c.Refresh, c.Predict, c.Codec = 3, "previous", "transfer", "int4+ef" },
		"whole rows":      func(c *Config) { c.Ranks, c.Refresh, c.RefreshRows, c.Layers = 3, "every:4", "whole", 3 },
		"int4+ef":         func(c *Config) { c.Ranks, c.Codec = 4, "int4+ef" },
		"gatv2, async": func(c *Config) {
			*c = asynchronous(*c, 1, 1)
			c.Model, c.Heads, c.Ranks, c.Servers = "gatv2", 2, 2, 1
		},
		"one interval async": func(c *Config) {
			*c = asynchronous(*c, 1, 1)
			c.Ranks, c.Servers = 2, 1
		},
	}
	for _, set := range cases {
		c := saving(t, "off")
		set(&c)
		policy, _, _ := strings.Cut(c.Refresh, ":")
		tested[policy] = true
	}
	for name, set := range hosttest.Share(t, commits, cases) {
		t.Run(name, func(t *testing.T) {
			c := saving(t, "off")
			if set(&c); c.Patience == 0 {
				c.Epochs = 24 // a policy's longest period four times
			}
			stopAndResume(t, c, data)
		})
	}
	for _, kind := range refresh.Kinds() {
		if tested[kind] {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			c := saving(t, "off")
			c.Epochs, c.Ranks, c.Refresh = 24, 4, kind
			if _, err := refresh.Parse(kind); err != nil {
				t.Fatalf("no run with --refresh %s goes on in this test: %v", kind, err)
			}
			stopAndResume(t, c, data)
		})
	}
}

// stopAndResume compares a run that is stopped and resumed twice with one that never stops.
func stopAndResume(t *testing.T, c Config, data string) {
	t.Helper()
	want := train(t, c, data)
	if c.Predicts() && want.Summary.Predictions == 0 {
		t.Error("no rows were predicted")
	}
	c.CheckpointEvery, c.Out = "5e", c.Out+"-resumed"
	for _, epochs := range []int{13, 14, c.Epochs} {
		c.Epochs = epochs
		train(t, c, data)
		c.Resume = "auto"
	}
	got := readRun(t, c.Out)
	sameLosses(t, "resumed", got.losses(), want.losses(), 0)
	if !bytes.Equal(got.model, want.model) {
		t.Error("the models differ")
	}
	if g, w := got.Summary, want.Summary; g.BestEpoch != w.BestEpoch || g.StoppedBy != w.StoppedBy || g.Epochs != w.Epochs ||
		g.GhostBytesRaw != w.GhostBytesRaw {
		t.Errorf("summary %+v, want %+v", g, w)
	}
}

// A checkpoint of seven ranks resumes on any number of ranks and servers, with another
// partition: the same losses except for the order of sums.
func TestResumeOnOtherRanks(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := saving(t, "off")
	c.Ranks, c.Servers = 7, 2
	want := train(t, c, data).losses()
	for _, after := range []struct {
		ranks, servers int
		partitioner    string
	}{{1, 0, ""}, {2, 1, "hash"}, {2, 0, "contiguous"}, {4, 0, "ldg"}, {4, 2, "multilevel"}} {
		t.Run(fmt.Sprintf("%+v", after), func(t *testing.T) {
			c := c
			c.CheckpointEvery, c.Epochs, c.Out = "10e", 20, filepath.Join(t.TempDir(), "run")
			train(t, c, data)
			c.Ranks, c.Servers, c.Partitioner, c.Epochs, c.Resume = after.ranks, after.servers, after.partitioner, 40, "auto"
			sameLosses(t, "resumed", train(t, c, data).losses(), want, 1e-4)
		})
	}
}

// Bounded asynchrony stops between two epochs and resumes there, also synchronously.
func TestResumeAsync(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, servers := range []int{0, 2} {
		c := asynchronous(saving(t, "7e"), 1, 3)
		c.Ranks, c.Servers, c.Epochs = 3+servers, servers, 17
		train(t, c, data)
		c.Epochs, c.Resume = 30, "auto"
		if got := len(train(t, c, data).Epochs); got != 30 {
			t.Errorf("%d servers: %d epochs", servers, got)
		}
		c.Epochs, c.Mode, c.Staleness = 40, "pipe", 0
		if got := len(train(t, c, data).Epochs); got != 40 {
			t.Errorf("%d servers: %d epochs in step", servers, got)
		}
	}
}

// stopAt trains until epoch, when a signal arrives on this process.
func stopAt(t *testing.T, c Config, data string, sig syscall.Signal, epoch int) error {
	t.Helper()
	lines := filepath.Join(c.Out, "metrics.jsonl")
	ended := make(chan error, 1)
	go func() { ended <- Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard}) }()
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if text, err := os.ReadFile(lines); err == nil && bytes.Count(text, []byte("\n")) >= epoch {
			break
		}
	}
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
	return <-ended
}

// SIGTERM ends the run after its epoch with code 75 and a checkpoint, from which it resumes as
// if it had never stopped. SIGUSR1 writes a checkpoint.
func TestSignals(t *testing.T) {
	keep := signals.Watch(signals.Options{}) // no signal may kill the tests between two runs
	defer keep.Close()
	data := generated(t, false)
	for name, set := range map[string]func(*Config){
		"one rank": func(c *Config) {},
		"servers":  func(c *Config) { c.Ranks, c.Servers = 4, 1 },
		"async":    func(c *Config) { *c = asynchronous(*c, 0, 2); c.Ranks, c.Servers = 3, 1 },
		"free":     func(c *Config) { *c = freely(*c, 2, 1, "every:3") },
		"rounds":   func(c *Config) { c.Ranks, c.LocalEpochs, c.Refresh = 4, 7, "never" },
	} {
		t.Run(name, func(t *testing.T) {
			c := saving(t, "10m")
			c.Epochs = 4000
			set(&c)
			err := stopAt(t, c, data, syscall.SIGTERM, 5)
			if fault.ExitCode(err) != 75 || !strings.Contains(err.Error(), "--resume auto") {
				t.Fatalf("%v", err)
			}
			state, _, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
			if err != nil || state == nil || state.Epoch < 5 {
				t.Fatalf("%+v %v", state, err)
			}
			c.Epochs, c.Resume = state.Epoch+14, "auto"
			got := train(t, c, data)
			if c.Asynchronous() {
				return
			}
			c.Resume, c.CheckpointEvery, c.Out = "", "off", c.Out+"-undisturbed"
			want := train(t, c, data)
			if !bytes.Equal(got.model, want.model) {
				t.Error("the models differ")
			}
		})
	}
	t.Run("USR1", func(t *testing.T) {
		c := saving(t, "off")
		c.Epochs, c.Ranks, c.Servers = 1<<20, 3, 1 // until it is stopped
		saved := make(chan int, 1)
		go func() {
			defer func() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }()
			for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if state, _, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir)); err == nil && state != nil {
					saved <- state.Epoch
					return
				}
			}
			saved <- 0
		}()
		if err := stopAt(t, c, data, syscall.SIGUSR1, 5); fault.KindOf(err) != fault.Stopped {
			t.Fatal(err)
		}
		if epoch := <-saved; epoch < 5 {
			t.Errorf("a checkpoint of epoch %d", epoch)
		}
	})
}

// A damaged checkpoint is skipped with a warning; if all are damaged the run refuses. It also
// refuses different settings, and a second writer of a folder.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := saving(t, "5e")
	c.Epochs, c.Keep, c.Ranks = 15, 2, 2
	train(t, c, data)
	c.Epochs, c.Resume = 20, "auto"
	attempt := func(c Config) (string, error) {
		var said bytes.Buffer
		err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: &said})
		return said.String(), err
	}
	other := c
	other.LR, other.Hidden = 0.5, 9
	if _, err := attempt(other); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "lr") ||
		!strings.Contains(err.Error(), "hidden") {
		t.Errorf("another rate: %v", err)
	}
	missing := c
	missing.Resume = filepath.Join(c.Out, "nothing")
	if _, err := attempt(missing); fault.KindOf(err) != fault.Missing {
		t.Errorf("nothing there: %v", err)
	}
	lock, err := runfolder.Acquire(c.Out, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	hurried := c
	hurried.Force, hurried.Resume = true, ""
	if _, err := attempt(hurried); fault.KindOf(err) != fault.Usage {
		t.Errorf("a folder in use: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	harm := func(epoch int) {
		path := filepath.Join(c.Out, checkpoint.Dir, fmt.Sprintf("epoch-%06d", epoch), "optimizer.safetensors")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 4
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	harm(15)
	if said, err := attempt(c); err != nil || !strings.Contains(said, "epoch-000015") {
		t.Errorf("the newest is damaged: %q %v", said, err)
	}
	c.Epochs = 25
	harm(15)
	harm(20)
	if _, err := attempt(c); fault.KindOf(err) != fault.Data {
		t.Errorf("all are damaged: %v", err)
	}
}

// A resumed run keeps its first weights: another initializer is refused, and a file of weights
// is ignored.
func TestResumeWithAnotherInitializer(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := saving(t, "5e")
	c.Epochs, c.Initializer = 10, "xavier"
	train(t, c, data)
	c.Epochs, c.Initializer, c.Resume = 20, "he", "auto"
	err := ending(c, data)
	if fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), `initializer is "xavier" in the checkpoint and "he" now`) {
		t.Errorf("%v", err)
	}
	c.Init = filepath.Join(c.Out, "model.safetensors")
	train(t, c, data)
}

// A run that has ended is not resumed if its model is missing or damaged: the error names the file.
func TestEndedWithoutModel(t *testing.T) {
	c := quick(t)
	c.Epochs = 1
	data := generated(t, false)
	train(t, c, data)
	c.Resume = "auto"
	again := func() error { return Train(t.Context(), c, data, IO{Out: io.Discard, Err: io.Discard}) }
	if err := again(); err != nil {
		t.Errorf("an ended run: %v", err)
	}
	model, err := os.ReadFile(modelFile(c.Out))
	if err != nil {
		t.Fatal(err)
	}
	model[len(model)-1] ^= 1
	if err := os.WriteFile(modelFile(c.Out), model, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := again(); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "remove summary.json") {
		t.Errorf("a damaged model: %v", err)
	}
	if err := os.Remove(modelFile(c.Out)); err != nil {
		t.Fatal(err)
	}
	if err := again(); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "remove summary.json") {
		t.Errorf("a missing model: %v", err)
	}
}

package ranks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/ranks/checkpoint"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
)

// exploding returns a configuration with unbounded growth of weights.
func exploding(t testing.TB, lr float64) Config {
	c := quick(t)
	c.Optimizer, c.Momentum, c.LR, c.Epochs = "sgd", 0, lr, 40
	return c
}

// ending trains and returns the error.
func ending(c Config, data string) error {
	return Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
}

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// If any value becomes NaN or infinite, the run ends with its own exit code and reports the
// place and the remedy. Its folder is complete: lines of metrics up to the last good epoch, a
// summary, the best weights, and no checkpoint with NaN or infinity.
func TestDiverges(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	modes := map[string]func(*Config){
		"pipe":                func(c *Config) {},
		"nopipe, two servers": func(c *Config) { c.Mode, c.Ranks, c.Servers = "nopipe", 5, 2 },
		"no server":           func(c *Config) { c.Ranks, c.Servers = 3, 0 },
		"async":               func(c *Config) { *c = asynchronous(*c, 1, 2); c.Ranks, c.Servers = 4, 2 },
		"async, no server":    func(c *Config) { *c = asynchronous(*c, 0, 2); c.Ranks, c.Servers = 2, 0 },
		"free":                func(c *Config) { *c = freely(*c, 3, 1, "every:2") },
		"int8":                func(c *Config) { c.Ranks, c.Codec = 3, "int8" },
		"gat":                 func(c *Config) { c.Model, c.Ranks = "gat", 2 },
	}
	for name, mode := range modes {
		for _, tc := range []struct {
			name  string
			lr    float64
			set   func(*Config)
			model bool
		}{
			{"at once", 1e30, func(c *Config) {}, true},
			{"weights are infinite", 1e40, func(c *Config) {}, true},
			{"in the closing evaluation only", 1e30, func(c *Config) { c.Epochs = 1 }, true},
			{"infinite weights at the end", 1e40, func(c *Config) { c.Epochs = 1 }, true},
			{"between two evaluations", 1e30, func(c *Config) { c.EvalEvery = 7 }, true},
			{"before any evaluation", 1e30, func(c *Config) { c.EvalEvery = 0 }, false},
			{"no dropout", 1e30, func(c *Config) { c.Dropout = 0 }, true},
			{"checkpoints", 1e40, func(c *Config) { c.CheckpointEvery = "1e" }, true},
			{"slowly", 1e4, func(c *Config) { c.CheckpointEvery = "1e" }, true},
		} {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				c := exploding(t, tc.lr)
				mode(&c)
				tc.set(&c)
				err := ending(c, data)
				if fault.ExitCode(err) != 76 || !strings.Contains(err.Error(), "--lr") || !strings.Contains(err.Error(), "layers.") ||
					!strings.Contains(err.Error(), "in epoch ") {
					t.Fatalf("exit %d: %v", fault.ExitCode(err), err)
				}
				checkDiverged(t, c.Out, tc.model || c.Asynchronous()) // whose passes are all evaluations
			})
		}
	}
}

// checkDiverged checks the folder of a run that has diverged.
func checkDiverged(t *testing.T, dir string, model bool) {
	t.Helper()
	r, err := runfolder.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Summary
	if s.StoppedBy != stopping.ByDivergence || s.Epochs != len(r.Epochs) || s.Epochs < 1 || (s.BestEpoch > 0) != model {
		t.Errorf("stopped by %q after %d epochs with %d lines, best %d", s.StoppedBy, s.Epochs, len(r.Epochs), s.BestEpoch)
	}
	for _, e := range r.Epochs {
		if !finite(e.Loss) || e.ValLoss != nil && !finite(*e.ValLoss) {
			t.Errorf("epoch %d: %+v", e.Epoch, e)
		}
	}
	if _, err := os.Stat(r.Model); (err == nil) != model {
		t.Errorf("there is a model: %v, want %t", err, model)
	}
	files, _ := filepath.Glob(filepath.Join(dir, checkpoint.Dir, "*", "*.safetensors"))
	if model {
		files = append(files, r.Model)
	}
	for _, f := range files {
		list, _, err := safetensors.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if slices.ContainsFunc(x.Data, func(v float32) bool { return !finite(float64(v)) }) &&
				!strings.HasSuffix(f, "optimizer.safetensors") {
				t.Errorf("%s: %s holds what is no number", f, x.Name)
			}
		}
	}
}

// The saved weights are those of a run that ended before.
func TestDivergedKeepsTheBest(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := exploding(t, 1e4)
	c.Ranks = 3
	if err := ending(c, data); fault.KindOf(err) != fault.Diverged {
		t.Fatal(err)
	}
	got := readRun(t, c.Out)
	c.Epochs, c.Out = got.Summary.BestEpoch-1, c.Out+"-in-time"
	want := train(t, c, data)
	if want.Summary.BestEpoch != got.Summary.BestEpoch || !bytes.Equal(got.model, want.model) {
		t.Errorf("best %d, of a run that ended in time %d; equal: %t", got.Summary.BestEpoch, want.Summary.BestEpoch,
			bytes.Equal(got.model, want.model))
	}
}

// If the first weights give NaN, the error does not blame the learning rate.
func TestDivergedFromTheBeginning(t *testing.T) {
	t.Parallel()
	for name, vertex := range map[string]uint8{"training": graph.SplitTrain, "validation": graph.SplitVal} {
		for _, mode := range []string{"pipe", "async"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				content := randomContent(60, 3)
				for v, s := range content.Split {
					if s == vertex {
						for k := range 8 {
							content.Features.Dense[8*v+k] = math.MaxFloat32
						}
						break
					}
				}
				c := quick(t)
				c.Model, c.Layers, c.Hidden, c.Mode = "mlp", 2, 64, mode
				err := ending(c, write(t, content))
				if fault.ExitCode(err) != 76 || !strings.Contains(err.Error(), "features") || strings.Contains(err.Error(), "--lr") {
					t.Fatalf("exit %d: %v", fault.ExitCode(err), err)
				}
				if strings.Contains(err.Error(), "validation") != (name == "validation") {
					t.Errorf("%v", err)
				}
				if s := runfolder.Ended(c.Out); s == nil || s.BestEpoch != 0 || s.Epochs != 0 {
					t.Errorf("summary %+v", s)
				}
			})
		}
	}
}

// A run that has diverged is not resumed: the same command reports the same error, and changes
// nothing.
func TestDivergedIsNotResumed(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := exploding(t, 1e4)
	c.CheckpointEvery = "1e"
	if err := ending(c, data); fault.KindOf(err) != fault.Diverged {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(c.Out, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	c.Resume = "auto"
	if err := ending(c, data); fault.ExitCode(err) != 76 || !strings.Contains(err.Error(), "--lr") {
		t.Errorf("%v", err)
	}
	if after, err := os.ReadFile(filepath.Join(c.Out, "summary.json")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the summary has changed: %v", err)
	}
}

// Each line of metrics and the summary are JSON to any reader.
func TestDivergedFilesAreJSON(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := exploding(t, 1e4)
	if err := ending(c, data); fault.KindOf(err) != fault.Diverged {
		t.Fatal(err)
	}
	for _, name := range []string{runfolder.Metrics, "summary.json"} {
		text, err := os.ReadFile(filepath.Join(c.Out, name))
		if err != nil {
			t.Fatal(err)
		}
		for in := json.NewDecoder(bytes.NewReader(text)); in.More(); {
			var v map[string]any
			if err := in.Decode(&v); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", name, err))
			}
		}
	}
}

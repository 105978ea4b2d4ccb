package engine

import (
	"cmp"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/ranks/config"
	"siafu/ranks/params"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
	"siafu/ranks/trace"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// dataset returns a small directed graph in one part.
func dataset(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "planted")
	o := generate.Options{Vertices: 400, Edges: 3000, Features: 12, Classes: 4, Seed: 5, Directed: true}
	if _, err := generate.Write(dir, o, false); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.Run(dir, partition.Options{Method: "hash", Parts: 1, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// silent is a reporter that discards everything.
type silent struct{}

func (silent) Epoch(runfolder.Epoch, tensor.Spent) error { return nil }
func (silent) Note(string)                               {}

// alone calls do with the engine of a world's only rank, which trains with configuration c and
// its own weights.
func alone(t testing.TB, c config.Config, data string, do func(*Engine, params.Source) error) {
	t.Helper()
	err := inproc.Run(1, func(w world.Comm) error {
		meta, err := graph.ReadMeta(data)
		if err != nil {
			return err
		}
		part, err := shard.Open(data, 1, 0)
		if err != nil {
			return err
		}
		defer part.Close()
		codecs, err := c.Codecs()
		if err != nil {
			return err
		}
		r := Rank{
			Problem:  Problem{Config: c, Shard: part, Network: c.Network(meta.FeatureDim, meta.Classes), Codecs: codecs},
			Comms:    Comms{World: w, Peers: w, Graph: w},
			Machine:  Machine{Tensor: tensor.CPU{}, Arena: mapped.NewArena(), Threads: cmp.Or(c.Threads, 2)},
			Reporter: silent{},
		}
		defer r.Arena.Free()
		c.Orders(&r.Network, meta, true)
		if c.Trace != "" {
			for worker := range r.Threads {
				r.Recorders = append(r.Recorders, trace.NewRecorder(worker, trace.Capacity))
			}
		}
		e, err := New(r)
		if err != nil {
			return err
		}
		defer e.Close()
		weights := mapped.Make[float32](r.Arena, r.Network.NumWeights())
		r.Network.Initialize(weights, "xavier", c.Seed)
		u, err := params.NewUpdater(c.OptimizerConfig(), r.Network, false, nil, e.Fork(), r.Arena)
		if err != nil {
			return err
		}
		return do(e, params.NewReplicated(w, r.Network, weights, u, r.Arena))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// After the first epoch, an epoch allocates nothing on the garbage-collected
// heap: neither forward, nor backward, nor the update.
func TestEpochAllocatesNothing(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("the race detector makes pools drop their contents")
	}
	data := dataset(t)
	for name, set := range map[string]func(*config.Config){
		"plain":            func(*config.Config) {},
		"dropout":          func(c *config.Config) { c.Dropout = 0.5 },
		"three layers":     func(c *config.Config) { c.Layers = 3 },
		"bf16":             func(c *config.Config) { c.Gather, c.Features = "bf16", "bf16" },
		"gather first":     func(c *config.Config) { c.Order, c.CacheInput = "gather-first", "off" },
		"sage":             func(c *config.Config) { c.Model, c.Layers = "sage", 3 },
		"gin":              func(c *config.Config) { c.Model, c.Layers = "gin", 3 },
		"powers kept":      func(c *config.Config) { c.Model, c.CacheInput = "sign", "on" },
		"powers gathered":  func(c *config.Config) { c.Model, c.CacheInput = "sign", "off" },
		"perceptron":       func(c *config.Config) { c.Model = "mlp" },
		"input not cached": func(c *config.Config) { c.CacheInput = "off" },
		"made again":       func(c *config.Config) { c.Order, c.CacheInput, c.Layers, c.Recompute = "gather-first", "off", 5, true },
		"timeline":         func(c *config.Config) { c.Trace = "trace.json" },
		"its kernels":      func(c *config.Config) { c.Trace, c.Threads, c.Hidden, c.Intervals = "trace.json", 1, 128, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Defaults()
			c.Dropout = 0
			set(&c)
			alone(t, c, data, func(e *Engine, source params.Source) error { return countAllocations(t, e, source) })
		})
	}
}

// countAllocations trains epochs without metrics.
func countAllocations(t *testing.T, e *Engine, source params.Source) error {
	tr, err := e.trainer(source, nil, Memory(e.Config, 1))
	if err != nil {
		return err
	}
	last, ended := 1, 0
	tr.before = hooks{func(e *epochState) (bool, error) { return e.line.Epoch > last, nil }}
	tr.after = hooks{tr.sumLoss, func(*epochState) (bool, error) { ended++; return false, nil }}
	epoch := func() {
		err = errors.Join(err, tr.loop(last))
		last++
	}
	epoch()
	runtime.GC()
	if n := kerneltest.Allocs(epoch); n != 0 {
		t.Errorf("%v allocations per epoch, want 0", n)
	}
	if ended != last-1 {
		t.Errorf("%d epochs, want %d", ended, last-1)
	}
	return err
}

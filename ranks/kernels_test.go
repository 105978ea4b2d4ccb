package ranks

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// Every variant of the kernels trains as plain Go does: a sum of float32 in
// another order, or with fewer roundings, differs by some 1e-7.
func TestLossIndependentOfKernels(t *testing.T) {
	for _, directed := range []bool{false, true} {
		data := generated(t, directed)
		reference := fifty(t, 0.5)
		reference.Kernel = "go"
		want := train(t, reference, data).losses()
		for _, kernel := range append(kernels.Variants(), "auto") {
			t.Run(kernel, func(t *testing.T) {
				c := fifty(t, 0.5)
				c.Kernel = kernel
				sameLosses(t, kernel, train(t, c, data).losses(), want, 1e-4)
			})
		}
	}
}

// The same on the features and edges of a real graph.
func TestLossIndependentOfKernelsOnCora(t *testing.T) {
	data := real(t, "cora")
	reference := fifty(t, 0.5)
	reference.Kernel = "go"
	sameLosses(t, "cora", train(t, fifty(t, 0.5), data).losses(), train(t, reference, data).losses(), 1e-4)
}

// Rows rounded to 8 bits of mantissa (2^-9 relative, either way) move the loss
// a little, and a float32 run not at all; ranks agree on the rounded rows as on
// exact ones, since each row is rounded where it is gathered.
func TestHalfGathersStayNear(t *testing.T) {
	data := generated(t, true)
	exact := train(t, fifty(t, 0), data).losses()
	c := fifty(t, 0)
	c.Gather = "bf16"
	half := train(t, c, data).losses()
	sameLosses(t, "bf16", half, exact, 1e-2)
	if half[20] == exact[20] {
		t.Error("bf16 changes nothing at all")
	}
	c.Features = "bf16"
	half = train(t, c, data).losses()
	sameLosses(t, "bf16 features too", half, exact, 1e-2)
	c.Ranks, c.Servers, c.Out = 4, 1, c.Out+"4"
	// A gradient row that a rank sums from parts is rounded after another sum,
	// and may fall to the other side: one step of bfloat16 in few elements.
	sameLosses(t, "bf16 on 3 graph ranks", train(t, c, data).losses(), half, 1e-3)
}

// errCounted ends a run whose trainer has been looked at.
var errCounted = errors.New("counted")

// After the first epoch, an epoch allocates nothing on the garbage-collected
// heap: neither forward, nor backward, nor the update.
func TestEpochAllocatesNothing(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("the race detector makes pools forget what they hold")
	}
	for name, set := range map[string]func(*Config){
		"plain":            func(*Config) {},
		"dropout":          func(c *Config) { c.Dropout = 0.5 },
		"three layers":     func(c *Config) { c.Layers = 3 },
		"bf16":             func(c *Config) { c.Gather, c.Features = "bf16", "bf16" },
		"gather first":     func(c *Config) { c.Order, c.CacheInput = "gather-first", "off" },
		"sage":             func(c *Config) { c.Model, c.Layers = "sage", 3 },
		"gin":              func(c *Config) { c.Model, c.Layers = "gin", 3 },
		"perceptron":       func(c *Config) { c.Model = "mlp" },
		"input not cached": func(c *Config) { c.CacheInput = "off" },
		"timeline":         func(c *Config) { c.Trace = filepath.Join(c.Out, "trace.json") },
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Dropout, c.Threads = 0, 2
			set(&c)
			data := generated(t, true)
			err := launch(1, world.Limits{}, IO{Out: io.Discard, Err: os.Stderr}, func(w world.Comm, kind string) error {
				r := &run{cfg: c, data: data, kind: kind, world: w, arena: mapped.NewArena()}
				defer r.close()
				return countAllocations(t, r)
			})
			if !errors.Is(err, errCounted) {
				t.Fatal(err)
			}
		})
	}
}

// countAllocations trains epochs as trainer.train does, without its metrics.
func countAllocations(t *testing.T, r *run) error {
	if err := errors.Join(r.open(IO{Out: io.Discard, Err: os.Stderr}), r.join(), r.arrange()); err != nil {
		return err
	}
	weights, err := r.initialWeights()
	if err != nil {
		return err
	}
	source, err := r.source(0, weights)
	if err != nil {
		return err
	}
	tr := r.engine.trainer(source, nil)
	if tr.net.CacheInput {
		if err := r.engine.keepInput(tr.intervals, nil, r.arena); err != nil {
			return err
		}
	}
	line := runfolder.Epoch{}
	epoch := func() {
		line.Epoch++
		err = errors.Join(err, tr.pull(line.Epoch), tr.step(&line, false))
	}
	epoch()
	runtime.GC()
	if n := testing.AllocsPerRun(5, epoch); n != 0 {
		t.Errorf("%v allocations an epoch", n)
	}
	return errors.Join(err, errCounted)
}

package ranks

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/world"
)

// guarded makes the workers of a rank compute in memory that Go code cannot read.
func guarded(r *member) {
	var first *kerneltest.Guarded
	r.ops = func() (kernels.Ops, error) {
		if first != nil {
			return first.Fork(), nil
		}
		team := kernels.NewTeam(1)
		first = kerneltest.NewGuarded(team)
		return first, team.Use(r.cfg.KernelVariant())
	}
}

// trainGuarded trains with matrices that Go code outside of the arithmetic cannot read.
func trainGuarded(t testing.TB, c Config, data string) trained {
	t.Helper()
	return trainWith(t, c, data, guarded)
}

// trainWith trains with the arithmetic that place sets for each rank.
func trainWith(t testing.TB, c Config, data string, place func(*member)) trained {
	t.Helper()
	c.Initializer = model.Spec{Kind: c.Model}.Initializer(c.Initializer) // as Train does
	inWorld(t, c, data, place, (*member).train)
	return readRun(t, c.Out)
}

// inWorld runs body on the members of an in-process world, with the arithmetic set by place.
func inWorld(t testing.TB, c Config, data string, place func(*member), body func(*member) error) {
	t.Helper()
	if err := runMembers(c, data, IO{Out: io.Discard, Err: os.Stderr}, place, body); err != nil {
		t.Fatal(err)
	}
}

// runMembers runs body on the members of an in-process world. place changes each of them first.
func runMembers(c Config, data string, out IO, place func(*member), body func(*member) error) error {
	return launch(max(c.Ranks, 1), world.Limits{}, out, func(w world.Comm, kind string) error {
		r := newMember(c, data, world.View{}, w, kind, out)
		defer r.views.close()
		defer r.close()
		place(r)
		return body(r)
	})
}

// trainMember trains as a member of the world w of a view, which each of place changes first.
func trainMember(c Config, data string, v world.View, w world.Comm, kind string, place ...func(*member)) error {
	r := newMember(c, data, v, w, kind, IO{Out: io.Discard, Err: os.Stderr})
	for _, change := range place {
		change(r)
	}
	r.limits = limitsOf(v, world.Limits{})
	defer r.views.close()
	defer r.close()
	return r.train()
}

// A run accesses matrices only through kernels.Ops: if Go code cannot read them, every network
// in every order has the same bits.
func TestArithmeticElsewhere(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	all := networks(t)
	for k, name := range slices.Sorted(maps.Keys(all)) {
		for ranks := 1; ranks <= 3; ranks++ {
			if !hosttest.Sampled(3, k, ranks) {
				continue
			}
			t.Run(fmt.Sprint(name, " ranks=", ranks), func(t *testing.T) {
				c := all[name]
				c.Ranks, c.Servers, c.Intervals = ranks, ranks/3, 3
				alikeElsewhere(t, c, data)
			})
		}
	}
}

// The same for all other users of matrices: codecs, rows and ÂX in bfloat16, sums for other
// ranks, sparse features, masks, optimisers on ranks and servers, and evaluations.
func TestOptionsElsewhere(t *testing.T) {
	t.Parallel()
	undirected, directed, sparse := generated(t, false), generated(t, true), bag(t)
	for name, set := range hosttest.Share(t, 3, map[string]func(c *Config) (data string){
		"int8":           func(c *Config) string { c.Codec = "int8"; return directed },
		"int4+ef":        func(c *Config) string { c.Codec, c.Servers = "int4+ef", 0; return directed },
		"polyline":       func(c *Config) string { c.Codec, c.Model = "polyline", "sage"; return undirected },
		"bf16, zstd":     func(c *Config) string { c.Codec, c.Gather = "bf16+zstd", "bf16"; return undirected },
		"adaptive":       func(c *Config) string { c.Codec, c.Mode = "adaptive", "nopipe"; return undirected },
		"half rows":      func(c *Config) string { c.Gather, c.Features = "bf16", "bf16"; return undirected },
		"sums":           func(c *Config) string { c.PreAggregate, c.CacheInput = "on", "off"; return undirected },
		"sums, int4":     func(c *Config) string { c.PreAggregate, c.Codec, c.Model = "on", "int4", "gin"; return directed },
		"sparse":         func(c *Config) string { c.CacheInput = "off"; return sparse },
		"sparse, masked": func(c *Config) string { c.InputDropout, c.Model = 0.3, "sage"; return sparse },
		"sparse, spread": func(c *Config) string { c.Order, c.CacheInput = "gather-first", "off"; return sparse },
		"sparse, kept":   func(c *Config) string { c.CacheInput = "on"; return sparse },
		"masks": func(c *Config) string {
			c.Model, c.Heads, c.Dropout, c.InputDropout, c.AttentionDropout = "gat", 2, 0.4, 0.2, 0.3
			return directed
		},
		"attention, int8": func(c *Config) string { c.Model, c.Codec, c.Servers = "gat", "int8", 0; return undirected },
		"gcnii":           func(c *Config) string { c.Model = "gcnii"; return directed },
		"appnp, int8":     func(c *Config) string { c.Model, c.Hops, c.Codec = "appnp", 3, "int8"; return undirected },
		"sgc":             func(c *Config) string { c.Model, c.CacheInput = "sgc", "off"; return sparse },
		"sgc, kept":       func(c *Config) string { c.Model, c.CacheInput, c.Features = "sgc", "on", "bf16"; return directed },
		"sign":            func(c *Config) string { c.Model, c.CacheInput, c.Dropout = "sign", "off", 0.2; return undirected },
		"sign, kept":      func(c *Config) string { c.Model, c.CacheInput, c.Dropout = "sign", "on", 0.2; return sparse },
		"initial, gat":    func(c *Config) string { c.Model, c.Residual = "gat", "initial"; return undirected },
		"batch, prelu":    func(c *Config) string { c.Norm, c.Activation = "batch", "prelu"; return undirected },
		"l2, sage-pool":   func(c *Config) string { c.Norm, c.Model, c.PoolHidden = "l2", "sage-pool", 5; return sparse },
		"max, gin":        func(c *Config) string { c.Jumping, c.Model = "max", "gin"; return directed },
		"cat, gat":        func(c *Config) string { c.Jumping, c.Model = "cat", "gat"; return undirected },
		"pair, sage":      func(c *Config) string { c.Norm, c.Model = "pair", "sage"; return directed },
		"layer":           func(c *Config) string { c.Norm, c.Activation = "layer", "gelu"; return directed },
		"momentum":        func(c *Config) string { c.Optimizer, c.LR, c.Servers = "sgd", 0.1, 0; return undirected },
		"adamw":           func(c *Config) string { c.Optimizer, c.Servers = "adamw", 0; return undirected },
		"two servers":     func(c *Config) string { c.Ranks, c.Servers = 4, 2; return undirected },
		"previous":        func(c *Config) string { c.Refresh, c.Codec = "previous:none", "int8"; return undirected },
		"previous, gat":   func(c *Config) string { c.Refresh, c.Model, c.Dropout = "previous:none", "gat", 0.2; return directed },
		"previous, gatv2": func(c *Config) string { c.Refresh, c.Model, c.Heads = "previous:none", "gatv2", 2; return directed },
		"smoothed":        func(c *Config) string { c.Refresh, c.Model = "previous:GF0.5", "gat"; return directed },
		"every":           func(c *Config) string { c.Refresh, c.PreAggregate = "every:2,1", "on"; return undirected },
		"sample":          func(c *Config) string { c.Refresh, c.Codec = "sample:0.5", "int8"; return undirected },
		"sample, gat":     func(c *Config) string { c.Refresh, c.Model = "sample:0.5", "gat"; return directed },
		"delay":           func(c *Config) string { c.Refresh, c.Model = "delay:2", "sage"; return directed },
		"drift":           func(c *Config) string { c.Refresh, c.Codec = "drift:0.5,3", "int4+ef"; return undirected },
		"age":             func(c *Config) string { c.Refresh, c.Model = "age:3,0.5", "gin"; return undirected },
		"no gradients":    func(c *Config) string { c.GhostGradients = "no"; return directed },
		"never":           func(c *Config) string { c.Refresh = "never"; return directed },
		"few evaluations": func(c *Config) string { c.EvalEvery, c.Dropout = 3, 0.5; return undirected },
	}) {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Layers, c.Hidden, c.Epochs, c.Threads, c.Ranks, c.Servers, c.Intervals = 3, 8, 4, 2, 4, 1, 3
			c.CheckpointEvery = "off"
			data := set(&c)
			alikeElsewhere(t, c, data)
		})
	}
}

// alikeElsewhere compares training in guarded and in Go memory.
func alikeElsewhere(t *testing.T, c Config, data string) {
	t.Helper()
	want := train(t, c, data)
	c.Out += "-elsewhere"
	got := trainGuarded(t, c, data)
	sameLosses(t, "elsewhere", got.losses(), want.losses(), 0)
	if !bytes.Equal(got.model, want.model) {
		t.Error("model.safetensors differs")
	}
}

// A run saved with guarded memory resumes with guarded or Go memory as if it had never
// stopped, and predicts the same.
func TestCheckpointsElsewhere(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, servers := range []int{0, 2} {
		for _, kind := range []string{"gcn", "gat"} {
			t.Run(fmt.Sprint(kind, " servers=", servers), func(t *testing.T) {
				c := saving(t, "off")
				c.Model, c.Ranks, c.Servers, c.Epochs, c.Dropout = kind, 3+servers, servers, 12, 0.2
				want := train(t, c, data)
				c.CheckpointEvery, c.Out = "3e", c.Out+"-elsewhere"
				for _, part := range []struct {
					epochs int
					train  func(testing.TB, Config, string) trained
				}{{4, trainGuarded}, {8, trainGuarded}, {10, train}, {12, trainGuarded}} {
					c.Epochs = part.epochs
					part.train(t, c, data)
					c.Resume = "auto"
				}
				got := readRun(t, c.Out)
				sameLosses(t, "resumed", got.losses(), want.losses(), 0)
				if !bytes.Equal(got.model, want.model) {
					t.Error("model.safetensors differs")
				}
				predictElsewhere(t, c.Out, data)
			})
		}
	}
}

// predictElsewhere compares the numbers of a prediction.
func predictElsewhere(t *testing.T, dir, data string) {
	t.Helper()
	want, got := predict(t, dir, data, 2), filepath.Join(t.TempDir(), "elsewhere")
	p := PredictConfig{Ranks: 2, Weights: modelFile(dir), Out: got, Embeddings: true, CSV: true, ByClass: true, Parquet: true}
	var c Config
	c.Ranks, c.Mode, c.Codec, c.Kernel = 2, "pipe", "none", "auto"
	inWorld(t, c, data, guarded, func(r *member) error {
		_, err := r.predict(p, memoryGate{"predict", false, r.out.Err})
		return err
	})
	files, err := os.ReadDir(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !f.Type().IsRegular() || filepath.Ext(f.Name()) == ".json" { // the latter holds the time
			continue
		}
		a, errA := os.ReadFile(filepath.Join(want, f.Name()))
		b, errB := os.ReadFile(filepath.Join(got, f.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v, %v", f.Name(), errA, errB)
		}
	}
}

// Bounded asynchrony in guarded memory equals the synchronous run if nothing can be stale. It
// saves, resumes, and switches to synchronous training, where every rank takes over the hosted
// server's state.
func TestAsyncElsewhere(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, kind := range []string{"gcn", "gat", "sage"} {
		t.Run(kind, func(t *testing.T) {
			c := asynchronous(saving(t, "off"), 1, 1)
			c.Model, c.Epochs, c.Ranks, c.Servers = kind, 6, 1, 0
			alikeElsewhere(t, c, data)
			for _, servers := range []int{0, 1} {
				c := asynchronous(saving(t, "4e"), 1, 3)
				c.Model, c.Epochs, c.Ranks, c.Servers, c.Codec = kind, 8, 3+servers, servers, "int8"
				trainGuarded(t, c, data)
				c.Epochs, c.Resume = 12, "auto"
				if got := len(trainGuarded(t, c, data).Epochs); got != 12 {
					t.Errorf("%d servers: %d epochs", servers, got)
				}
				c.Epochs, c.Mode, c.Staleness = 15, "pipe", 0
				if got := len(trainGuarded(t, c, data).Epochs); got != 15 {
					t.Errorf("%d servers: %d epochs in step", servers, got)
				}
			}
		})
	}
	c := asynchronous(saving(t, "off"), 1, 2)
	c.Ranks, c.Servers, c.Epochs, c.SwitchToSync, c.TargetAcc = 3, 0, 10, 0.9, 0.95
	trainGuarded(t, c, data)
}

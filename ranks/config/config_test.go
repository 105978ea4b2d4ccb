package config

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// Every value that makes no sense is a usage fault that names its flag.
func TestValidate(t *testing.T) {
	d := Defaults()
	if err := d.Validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for flag, set := range map[string]func(*Config){
		"pipeline":               func(c *Config) { c.Pipeline, c.Batch = "2,", "cluster:4" },
		"pipeline ":              func(c *Config) { c.Pipeline = "2" }, // without clusters
		"pipeline of neighbours": func(c *Config) { c.Pipeline, c.Batch = "2", "neighbor:5,5" },
		"pipeline of histories":  func(c *Config) { c.Pipeline, c.Batch = "2", "history:4" },
		"pipeline too deep":      func(c *Config) { c.Pipeline, c.Batch = "3", "cluster:4" },
		"pipeline of ranks":      func(c *Config) { c.Pipeline, c.Batch, c.Ranks, c.Servers = "2", "cluster:4", 3, 0 },
		"pipeline of parts":      func(c *Config) { c.Pipeline, c.Batch, c.Parts, c.Ranks, c.Servers = "2", "cluster:4", 2, 2, 0 },
		"microbatches":           func(c *Config) { c.Pipeline, c.Batch, c.Microbatches = "2", "cluster:4", 0 },
		"microbatches ":          func(c *Config) { c.Pipeline, c.Batch, c.Microbatches = "2", "cluster:4", 3 },
		"microbatches  ":         func(c *Config) { c.Microbatches = 2 },
		"schedule":               func(c *Config) { c.Pipeline, c.Batch, c.Schedule = "2", "cluster:4", "zb-h1" },
		"schedule ":              func(c *Config) { c.Schedule = "gpipe" },
		"balance":                func(c *Config) { c.Balance = "memory" },
		"balance ":               func(c *Config) { c.Pipeline, c.Batch, c.Balance = "2", "cluster:4", "time" },
		"redundancy":             func(c *Config) { c.Redundancy = "eflb" },
		"redundancy ":            func(c *Config) { c.Pipeline, c.Batch, c.Redundancy = "1", "cluster:4", "eflb" },
		"mode of pipelines":      func(c *Config) { c.Pipeline, c.Batch, c.Mode = "2", "cluster:4", "free" },
		"tensor of pipelines":    func(c *Config) { c.Pipeline, c.Batch, c.Tensor = "2", "cluster:4", "cuda" },
		"ranks":                  func(c *Config) { c.Ranks = -1 },
		"parts":                  func(c *Config) { c.Parts = -1 },
		"parts too few":          func(c *Config) { c.Parts, c.Ranks, c.Servers = 2, 4, 0 },
		"servers":                func(c *Config) { c.Servers = -2 },
		"threads":                func(c *Config) { c.Threads = -1 },
		"layers":                 func(c *Config) { c.Layers = 0 },
		"alpha":                  func(c *Config) { c.Model, c.Alpha = "appnp", 0 },
		"theta":                  func(c *Config) { c.Model, c.Theta = "gcnii", math.Inf(1) },
		"steps":                  func(c *Config) { c.Model, c.Powers = "sign", 0 },
		"layers   ":              func(c *Config) { c.Model, c.Layers = "sign", 1 },
		"hops":                   func(c *Config) { c.Model, c.Hops = "appnp", 0 },
		"inner-decay":            func(c *Config) { c.Model, c.InnerDecay = "gcnii", -1 },
		"residual":               func(c *Config) { c.Model, c.Residual = "gcnii", "add" },
		"residual ":              func(c *Config) { c.Residual = "add" }, // of two layers
		"activation":             func(c *Config) { c.Model, c.Activation = "sgc", "elu" },
		"jumping":                func(c *Config) { c.Model, c.Jumping = "appnp", "cat" },
		"norm":                   func(c *Config) { c.Model, c.Norm = "sgc", "layer" },
		"norm ":                  func(c *Config) { c.Layers, c.Norm = 1, "layer" },
		"norm  ":                 func(c *Config) { c.Norm, c.Mode = "batch", "async" },
		"norm   ":                func(c *Config) { c.Norm, c.Refresh = "pair", "previous" },
		"norm    ":               func(c *Config) { c.Norm, c.LocalEpochs = "batch", 3 },
		"norm     ":              func(c *Config) { c.Norm, c.Tensor, c.Lambda = "batch", "lambda", "local" },
		"norm      ":             func(c *Config) { c.Norm, c.Tensor, c.GraphWork = "pair", "cuda", "cpu" },
		"norm of attention":      func(c *Config) { c.Model, c.Norm = "gat", "l2" },
		"norm ball of gatv2":     func(c *Config) { c.Model, c.Norm = "gatv2", "ball" },
		"pool-hidden":            func(c *Config) { c.Model, c.PoolHidden = "sage-pool", -1 },
		"pool-hidden of others":  func(c *Config) { c.Model, c.PoolHidden = "sage-max", 8 },
		"batch    ":              func(c *Config) { c.Norm, c.Batch = "batch", "history:4" },
		"batch  ":                func(c *Config) { c.Model, c.Batch = "sgc", "cluster:4" },
		"batch of sign":          func(c *Config) { c.Model, c.Batch = "sign", "history:4" },
		"batch of one hop":       func(c *Config) { c.Model, c.Hops, c.Batch = "appnp", 1, "neighbor:5,5,5" },
		"batch of cached sums":   func(c *Config) { c.Jumping, c.Layers, c.Batch = "cat", 1, "variates:4,2" },
		"batch   ":               func(c *Config) { c.Model, c.Batch = "appnp", "neighbor:5,5" },
		"refresh  of gatv2":      func(c *Config) { c.Model, c.Refresh = "gatv2", "sample:0.5" },
		"layers  ":               func(c *Config) { c.Model, c.Layers, c.Hops = "appnp", 30_000, 60_000 },
		"input-scale":            func(c *Config) { c.InputScale = 0 },
		"recipe":                 func(c *Config) { c.Recipe = "gat-coral" },
		"defaults":               func(c *Config) { c.Defaults = "none" },
		"hidden":                 func(c *Config) { c.Hidden = 0 },
		"dropout":                func(c *Config) { c.Dropout = 1 },
		"input-dropout":          func(c *Config) { c.InputDropout = -0.5 },
		"epochs":                 func(c *Config) { c.Epochs = -1 },
		"lr":                     func(c *Config) { c.LR = math.NaN() },
		"momentum":               func(c *Config) { c.Momentum = 1 },
		"weight-decay":           func(c *Config) { c.WeightDecay = math.Inf(1) },
		"eval-every":             func(c *Config) { c.EvalEvery = -1 },
		"patience":               func(c *Config) { c.Patience, c.EvalEvery = 5, 0 },
		"target-acc":             func(c *Config) { c.TargetAcc = 81 },
		"mode":                   func(c *Config) { c.Mode = "fast" },
		"codec":                  func(c *Config) { c.Codec = "gzip" },
		"pre-aggregate":          func(c *Config) { c.PreAggregate = "maybe" },
		"codec to choose":        func(c *Config) { c.Codec = "auto:int3" },
		"codec of async":         func(c *Config) { c.Codec, c.Mode = "auto", "async" },
		"precision":              func(c *Config) { c.Precision = "half" },
		"precision of gather":    func(c *Config) { c.Precision, c.Gather = "mixed", "float32" },
		"precision of products":  func(c *Config) { c.Precision, c.Products = "mixed", "float32" },
		"products on GPUs":       func(c *Config) { c.Products, c.Tensor = "bf16", "cuda" },
		"products in functions":  func(c *Config) { c.Products, c.Tensor = "bf16", "lambda" },
		"precision of features":  func(c *Config) { c.Precision, c.Features = "mixed", "float32" },
		"tensor":                 func(c *Config) { c.Tensor = "tpu" },
		"graph":                  func(c *Config) { c.GraphWork = "tpu" },
		"cuda-blas":              func(c *Config) { c.Tensor, c.CUDABLAS = "cuda", "mkl" },
		"cuda-blas alone":        func(c *Config) { c.CUDABLAS = "own" },
		"graph alone":            func(c *Config) { c.GraphWork = "cuda" },
		"graph of lambda":        func(c *Config) { c.Tensor, c.Lambda, c.GraphWork = "lambda", "local", "cuda" },
		"tensor nowhere":         func(c *Config) { c.Tensor = "lambda" },
		"tensor here":            func(c *Config) { c.Lambda = "local" },
		"tensor unused":          func(c *Config) { c.LambdaFunction = "f" },
		"lambda":                 func(c *Config) { c.Tensor, c.Lambda = "lambda", "azure" },
		"tensor openblas":        func(c *Config) { c.Tensor, c.Lambda, c.Kernel = "lambda", "aws", "openblas" },
		"lambda-memory":          func(c *Config) { c.Tensor, c.Lambda, c.LambdaMemory = "lambda", "aws", 64 },
		"lambda-limits":          func(c *Config) { c.Tensor, c.Lambda, c.LambdaLimits = "lambda", "local", "some" },
		"lambda-limits 2":        func(c *Config) { c.Tensor, c.Lambda, c.LambdaLimits = "lambda", "aws", "memory" },
		"lambda-limits 3":        func(c *Config) { c.LambdaFaults = "crash=0.1" },
		"lambda-faults":          func(c *Config) { c.Tensor, c.Lambda, c.LambdaFaults = "lambda", "local", "crash=1.5" },
		"tensor for aws":         func(c *Config) { c.Tensor, c.Lambda = "lambda", "aws" },
		"tensor bridge":          func(c *Config) { c.BridgeAddress = "127.0.0.1:0" },
		"bridge-address":         func(c *Config) { c.Tensor, c.Lambda, c.BridgeAddress = "lambda", "local", "here" },
		"bridge-address ":        func(c *Config) { c.Tensor, c.Lambda, c.BridgeAddress = "lambda", "aws", ":0,a:1,b:2" },
		"lambda-arch":            func(c *Config) { c.Tensor, c.Lambda, c.LambdaArch = "lambda", "aws", "mips" },
		"lambda-arch local":      func(c *Config) { c.Tensor, c.Lambda, c.LambdaArch = "lambda", "local", "arm64" },
		"budget":                 func(c *Config) { c.Instance, c.Budget = "1", "0" },
		"budget negative":        func(c *Config) { c.Instance, c.Budget = "1", "-2" },
		"budget of what":         func(c *Config) { c.Budget = "2" },
		"lambda-at-once":         func(c *Config) { c.LambdaAtOnce = -1 },
		"lambda-at-once unused":  func(c *Config) { c.LambdaAtOnce = 3 },
		"model":                  func(c *Config) { c.Model = "GCN" },
		"initializer":            func(c *Config) { c.Initializer = "zero" },
		"order":                  func(c *Config) { c.Order = "random" },
		"vertex-order":           func(c *Config) { c.VertexOrder = "random" },
		"cache-input":            func(c *Config) { c.CacheInput = "yes" },
		"recompute-ghosts":       func(c *Config) { c.RecomputeGhosts = "lost" },
		"recompute-ghosts async": func(c *Config) { c.RecomputeGhosts, c.Mode = "all", "async" },
		"recompute-ghosts stale": func(c *Config) { c.RecomputeGhosts, c.Refresh = "all", "sample:0.5" },
		"optimizer":              func(c *Config) { c.Optimizer = "rmsprop" },
		"weight-decay-on":        func(c *Config) { c.WeightDecayOn = "none" },
		"stall-warn":             func(c *Config) { c.StallWarn = "soon" },
		"instance":               func(c *Config) { c.Instance = "c5n.3xlarge" },
		"lost-after":             func(c *Config) { c.LostAfter = "1ms" },
		"listen":                 func(c *Config) { c.Survive, c.Listen = true, "10.0.0.1" },
		"stall-abort":            func(c *Config) { c.StallAbort = "-1s" },
	} {
		t.Run(flag, func(t *testing.T) {
			c := Defaults()
			set(&c)
			err := c.Validate()
			if fault.KindOf(err) != fault.Usage || !names(err, strings.Fields(flag)[0]) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A precision sets those of its options that were not given, also if it is settled repeatedly.
func TestPrecision(t *testing.T) {
	for _, tc := range []struct{ precision, gather, tensor, wantGather, wantFeatures, wantProducts string }{
		{"float32", "", "cpu", "float32", "float32", "float32"}, {"float32", "bf16", "cpu", "bf16", "float32", "float32"},
		{"mixed", "", "cpu", "bf16", "bf16", "bf16"}, {"mixed", "bf16", "cpu", "bf16", "bf16", "bf16"},
		{"mixed", "", "cuda", "bf16", "bf16", "float32"},
	} {
		c := Defaults()
		c.Precision, c.Gather, c.Tensor = tc.precision, tc.gather, tc.tensor
		for range 2 {
			err := c.Validate()
			if err != nil || c.Gather != tc.wantGather || c.Features != tc.wantFeatures || c.Products != tc.wantProducts {
				t.Errorf("%+v: gather %s, features %s, products %s, %v", tc, c.Gather, c.Features, c.Products, err)
			}
		}
	}
}

// The remedy for --batch with relations is the same for every value.
func TestBatchOfRelations(t *testing.T) {
	for _, batch := range []string{"512", "history:4"} {
		c := Defaults()
		c.Model, c.Batch = "rgcn", batch
		if err := c.Validate(); !strings.HasSuffix(fmt.Sprint(err), "; leave --batch out: batches have edges without relations") {
			t.Error(err)
		}
	}
}

// The number of servers follows from the size of the world unless it is given,
// and never exceeds that of graph ranks.
func TestServers(t *testing.T) {
	for _, tc := range []struct {
		asked, size, want int
		fails             bool
	}{
		{-1, 1, 0, false}, {-1, 2, 0, false}, {-1, 3, 1, false}, {-1, 7, 1, false},
		{0, 7, 0, false}, {3, 6, 3, false}, {2, 3, 0, true}, {1, 1, 0, true},
	} {
		c := Defaults()
		c.Servers = tc.asked
		v, err := c.View(tc.size)
		if (err != nil) != tc.fails || v.Servers != tc.want {
			t.Errorf("--servers %d in a world of %d: %+v, %v", tc.asked, tc.size, v, err)
		}
		if err != nil && fault.KindOf(err) != fault.Config {
			t.Errorf("--servers %d in a world of %d: kind of %v", tc.asked, tc.size, err)
		}
	}
	for _, mode := range []string{"async", Free} {
		c := Defaults()
		c.Mode = mode
		if v, err := c.View(2); err != nil || v.Servers != 1 {
			t.Errorf("two ranks in mode %s: %+v, %v", mode, v, err)
		}
	}
}

// A delay that cannot be read is refused before anything begins.
func TestDelayOfNonsense(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "1:20ms:0.25": true, "*:1s:1": true, "1:20ms": false, "x:1s:1": false,
		"-1:1s:1": false, "1:-1s:1": false, "1:fast:1": false, "1:1s:2": false, "1:1s:NaN": false,
	} {
		c := Defaults()
		c.Delay = text
		if err := c.Validate(); ok != (err == nil) || !ok && fault.KindOf(err) != fault.Usage {
			t.Errorf("--delay=%q: %v", text, err)
		}
	}
}

// Sums that were asked for are made, or refused.
func TestSumsAreRefused(t *testing.T) {
	for model, mode := range map[string]string{"gat": "pipe", "sage-max": "pipe", "mlp": "pipe", "gcn": "async", "sage": "free"} {
		c := Defaults()
		c.Model, c.Mode, c.PreAggregate = model, mode, "on"
		if err := c.Validate(); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "leave") ||
			!strings.Contains(err.Error(), "pre-aggregate") {
			t.Errorf("%s %s: %v", model, mode, err)
		}
	}
}

// A value that no longer exists is refused with the values that replace it.
func TestRemovedValues(t *testing.T) {
	for _, removed := range []struct {
		set  func(*Config)
		says []string
	}{
		{func(c *Config) { c.VertexOrder = "rcm" }, []string{`--vertex-order="rcm"`, "use rabbit or natural"}},
		{func(c *Config) { c.Predict, c.Refresh = "linear", "every:4" },
			[]string{"--predict=linear", "set --predict transfer, or momentum:B"}},
	} {
		c := Defaults()
		removed.set(&c)
		err := c.Validate()
		for _, says := range removed.says {
			if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), says) {
				t.Errorf("%v; it must say %q", err, says)
			}
		}
	}
}

// names reports whether an error names an option as the command line has it.
func names(err error, option string) bool {
	form := "--" + option + "[ =]"
	if p, ok := PartOf(option); ok {
		form = "--" + p.Flag + "[ =]([^ ]*[:,])?" + p.Name + "="
	}
	return regexp.MustCompile(form).MatchString(err.Error())
}

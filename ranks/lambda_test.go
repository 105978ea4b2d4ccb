package ranks

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/functiontest"
	"siafu/internal/testkit/hosttest"
	"siafu/lambda"
	"siafu/lambda/endpoint"
	"siafu/lambda/local"
	"siafu/ranks/config"
	"siafu/ranks/tensor"
)

// invoked trains with every tensor task in invocations of the function, through the real
// client and the local service. It returns the statistics of the ranks' services and backends.
func invoked(t testing.TB, c Config, data, path string, change func(*functions)) (got trained, stats local.Stats, counts tensor.Counts) {
	t.Helper()
	c.Tensor, c.Lambda, c.LambdaFunction = config.TensorLambda, config.LambdaLocal, path
	var mu sync.Mutex
	var backends []tensor.Backend
	var all []*functions
	inWorld(t, c, data, func(r *member) {
		r.functions = func(f *functions) {
			mu.Lock()
			defer mu.Unlock()
			f.repeatAfter = f.attemptTimeout // on a busy machine any attempt may take long
			if change != nil {
				change(f)
			}
			all = append(all, f)
		}
		r.backend = func(r *joined) tensor.Backend {
			b, err := r.invoke()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			backends = append(backends, b)
			return b
		}
	}, (*member).train)
	got = readRun(t, c.Out)
	for _, f := range all {
		if f.service == nil { // its tasks go through a bridge
			continue
		}
		n := f.service.Stats()
		stats = local.Stats{Invocations: stats.Invocations + n.Invocations, Throttled: stats.Throttled + n.Throttled,
			Failed: stats.Failed + n.Failed, Refused: stats.Refused + n.Refused, Started: stats.Started + n.Started,
			Relayed: stats.Relayed + n.Relayed, Struck: stats.Struck}
		for k := range n.Struck {
			stats.Struck[k] += n.Struck[k]
		}
	}
	for _, backend := range backends {
		if b, ok := backend.(*tensor.Remote); ok {
			n := b.Counts()
			counts = tensor.Counts{Sent: counts.Sent + n.Sent, Again: counts.Again + n.Again, Failed: counts.Failed + n.Failed,
				Dropped: counts.Dropped + n.Dropped, Damaged: counts.Damaged + n.Damaged, Bytes: counts.Bytes + n.Bytes, Pool: counts.Pool}
			counts.Pool.Submitted += n.Pool.Submitted
			counts.Pool.Invoked += n.Pool.Invoked
			counts.Pool.Used += n.Pool.Used
			counts.Pool.Retried += n.Pool.Retried
			counts.Pool.Local += n.Pool.Local
		}
	}
	return got, stats, counts
}

// endpoints collects the functions settings of all ranks, after change.
type endpoints struct {
	all    []*functions
	change func(*functions)
}

func (e *endpoints) add(f *functions) {
	if e.change != nil {
		e.change(f)
	}
	e.all = append(e.all, f)
}

// stats returns the sum of the data endpoints' statistics.
func (e *endpoints) stats() (sum endpoint.Stats) {
	for _, f := range e.all {
		if f.bridge == nil {
			continue
		}
		b := f.bridge.Stats()
		sum.Fetched += b.Fetched
		sum.Answered += b.Answered
		sum.BytesOut += b.BytesOut
		sum.MostHeld = max(sum.MostHeld, b.MostHeld)
		for k, n := range b.Refused {
			sum.Refused[k] += n
		}
	}
	return sum
}

// lambdaNetworks are the networks that are trained in functions.
var lambdaNetworks = map[string]func(*Config){
	"gcn":  func(c *Config) { c.Layers = 3 },
	"gat":  func(c *Config) { c.Model, c.Heads = "gat", 2 },
	"sage": func(c *Config) { c.Model, c.Kernel = "sage", "go" },
}

// Training in functions gives the bits of training on the ranks, and its files have the number
// of invocations.
func TestLambdaIsCPU(t *testing.T) {
	t.Parallel()
	data, path := parted(t, generated(t, true)), functiontest.Build(t)
	seed := hosttest.Turn(t, 2)
	for k, name := range slices.Sorted(maps.Keys(lambdaNetworks)) {
		set := lambdaNetworks[name]
		for ranks := 1; ranks <= 2; ranks++ {
			if !hosttest.Sampled(2, k, ranks, seed) {
				continue
			}
			t.Run(fmt.Sprintf("%s on %d", name, ranks), func(t *testing.T) {
				c := quick(t)
				c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads, c.EvalEvery = 4, ranks, 0, 3, 2, 2
				set(&c)
				want := train(t, c, data)
				c.Out += "-lambda"
				var ends endpoints
				got, s, n := invoked(t, c, data, path, ends.add)
				b := ends.stats()
				if !bytes.Equal(got.model, want.model) {
					t.Error("the model is another one")
				}
				sameLosses(t, "lambda", got.losses(), want.losses(), 0)
				if s.Invocations != n.Sent || s.Failed+s.Throttled+s.Refused+n.Again > 0 || s.Started > 3*ranks {
					t.Errorf("%+v for %v", s, n)
				}
				if b.Fetched != n.Sent || b.Answered != n.Sent || b.BytesOut != n.Bytes || b.Refusals() > 0 {
					t.Errorf("%+v for %v", b, n)
				}
				var inEpochs int64
				for _, e := range got.Epochs {
					if e.LambdaInvocations == 0 {
						t.Errorf("epoch %d has no invocation", e.Epoch)
					}
					inEpochs += e.LambdaInvocations
				}
				if sum := got.Summary.LambdaInvocations; sum != int64(n.Sent) || inEpochs > sum || want.Summary.LambdaInvocations != 0 {
					t.Errorf("%d invocations in the summary, %d in epochs, and %d tasks", sum, inEpochs, n.Sent)
				}
			})
		}
	}
}

// Other losses than plain classification work in functions: weighted labels, regression, and
// smoothed classes give the bits and scores of a run on the CPU.
func TestLambdaTasks(t *testing.T) {
	t.Parallel()
	path := functiontest.Build(t)
	classes := generated(t, true)
	labels, _ := taskGraph(t, graph.MultiLabel)
	quantities, _ := taskGraph(t, graph.Regression)
	for data, set := range map[string]func(*Config){
		classes: func(c *Config) { c.LabelSmoothing = 0.1 }, labels: func(c *Config) { c.ClassWeights = "balanced" },
		quantities: func(c *Config) { c.Norm = "layer" },
	} {
		c := quick(t)
		c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads = 4, 2, 0, 2, 2
		set(&c)
		want := train(t, c, data)
		c.Out += "-lambda"
		got, _, n := invoked(t, c, data, path, nil)
		if !bytes.Equal(got.model, want.model) || n.Sent == 0 {
			t.Errorf("%s: the model is another one, or %d tasks were sent", want.Summary.Task, n.Sent)
		}
		sameLosses(t, want.Summary.Task, got.losses(), want.losses(), 0)
		if a, b := got.Summary.TestAccAtBestVal, want.Summary.TestAccAtBestVal; a != b {
			t.Errorf("%s: a score of %v, want %v", want.Summary.Task, a, b)
		}
	}
}

// Bounded asynchrony on one rank with one interval is the synchronous run.
func TestLambdaAsync(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := asynchronous(quick(t), 0, 1)
	c.Epochs, c.Ranks, c.Servers = 4, 1, 0
	want := train(t, c, data)
	c.Out += "-lambda"
	got, _, n := invoked(t, c, data, functiontest.Build(t), nil)
	if !bytes.Equal(got.model, want.model) || got.Summary.LambdaInvocations != int64(n.Sent) || got.Epochs[1].LambdaInvocations == 0 {
		t.Errorf("the model is another one, or %d invocations are counted of %v", got.Summary.LambdaInvocations, n)
	}
}

// Invocations that crash, are late, lost or rejected cost time and money but change no bit. A late
// response is not a late result, because the function has pushed the result.
func TestLambdaFaults(t *testing.T) {
	t.Parallel()
	data, path := parted(t, generated(t, true)), functiontest.Build(t)
	for name, set := range hosttest.Share(t, 3, lambdaNetworks) { // TestLambdaIsCPU trains all
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			c := quick(t)
			c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads = 2, 2, 0, 4, 2
			set(&c)
			want := train(t, c, data)
			c.Out += "-lambda"
			ends := endpoints{change: func(f *functions) {
				f.attemptTimeout, f.attempts, f.concurrency, f.fallsBack = 300*time.Millisecond, 40, 4, false
				f.local.Timeout, f.local.Concurrency = 400*time.Millisecond, 2
				f.local.Faults = local.Faults{Seed: 3, Crash: 0.06, Late: 0.05, Lose: 0.03, Delay: 450 * time.Millisecond}
			}}
			got, s, n := invoked(t, c, data, path, ends.add)
			b := ends.stats()
			t.Logf("%v; %+v; %+v", n, s, b)
			if !bytes.Equal(got.model, want.model) {
				t.Error("the model is another one")
			}
			sameLosses(t, "lambda", got.losses(), want.losses(), 0)
			if s.Failed == 0 || s.Throttled == 0 || n.Failed == 0 || s.Started <= 4 {
				t.Error("the test shows nothing")
			}
			if b.Answered < n.Sent {
				t.Errorf("%d results for %d tasks", b.Answered, n.Sent)
			}
			if got.Summary.LambdaInvocations < int64(n.Sent) {
				t.Errorf("%d invocations are counted of %d", got.Summary.LambdaInvocations, s.Invocations)
			}
		})
	}
}

// Tasks too large for a payload are streamed between endpoint and function.
func TestLambdaLarge(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := quick(t)
	c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads, c.Hidden, c.CacheInput = 2, 1, 0, 1, 1, 4000, "off"
	want := train(t, c, data)
	c.Out += "-lambda"
	var ends endpoints
	got, _, n := invoked(t, c, data, functiontest.Build(t), ends.add)
	b := ends.stats()
	if !bytes.Equal(got.model, want.model) || b.Refusals() > 0 {
		t.Errorf("the model is another one: %v %+v", n, b)
	}
	if b.MostHeld < lambda.MaxPayload {
		t.Errorf("%d bytes at a time: the test shows nothing", b.MostHeld)
	}
}

// A fixed number of concurrent invocations is obeyed.
func TestLambdaAtOnce(t *testing.T) {
	t.Parallel()
	data, path := parted(t, generated(t, true)), functiontest.Build(t)
	c := quick(t)
	c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads, c.LambdaAtOnce = 2, 1, 0, 4, 2, 1
	got, s, _ := invoked(t, c, data, path, nil)
	if n := got.Summary.PerRank[0].LambdaAtOnce; s.Started != 1 || s.Throttled != 0 || n == nil || n.First != 1 ||
		n.Most != 1 || n.Changes != 0 {
		t.Errorf("%d sandboxes, %d turned away, %+v", s.Started, s.Throttled, n)
	}
	c.LambdaAtOnce = 0
	got, _, _ = invoked(t, c, data, path, nil)
	if n := got.Summary.PerRank[0].LambdaAtOnce; n == nil || n.First != 4 || n.Most != 4 {
		t.Errorf("%+v with 4 intervals and 2 workers", n)
	}
}

// lambdaError returns the error of a run in functions.
func lambdaError(t *testing.T, c Config, data string, change func(*functions)) error {
	t.Helper()
	return runMembers(c, data, IO{Out: io.Discard, Err: io.Discard}, func(r *member) { r.functions = change }, (*member).train)
}

// A task or a result too large for the data endpoint ends the run with the remedy. A function that
// always fails ends it with the function's error.
func TestLambdaRefuses(t *testing.T) {
	t.Parallel()
	data, path := parted(t, generated(t, true)), functiontest.Build(t)
	c := quick(t)
	c.Tensor, c.Lambda, c.LambdaFunction, c.Epochs, c.Intervals = config.TensorLambda, config.LambdaLocal, path, 2, 1
	var seen *functions
	watch := func(f *functions) { seen, f.endpoint.Memory = f, 2*6_000_000 }

	c.Hidden, c.CacheInput = 4000, "off" // 400 rows of it are 6.4 MB, the weights 0.2 MB
	err := lambdaError(t, c, data, watch)
	for _, says := range []string{"attempt 1 at", "result of a task", "--intervals"} {
		if fault.ExitCode(err) != 78 || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("a large result: exit %d, %v; it does not say %s", fault.ExitCode(err), err, says)
		}
	}

	c.Hidden = 200_000 // weights of 9.6 MB
	if err := lambdaError(t, c, data, watch); fault.ExitCode(err) != 78 || !strings.Contains(fmt.Sprint(err), "--intervals") ||
		seen.bridge.Stats().Fetched > 0 {
		t.Errorf("a large task: %v, %+v", err, seen.bridge.Stats())
	}

	c.Hidden, c.LambdaFunction = 16, "/bin/false"
	err = lambdaError(t, c, data, func(f *functions) { seen = f; f.attempts, f.fallsBack = 3, false })
	if err == nil || !strings.Contains(err.Error(), "attempt 3") || !strings.Contains(err.Error(), "exit status 1") ||
		seen.service.Stats().Started < 3 {
		t.Errorf("a function that always fails: %v", err)
	}
}

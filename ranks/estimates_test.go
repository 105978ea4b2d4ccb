package ranks

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/ranks/engine"
	"siafu/ranks/forecast"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
)

// counting is a reliable transport to another process that counts tasks and their bytes.
type counting struct {
	*chaos
	tasks, to, from atomic.Int64
}

// Send implements tensor.Transport.
func (c *counting) Send(message []byte) error {
	go func() {
		result := c.work(message)
		c.tasks.Add(1)
		c.to.Add(int64(len(message)))
		c.from.Add(int64(len(result)))
		c.give(result)
	}()
	return nil
}

// A plan estimates exactly the tasks that a run sends, and the bytes of tasks and results.
func TestInvocationsAreEstimated(t *testing.T) {
	t.Parallel()
	dense, sparse := parted(t, generated(t, true)), parted(t, bagOf(t, 3300))
	cases := hosttest.Share(t, 2, map[string]func(*Config){
		"gcn":                  func(c *Config) { c.Layers = 3 },
		"gcn without dropout":  func(c *Config) { c.Layers, c.Dropout = 3, 0 },
		"sage, every third":    func(c *Config) { c.Model, c.Dropout, c.EvalEvery = "sage", 0, 3 },
		"gat, no evaluation":   func(c *Config) { c.Model, c.Heads, c.EvalEvery = "gat", 2, 0 },
		"gin, recompute":       func(c *Config) { c.Model, c.Recompute = "gin", true },
		"kept in half":         func(c *Config) { c.InputDropout, c.CacheInput, c.Features = 0, "on", "bf16" },
		"powers kept":          func(c *Config) { c.Model, c.InputDropout, c.CacheInput, c.Powers = "sign", 0, "on", 2 },
		"rows of epoch before": func(c *Config) { c.Dropout, c.Refresh = 0, "previous:none" },
		"refreshed apart":      func(c *Config) { c.Layers, c.Refresh = 3, "age:2" },
		"whole rows, not thin": func(c *Config) { c.LambdaWithout = "rematerialisation,streaming" },
		"stages apart":         func(c *Config) { c.Layers, c.LambdaWithout = 3, "fusion" },
		"nopipe, one rank":     func(c *Config) { c.Mode, c.Ranks = "nopipe", 1 },
	})
	seed := hosttest.Turn(t, 4) / 2
	for k, name := range slices.Sorted(maps.Keys(cases)) {
		for i, data := range []string{dense, sparse} {
			if !hosttest.Sampled(2, i, k, seed) {
				continue
			}
			set, kind := cases[name], []string{"dense", "sparse"}[i]
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				c := quick(t)
				c.Epochs, c.Ranks, c.Servers, c.Intervals, c.EvalEvery = 5, 2, 0, 3, 2
				set(&c)
				estimated := functionsOf(t, c, data)
				var tasks, to, from int64
				ways, s := runElsewhere(t, c, data)
				for _, w := range ways {
					tasks, to, from = tasks+w.tasks.Load(), to+w.to.Load(), from+w.from.Load()
				}
				if estimated.Invocations != tasks || estimated.To != to || estimated.From != from {
					t.Errorf("%d invocations with %d bytes and %d back, estimated are %+v", tasks, to, from, estimated)
				}
				if s.LambdaInvocations != tasks || s.LambdaBytesSent != to || s.LambdaBytesReceived != from ||
					estimated.GBSeconds <= 0 || estimated.USD <= 0 {
					t.Errorf("the summary has %+v; %+v", s, estimated)
				}
			})
		}
	}
}

// runElsewhere trains with every task in another process. It returns all transports and the
// summary's invocations.
func runElsewhere(t *testing.T, c Config, data string) (ways []*counting, said runfolder.Functions) {
	t.Helper()
	var mu sync.Mutex
	var start sync.Once
	var other *process
	wishes, err := engine.RequestOptions(&c)
	if err != nil {
		t.Fatal(err)
	}
	got := trainOn(t, c, data, func(r *joined) tensor.Backend {
		mu.Lock()
		defer mu.Unlock()
		w := &counting{chaos: newChaos(1, func(message []byte) []byte {
			start.Do(func() { other = startProcess(t, sentOf(r)) })
			return other.work(message)
		})}
		ways = append(ways, w)
		return tensor.NewRemote(w, wishes, patient(time.Minute, 1), silence)
	})
	return ways, got.Summary.Functions
}

// functionsOf returns the estimate for a run.
func functionsOf(t *testing.T, c Config, data string) forecast.Functions {
	t.Helper()
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.View(c.Ranks)
	if err != nil {
		t.Fatal(err)
	}
	made, err := partition.Find(data, v.Parts)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := forecast.Of(c, meta, v.Parts, v.Servers, true)
	if err != nil {
		t.Fatal(err)
	}
	ops := kernels.NewTeam(1)
	defer ops.Close()
	_, all, err := f.Functions(made.Report.Ranks, ops)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

package ranks

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"siafu/internal/testkit/functiontest"
	"siafu/internal/testkit/hosttest"
	"siafu/lambda/local"
	"siafu/ranks/config"
)

// Through one bridge or two, training in functions has the bits of training on the CPU, also
// if invocations fail.
func TestLambdaBridges(t *testing.T) {
	t.Parallel()
	data, path := generated(t, true), functiontest.Build(t)
	partitionBy(t, data, "fennel", 3)
	for k, name := range slices.Sorted(maps.Keys(lambdaNetworks)) {
		set := lambdaNetworks[name]
		for bridges := 1; bridges <= 2; bridges++ {
			if !hosttest.Sampled(2, k, bridges) {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d", name, bridges), func(t *testing.T) {
				c := quick(t)
				c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads, c.EvalEvery = 3, 4, 1, 2, 2, 2
				set(&c)
				want := train(t, c, data)
				c.Out += "-lambda"
				c.Ranks, c.Bridges = c.Ranks+bridges, bridges
				got, s, n := invoked(t, c, data, path, func(f *functions) {
					f.attemptTimeout, f.attempts, f.fallsBack = 300*time.Millisecond, 40, false
					f.local.Timeout = 400 * time.Millisecond
					f.local.Faults = local.Faults{Seed: 3, Crash: 0.05, Lose: 0.02}
				})
				if !bytes.Equal(got.model, want.model) {
					t.Error("the model is another one")
				}
				sameLosses(t, "bridges", got.losses(), want.losses(), 0)
				if s.Invocations < n.Sent || n.Sent == 0 || s.Failed == 0 || n.Failed == 0 {
					t.Errorf("%+v of %v", s, n)
				}
				if k := len(got.Summary.PerRank); k != c.Ranks || got.Summary.PerRank[k-1].Role != "bridge" ||
					got.Summary.LambdaInvocations < int64(n.Sent) {
					t.Errorf("%+v", got.Summary)
				}
			})
		}
	}
}

// Bridges also work with several parts per rank, and with bounded asynchrony.
func TestLambdaBridgesElsewhere(t *testing.T) {
	t.Parallel()
	data, path := generated(t, true), functiontest.Build(t)
	for name, set := range map[string]func(*Config){
		"parts": func(c *Config) { c.Parts = 5 },
		"async": func(c *Config) { c.Mode, c.Staleness, c.EvalEvery = "async", 0, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Epochs, c.Ranks, c.Servers, c.Threads = 4, 3, 1, 2
			set(&c)
			want := train(t, c, data)
			c.Out += "-lambda"
			c.Ranks, c.Bridges, c.Tensor, c.Lambda, c.LambdaFunction = 4, 1, config.TensorLambda, config.LambdaLocal, path
			got := train(t, c, data)
			if c.Mode != "async" && !bytes.Equal(got.model, want.model) {
				t.Error("the model is another one")
			}
			if got.Summary.LambdaInvocations == 0 || len(got.Epochs) != 4 {
				t.Errorf("%+v", got.Summary)
			}
		})
	}
}

// On a real graph, cora, four graph ranks, a server and one or two bridges have the bits of
// the CPU, streamed in halves from the data endpoint.
func TestLambdaBridgesOnCora(t *testing.T) {
	t.Parallel()
	data, path := real(t, "cora"), functiontest.Build(t)
	partitionBy(t, data, "fennel", 4)
	for i, name := range []string{"gcn", "gat", "sage"} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Model, c.Epochs, c.Ranks, c.Servers, c.EvalEvery = name, 5, 5, 1, 0
			want := train(t, c, data)
			c.Out += "-lambda"
			c.Bridges = 1 + i%2
			c.Ranks += c.Bridges
			c.Tensor, c.Lambda, c.LambdaFunction = config.TensorLambda, config.LambdaLocal, path
			got := train(t, c, data)
			if !bytes.Equal(got.model, want.model) || got.Summary.LambdaInvocations == 0 {
				t.Errorf("the model is another one, or nothing was invoked: %d", got.Summary.LambdaInvocations)
			}
			sameLosses(t, name, got.losses(), want.losses(), 0)
		})
	}
}

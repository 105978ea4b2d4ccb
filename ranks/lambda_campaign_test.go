package ranks

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"siafu/internal/testkit/functiontest"
	"siafu/internal/testkit/hosttest"
	"siafu/lambda"
	"siafu/lambda/endpoint"
	"siafu/ranks/config"
)

// A run ends with the weights of the CPU although a tenth of the invocations crash, others are
// lost, late, duplicated, damaged, ten times slower or rejected, and some sandboxes never
// start. Nothing is counted twice: each task has one counted result, and the losses, which are
// sums over tasks, are the same.
func TestLambdaFaultCampaign(t *testing.T) {
	t.Parallel()
	const seed = 20211
	faults := fmt.Sprintf(
		"seed=%d,crash=0.1,lose=0.05,duplicate=0.05,corrupt=0.05,straggle=0.05,throttle=0.05,late=0.03,delay=450ms,start=0.03", seed)
	t.Logf("--lambda faults=%s", faults)
	data, path := parted(t, generated(t, true)), functiontest.Build(t)
	for name, set := range hosttest.Share(t, 3, lambdaNetworks) { // TestLambdaIsCPU trains all
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			c := quick(t)
			c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads = 3, 2, 0, 4, 2
			set(&c)
			want := train(t, c, data)
			c.Out += "-lambda"
			c.LambdaFaults, c.LambdaLimits = faults, config.LimitsMemory
			if name == "gat" { // invoked by a bridge
				c.Ranks, c.Bridges = c.Ranks+1, 1
			}
			ends := endpoints{change: func(f *functions) {
				f.attemptTimeout, f.attempts, f.concurrency, f.fallsBack = 400*time.Millisecond, 60, 8, false
				f.local.Timeout, f.local.Concurrency = 500*time.Millisecond, 8
			}}
			got, s, n := invoked(t, c, data, path, ends.add)
			t.Logf("%v; %v; %+v", n, n.Pool, s)
			if !bytes.Equal(got.model, want.model) {
				t.Error("the model is another one")
			}
			sameLosses(t, "lambda", got.losses(), want.losses(), 0)
			for f := lambda.Crash; f < lambda.Kinds; f++ {
				if s.Struck[f] == 0 {
					t.Errorf("the test shows nothing: no invocation has had fault %d", f)
				}
			}
			if p := n.Pool; p.Used != p.Submitted || p.Submitted != n.Sent || p.Local != 0 {
				t.Errorf("%d results counted for %d tasks, of which the CPU did %d", p.Used, p.Submitted, p.Local)
			}
			if n.Again == 0 || s.Throttled < s.Struck[lambda.Throttle] {
				t.Errorf("%d attempts were further ones", n.Again)
			}
			if ends.stats().Refused[endpoint.Malformed] == 0 {
				t.Error("no damage was found")
			}
		})
	}
}

// In sandboxes with the service's limits, all data of a function passes through the relay, and
// a run has the bits of the CPU.
func TestLambdaLimits(t *testing.T) {
	data := parted(t, generated(t, true))
	c := quick(t)
	c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads = 2, 1, 0, 3, 2
	want := train(t, c, data)
	c.Out += "-lambda"
	c.LambdaLimits, c.BridgeAddress = config.LimitsAWS, "127.0.0.1:0,localhost:0"
	began := time.Now()
	got, s, n := invoked(t, c, data, functiontest.Build(t), func(f *functions) { f.fallsBack = false })
	if !bytes.Equal(got.model, want.model) || n.Pool.Used != n.Sent {
		t.Errorf("the model is another one, or %d results counted for %d tasks", n.Pool.Used, n.Sent)
	}
	if s.Relayed < n.Bytes || s.Refused > 0 || time.Since(began) < 100*time.Millisecond {
		t.Errorf("%+v for %v", s, n)
	}
}

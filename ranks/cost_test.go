package ranks

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"siafu/kernels/task"
	"siafu/lambda/bill"
	"siafu/ranks/checkpoint"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
)

// took is what each invocation of metered takes, to start and to work.
const tookInit, tookWork = 4 * time.Millisecond, 11 * time.Millisecond

// metered trains with tasks done in another process by a transport that loses, doubles
// and damages results, and says of each attempt what it took.
func metered(t *testing.T, c Config, data string) (trained, []*tensor.Remote) {
	t.Helper()
	c.Tensor, c.Lambda = config.TensorLambda, config.LambdaLocal
	var mu sync.Mutex
	var all []*tensor.Remote
	got := trainOn(t, c, data, func(r *run) tensor.Backend {
		mu.Lock()
		defer mu.Unlock()
		var start sync.Once
		var other *process
		way := newChaos(uint64(len(all)), nil)
		way.work = func(message []byte) []byte {
			start.Do(func() { other = startProcess(t, sentOf(r)) })
			name, err := task.NameOf(message)
			if err != nil {
				t.Error(err)
			}
			select {
			case way.answers <- task.Answer{Spent: &task.Spent{Name: name, Init: tookInit, Work: tookWork}}:
			case <-way.ended:
			}
			return other.work(message)
		}
		b := tensor.NewRemote(way, wishes()[0], patient(patience, 100), silence)
		b.Charge(bill.Tariff{Step: time.Millisecond}, tookInit+tookWork) // whatever is out at the end, too
		all = append(all, b)
		return b
	})
	return got, all
}

// What a run says of its invocations is the bill of all attempts, whatever became of
// them, and of its parts before a checkpoint.
func TestCostOfInvocations(t *testing.T) {
	data := parted(t, generated(t, true))
	c := saving(t, "off")
	c.CheckpointEvery, c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Instance = "1h", 6, 2, 0, 3, "3600"
	gb := (tookInit + tookWork).Seconds() * float64(c.LambdaMemory) / 1024
	perGB, _ := c.Tariff().GBSecond.USD.Float64()
	perRequest, _ := c.Tariff().Request.USD.Float64()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	var before runfolder.Functions // in the part before a checkpoint
	for part := range 2 {
		got, all := metered(t, c, data)
		var n, again, wasted int64
		for _, b := range all {
			m := b.Counts()
			n, again, wasted = n+int64(m.Pool.Invoked), again+int64(m.Again), wasted+int64(m.Pool.Invoked-m.Pool.Used)
		}
		s := got.Summary
		if s.LambdaInvocations != before.LambdaInvocations+n || s.LambdaAgain != before.LambdaAgain+again || s.LambdaWasted != before.LambdaWasted+wasted || again == 0 || wasted == 0 {
			t.Errorf("part %d: %+v, want %d invocations, %d again, %d wasted and %+v", part, s.Functions, n, again, wasted, before)
		}
		near("GB-seconds", s.LambdaGBSeconds, before.LambdaGBSeconds+float64(n)*gb)
		near("wasted GB-seconds", s.LambdaWastedGBSeconds, before.LambdaWastedGBSeconds+float64(wasted)*gb)
		near("dollars of functions", s.LambdaUSD, before.LambdaUSD+float64(n)*(gb*perGB+perRequest))
		near("dollars of servers", s.ServerUSD, s.TotalSeconds)
		near("dollars", s.CostUSD, s.ServerUSD+s.LambdaUSD)
		near("value", s.Value, 1/(s.TotalSeconds*s.CostUSD))
		last, sum := 0.0, 0.0
		for _, e := range got.Epochs {
			if e.LambdaUSD <= last || e.LambdaUSD > s.LambdaUSD || e.CostUSD <= e.LambdaUSD {
				t.Errorf("epoch %d: $%g of $%g, after $%g and of $%g", e.Epoch, e.LambdaUSD, e.CostUSD, last, s.LambdaUSD)
			}
			last, sum = e.LambdaUSD, sum+e.LambdaGBSeconds
		}
		if len(got.Epochs) != c.Epochs || sum <= 0 || sum > s.LambdaGBSeconds {
			t.Errorf("part %d: %d epochs with %g of %g GB-seconds", part, len(got.Epochs), sum, s.LambdaGBSeconds)
		}
		state, _, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
		if err != nil {
			t.Fatal(err)
		}
		before = state.Spent
		if last := got.Epochs[len(got.Epochs)-1]; before.LambdaUSD != last.LambdaUSD || before.LambdaUSD == 0 {
			t.Errorf("the checkpoint knows of $%g, the last epoch of $%g", before.LambdaUSD, last.LambdaUSD)
		}
		c.Epochs, c.Resume = 9, "auto"
	}
}

// A run costs its hosts' hours, however many ranks are on a host; it says so while it
// goes on and at its end, and in all its parts.
func TestCostOfARun(t *testing.T) {
	data := generated(t, false)
	c := saving(t, "off")
	c.CheckpointEvery, c.Epochs, c.Ranks, c.Servers, c.Quiet, c.Instance = "1h", 4, 3, 1, false, "3600"
	var out bytes.Buffer
	if err := Train(context.Background(), c, data, IO{Out: &out, Err: &out}); err != nil {
		t.Fatal(err)
	}
	r := readRun(t, c.Out)
	s := r.Summary
	if s.Hosts != 1 || s.Instance != "3600" || math.Abs(s.CostUSD-s.TotalSeconds) > 1e-6 { // a dollar a second
		t.Errorf("%+v", s)
	}
	if want := 1 / (s.TotalSeconds * s.CostUSD); math.Abs(s.Value/want-1) > 1e-6 {
		t.Errorf("value %g, want %g", s.Value, want)
	}
	want := fmt.Sprintf("bill instance=3600 usd_an_hour=3600 hosts=1 usd=%.6f", s.CostUSD)
	if text := out.String(); !strings.Contains(text, want) || !strings.Contains(text, " usd=") {
		t.Errorf("it prints no %q:\n%s", want, text)
	}
	before := 0.0
	for _, e := range r.Epochs {
		if e.CostUSD <= before || e.CostUSD > s.CostUSD {
			t.Errorf("epoch %d: $%g, after $%g and of $%g", e.Epoch, e.CostUSD, before, s.CostUSD)
		}
		before = e.CostUSD
	}
	c.Epochs, c.Resume, c.Quiet = 5, "auto", true
	if next := train(t, c, data).Summary; next.CostUSD <= before || math.Abs(next.CostUSD-next.TotalSeconds) > 1e-6 {
		t.Errorf("$%g for %g s when resumed", next.CostUSD, next.TotalSeconds)
	}
	c = quick(t)
	c.Epochs = 1
	if s := train(t, c, data).Summary; s.CostUSD != 0 || s.Value != 0 || s.Instance != "" {
		t.Errorf("%+v without --instance", s)
	}
}

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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/kernels/task"
	"siafu/lambda/bill"
	"siafu/lambda/pool"
	"siafu/ranks/checkpoint"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
	"siafu/ranks/trace"
)

// tookInit and tookWork are the times of each invocation of metered, to start and to work.
const tookInit, tookWork = 4 * time.Millisecond, 11 * time.Millisecond

// metered trains with tasks in another process. The transport loses, duplicates and damages
// results, and reports the time of each attempt.
func metered(t *testing.T, c Config, data string) (all []*tensor.Remote, err error) {
	t.Helper()
	c.Tensor, c.Lambda = config.TensorLambda, config.LambdaLocal
	var mu sync.Mutex
	backend := func(r *joined) tensor.Backend {
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
		b.Tune(pool.NewTuner(100))                                       // a lost one holds its place for long
		b.Charge(bill.Tariff{Step: time.Millisecond}, tookInit+tookWork) // whatever is out at the end, too
		all = append(all, b)
		return b
	}
	return all, runMembers(c, data, IO{Out: io.Discard, Err: io.Discard}, func(r *member) { r.backend = backend }, (*member).train)
}

// A run reports the bill of all attempts, with any result, also of its parts before a
// checkpoint.
func TestCostOfInvocations(t *testing.T) {
	t.Parallel()
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
		all, err := metered(t, c, data)
		if err != nil {
			t.Fatal(err)
		}
		got := readRun(t, c.Out)
		var n, again, wasted int64
		for _, b := range all {
			m := b.Counts()
			n, again, wasted = n+int64(m.Pool.Invoked), again+int64(m.Again), wasted+int64(m.Pool.Invoked-m.Pool.Used)
		}
		s := got.Summary
		if s.LambdaInvocations != before.LambdaInvocations+n || s.LambdaAgain != before.LambdaAgain+again ||
			s.LambdaWasted != before.LambdaWasted+wasted || again == 0 || wasted == 0 {
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

// A run costs its hosts' hours, for any number of ranks per host. It prints the cost of all
// its parts while it runs and at its end.
func TestCostOfARun(t *testing.T) {
	t.Parallel()
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

// stoppedBefore returns the cost of a run that its budget has ended.
func stoppedBefore(t *testing.T, err error) (cost float64) {
	t.Helper()
	if fault.ExitCode(err) != 75 {
		t.Fatalf("exit %d: %v", fault.ExitCode(err), err)
	}
	_, text, _ := strings.Cut(err.Error(), "cost so far $")
	if _, e := fmt.Sscanf(text, "%f", &cost); e != nil || !strings.Contains(err.Error(), "--resume auto and a larger --budget") {
		t.Fatal(err)
	}
	return cost
}

// lastCost returns the cost of a run after its newest line of metrics, as a value of --budget. With
// this budget no other epoch can be paid, however long the checkpoint of that epoch took to write.
func lastCost(t *testing.T, lines []byte) string {
	t.Helper()
	all := bytes.Split(bytes.TrimSpace(lines), []byte("\n"))
	var e runfolder.Epoch
	if err := json.Unmarshal(all[len(all)-1], &e); err != nil || e.CostUSD <= 0 {
		t.Fatalf("$%g in the last of %d epochs: %v", e.CostUSD, len(all), err)
	}
	return strconv.FormatFloat(e.CostUSD, 'f', -1, 64)
}

// A run with a budget ends before it costs more, with a checkpoint and exit code 75, for any
// kind of cost and any time of request. It does not resume with the same budget, but with a
// larger one.
func TestBudget(t *testing.T) {
	t.Parallel()
	data := parted(t, generated(t, true))
	hours := func(c Config) error {
		return Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
	}
	invocations := func(c Config) error { _, err := metered(t, c, data); return err }
	slow := func(c *Config) { c.Instance, c.Delay, c.Budget = "3600", "*:20ms:1", "1.5" } // a dollar a second
	for name, tc := range map[string]struct {
		set   func(*Config)
		train func(Config) error
	}{
		"hours":              {slow, hours},
		"hours, asked early": {func(c *Config) { slow(c); c.Dropout = 0 }, hours},
		"hours, async":       {func(c *Config) { slow(c); *c = asynchronous(*c, 1, 2) }, hours},
		"invocations":        {func(c *Config) { c.Budget, c.Epochs = "0.00006", 30 }, invocations},
	} {
		t.Run(name, func(t *testing.T) {
			c := saving(t, "off")
			c.Epochs, c.Ranks, c.Servers, c.Intervals = 90, 2, 0, 3
			tc.set(&c)
			most := c.BudgetUSD()
			cost := stoppedBefore(t, tc.train(c))
			for again := 0; again < 20 && (cost >= most || cost < most/3); again++ { // an epoch took much longer than those before
				cost = stoppedBefore(t, tc.train(c))
			}
			t.Logf("$%g of $%g", cost, most)
			if cost >= most || cost < most/3 {
				t.Errorf("it has cost $%g of $%g", cost, most)
			}
			lines, err := os.ReadFile(filepath.Join(c.Out, runfolder.Metrics))
			if n := bytes.Count(lines, []byte("\n")); err != nil || n < 1 || n >= c.Epochs {
				t.Errorf("%d epochs of %d: %v", n, c.Epochs, err)
			}
			c.Resume = "auto"
			small := c
			small.Budget = lastCost(t, lines)
			if err := tc.train(small); fault.ExitCode(err) != 78 || !strings.Contains(fmt.Sprint(err), "--budget") {
				t.Errorf("it goes on without money: %v", err)
			}
			if again, _ := os.ReadFile(filepath.Join(c.Out, runfolder.Metrics)); !bytes.Equal(again, lines) {
				t.Error("and it has trained")
			}
			c.Budget, c.Delay, c.Epochs = "1000", "", c.Epochs+2
			if err := tc.train(c); err != nil {
				t.Fatal(err)
			}
			if s := readRun(t, c.Out).Summary; s.Epochs != c.Epochs || s.CostUSD <= cost {
				t.Errorf("%d epochs for $%g, after $%g", s.Epochs, s.CostUSD, cost)
			}
		})
	}
}

// A run reports each graph rank's limit of concurrent invocations. Its timeline shows the
// measurements behind the limit.
func TestConcurrencyIsReported(t *testing.T) {
	t.Parallel()
	data := parted(t, generated(t, true))
	c := quick(t)
	c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Delay = 5, 2, 0, 3, "*:20ms:1"
	c.Trace = filepath.Join(t.TempDir(), "trace.json")
	all, err := metered(t, c, data)
	if err != nil {
		t.Fatal(err)
	}
	for k, rank := range readRun(t, c.Out).Summary.PerRank {
		if n := rank.LambdaAtOnce; n == nil || n.First != 100 || n.Most != 100 || n.Least < 1 || n.Least > n.Last {
			t.Errorf("rank %d: %+v", k, n)
		}
	}
	text, err := os.ReadFile(c.Trace)
	if err != nil {
		t.Fatal(err)
	}
	checks := len(all[0].Tuning().Checks) + len(all[1].Tuning().Checks)
	for _, name := range []string{"tasks that wait", "invocations at once"} {
		if n := bytes.Count(text, []byte(`{"ph":"C","name":"`+name+`","pid":`)); n != checks || n == 0 {
			t.Errorf("%d times %q in the timeline, of %d checks", n, name, checks)
		}
	}
	if f, err := trace.Read(c.Trace); err != nil || len(f.Events) == 0 {
		t.Errorf("the timeline cannot be read: %v", err)
	}
}

package ranks

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"siafu/internal/fault"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// traced trains with a timeline and reads it.
func traced(t *testing.T, c Config, data string) (trained, *trace.File) {
	t.Helper()
	c.Trace = filepath.Join(t.TempDir(), "new", "trace.json")
	r := train(t, c, data)
	f, err := trace.Read(c.Trace)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(c.Trace))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the timeline there is %v %v", left, err)
	}
	return r, f
}

// A timeline has the times that metrics.jsonl sums, for any world, with and without separate
// evaluation passes.
func TestTimeline(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for name, set := range map[string]func(*Config){
		"one rank":       func(c *Config) { c.Ranks = 1 },
		"dropout":        func(c *Config) { c.Ranks, c.Servers, c.Dropout = 3, 0, 0.5 },
		"cached input":   func(c *Config) { c.Ranks, c.Servers, c.CacheInput = 3, 0, "on" },
		"servers":        func(c *Config) { c.Ranks, c.Servers, c.Layers = 5, 2, 3 },
		"nopipe":         func(c *Config) { c.Ranks, c.Mode, c.Codec = 4, "nopipe", "s2" },
		"stopped early":  func(c *Config) { c.Ranks, c.TargetAcc = 2, 0.01 },
		"perceptron":     func(c *Config) { c.Ranks, c.Model = 2, "mlp" },
		"few evaluation": func(c *Config) { c.Ranks, c.EvalEvery, c.Dropout = 2, 3, 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Epochs, c.Dropout, c.Threads = 6, 0, 1
			set(&c)
			run, f := traced(t, c, data)
			checkTimeline(t, run.Run, f)
		})
	}
}

// checkTimeline compares a timeline with the run that made it.
func checkTimeline(t *testing.T, run *runfolder.Run, f *trace.File) {
	t.Helper()
	s := run.Summary
	if len(f.Processes) != s.Ranks || f.Info["dataset"] != s.Dataset {
		t.Fatalf("%d processes of %d ranks, %v", len(f.Processes), s.Ranks, f.Info)
	}
	for i, p := range f.Processes {
		if want := s.PerRank[i]; p.Rank != want.Rank || p.Role != want.Role || p.Host != want.Host || p.Dropped != 0 {
			t.Errorf("process %+v, want %+v", p, want)
		}
	}
	ordered(t, f, s.TotalSeconds)
	for _, e := range run.Epochs {
		sameSums(t, e, f, s)
	}
	for q := s.Ranks - s.Servers; q < s.Ranks; q++ {
		updates := 0
		for _, e := range f.Events {
			if e.Rank == q && e.Task == "WU" {
				updates++
			}
		}
		if updates != s.Epochs*s.Layers {
			t.Errorf("server %d has %d updates in %d epochs", q, updates, s.Epochs)
		}
	}
}

// ordered fails if events of a worker overlap, or are outside of the run.
func ordered(t *testing.T, f *trace.File, seconds float64) {
	t.Helper()
	last := map[[2]int]trace.Event{}
	for _, e := range f.Events {
		worker := [2]int{e.Rank, e.Worker}
		if before, ok := last[worker]; ok && e.Start < before.End() {
			t.Fatalf("%+v begins before the end of %+v", e, before)
		}
		if e.Start < 0 || e.End().Seconds() > seconds || e.Wait > e.Dur {
			t.Errorf("%+v in a run of %v s", e, seconds)
		}
		last[worker] = e
	}
}

// sameSums compares the seconds of an epoch's tasks. Timeline and clock take
// the same moments, the timeline in whole nanoseconds: what remains is the
// rounding of float64 sums of a few terms.
func sameSums(t *testing.T, line runfolder.Epoch, f *trace.File, s runfolder.Summary) {
	t.Helper()
	graph := s.Ranks - s.Servers
	sums := make([]map[string]float64, graph)
	for q := range sums {
		sums[q] = map[string]float64{}
	}
	for _, e := range f.Events {
		if e.Rank < graph && e.Epoch == line.Epoch {
			sums[e.Rank][e.Task] += e.Dur.Seconds()
		}
	}
	for _, task := range schedule.Kinds() {
		most, found := 0.0, true
		for _, sum := range sums {
			seconds, ok := sum[task]
			most, found = max(most, seconds), found && ok
		}
		if want := line.TaskSeconds[task]; math.Abs(most-want) > 1e-8 {
			t.Errorf("epoch %d: %s takes %v s in the timeline, %v s in the metrics", line.Epoch, task, most, want)
		}
		there := true // messages need another rank, gathers a model that gathers
		switch task {
		case "SC", "∇SC":
			there = s.Model == "gcn" && graph > 1
		case "GA", "∇GA":
			there = s.Model == "gcn"
		}
		if found != there {
			t.Errorf("epoch %d: %s is there: %t", line.Epoch, task, found)
		}
	}
	if apart := sums[0]["eval"]; math.Abs(apart-line.EvalSeconds) > 1e-8 {
		t.Errorf("epoch %d: evaluation of %v s in the timeline, %v s in the metrics", line.Epoch, apart, line.EvalSeconds)
	}
}

// The tasks of an epoch end in the documented order: no kind of task finishes before its
// dependencies.
func TestTimelineOrder(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Epochs, c.Dropout, c.Ranks, c.Servers, c.CacheInput, c.Threads = 2, 0, 2, 0, "off", 1
	c.PreAggregate, c.RecomputeGhosts = "on", "none"
	_, f := traced(t, c, generated(t, true))
	var got []string // each kind where its last task is
	for _, e := range f.Events {
		if e.Rank == 1 && e.Epoch == 2 {
			name := e.Task + []string{"", "0", "1"}[e.Layer+1]
			got = append(slices.DeleteFunc(got, func(before string) bool { return before == name }), name)
		}
	}
	want := []string{"SC0", "GA0", "AV0", "SC1", "GA1", "AV1", "loss1", "loss", "∇SC1", "∇GA1", "∇AV1", "WU1", "∇AV0", "WU0", "WU"}
	if !slices.Equal(got, want) {
		t.Errorf("an epoch ends\n%v, want\n%v", got, want)
	}
}

// An unwritable path is detected before training begins.
func TestTimelineUnwritable(t *testing.T) {
	t.Parallel()
	data, dir := generated(t, false), t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		path string
		kind fault.Kind
	}{
		"a folder":     {dir, fault.Config},
		"a device":     {os.DevNull, fault.Config},
		"below a file": {filepath.Join(file, "trace.json"), fault.IO},
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Trace, c.Ranks, c.Epochs = tc.path, 3, 1<<30
			err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: os.Stderr})
			var f *fault.Error
			if fault.KindOf(err) != tc.kind || !errors.As(err, &f) {
				t.Errorf("%v", err)
			}
		})
	}
}

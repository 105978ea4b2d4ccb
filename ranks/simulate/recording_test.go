package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/ranks"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// timeline is that of ranks with an outline, on one worker each: tasks in the order of
// their making, the n-th of a rank taking n milliseconds, half a millisecond apart.
func timeline(ranks int, o engine.Outline, epochs int) *trace.File {
	f := &trace.File{Info: map[string]string{"mode": "pipe"}}
	if o.Barrier {
		f.Info["mode"] = "nopipe"
	}
	for rank := range ranks {
		f.Processes = append(f.Processes, trace.Process{Rank: rank, Role: "graph", Outline: encoded(o)})
		at, n := time.Second, 0
		add := func(kind string, epoch, layer, interval int) {
			n++
			e := trace.Event{Task: kind, Rank: rank, Epoch: epoch, Layer: layer, Interval: interval, Start: at,
				Dur: time.Duration(n) * time.Millisecond}
			f.Events = append(f.Events, e)
			at += e.Dur + time.Millisecond/2
		}
		for epoch := 1; epoch <= epochs; epoch++ {
			n = 0
			add("WU", epoch, trace.None, trace.None)
			add(evaluation, epoch, trace.None, trace.None)
			for _, t := range o.Epoch().Tasks() {
				add(t.Stage.Kind(), epoch, t.Layer, t.Interval)
			}
			add("loss", epoch, trace.None, trace.None)
			add("WU", epoch, trace.None, trace.None)
		}
	}
	return f
}

func encoded(o engine.Outline) []byte {
	b, _ := json.Marshal(o)
	return b
}

var outlines = map[string]engine.Outline{
	"sums, pieces, ÂX kept": {
		Layers: []engine.LayerOutline{{}, {Gathers: true, GathersBackward: true}}, InputCached: true,
		Intervals: 3, Loss: true, GhostOutline: engine.GhostOutline{Ghosts: true, Returns: true, Sums: 2, Pieces: 4},
	},
	"barrier": {
		Layers: []engine.LayerOutline{{Gathers: true}, {Gathers: true, GathersBackward: true}}, Barrier: true,
		Intervals: 2, Loss: true, GhostOutline: engine.GhostOutline{Ghosts: true, Returns: true, Pieces: 1},
	},
	"features of ghosts kept": {
		Layers:    []engine.LayerOutline{{Gathers: true, GathersBackward: true}, {Gathers: true, GathersBackward: true}},
		Intervals: 2, Loss: true, GhostOutline: engine.GhostOutline{Ghosts: true, Returns: true, GhostTasks: []int{5}, Pieces: 5},
	},
	"features of ghosts kept, sums": {
		Layers:    []engine.LayerOutline{{Gathers: true}, {Gathers: true, GathersBackward: true}},
		Intervals: 3, Loss: true, GhostOutline: engine.GhostOutline{Ghosts: true, Returns: true, GhostTasks: []int{2}, Pieces: 1, Sums: 4},
	},
	"some rows of ghosts computed": {
		Layers:    []engine.LayerOutline{{Gathers: true, GathersBackward: true}, {Gathers: true, GathersBackward: true}},
		Intervals: 2, Loss: true, GhostOutline: engine.GhostOutline{Ghosts: true, Returns: true, GhostTasks: []int{2}, Mixed: 1, Pieces: 3},
	},
	"one rank":       {Layers: []engine.LayerOutline{{Gathers: true, GathersBackward: true}}, Intervals: 1, Loss: true},
	"no propagation": {Layers: []engine.LayerOutline{{}, {}}, Intervals: 2, Loss: true},
}

// What a timeline is recorded as has the outline that made it, and each task its time.
func TestRecord(t *testing.T) {
	for name, o := range outlines {
		t.Run(name, func(t *testing.T) {
			r, err := Record(timeline(2, o, 3), "")
			if err != nil {
				t.Fatal(err)
			}
			k := r.Ranks[1]
			if !reflect.DeepEqual(k.Outline, o) || !reflect.DeepEqual(r.Epochs, []int{2, 3}) || !r.First || k.Split || k.Workers != 1 {
				t.Fatalf("%+v of %v, want %+v", k, r.Epochs, o)
			}
			want := Epoch{Pull: 0.001, Gap: 0.0005, Left: 0.0015}
			n := 3.
			for range o.Epoch().Tasks() {
				want.Tasks = append(want.Tasks, Work{Serial: n / 1e3})
				n++
			}
			want.Score, want.Flush = n/1e3, (n+1)/1e3
			for _, got := range k.Epochs {
				if !near(got, want) {
					t.Errorf("%+v, want %+v", got, want)
				}
			}
		})
	}
}

func near(a, b Epoch) bool {
	list := func(e Epoch) []float64 {
		list := []float64{e.Pull, e.Score, e.Flush, e.Gap, e.Left}
		for _, w := range e.Tasks {
			list = append(list, w.seconds())
		}
		return list
	}
	x, y := list(a), list(b)
	for i := range x {
		if len(x) != len(y) || math.Abs(x[i]-y[i]) > 1e-9 {
			return false
		}
	}
	return true
}

// Waits are no work, in a task or for one; they tell how long rows took to come.
func TestRecordWaits(t *testing.T) {
	f := timeline(2, outlines["barrier"], 2)
	var rank0 []int
	for i, e := range f.Events {
		if e.Epoch == 2 && e.Task == "SC" && e.Layer == 0 {
			rank0 = append(rank0, i) // sends, takes; of both ranks
		}
	}
	f.Events[rank0[1]].Wait = 2 * time.Millisecond
	sent := f.Events[rank0[0]]
	wait := sent
	wait.Start, wait.Dur, wait.Wait = sent.End(), 300*time.Microsecond, 300*time.Microsecond
	f.Events = append(f.Events, wait)
	r, err := Record(f, "")
	if err != nil {
		t.Fatal(err)
	}
	g := r.Ranks[0]
	for i, task := range g.Graphs()[0].Tasks() {
		if task.Stage == schedule.Receive && task.Layer == 0 {
			want := (f.Events[rank0[1]].Dur - 2*time.Millisecond).Seconds()
			if got := g.Epochs[0].Tasks[i].Serial; math.Abs(got-want) > 1e-9 {
				t.Errorf("%g s, want %g", got, want)
			}
		}
	}
	if got := g.Use.Rows; math.Abs(got-0.0023) > 1e-9 {
		t.Errorf("%g s of waits, want 0.0023", got)
	}
	if math.Abs(r.Arrival-0.0003) > 1e-9 {
		t.Errorf("rows took %g s, want 0.0003", r.Arrival)
	}
}

// A timeline that no synchronous schedule makes is refused, and never guessed at.
func TestRecordRefuses(t *testing.T) {
	for name, change := range map[string]func(f *trace.File){
		"async":      func(f *trace.File) { f.Info["mode"] = "async" }, // tasks are not its
		"free":       func(f *trace.File) { f.Info["mode"] = "free" },
		"parts":      func(f *trace.File) { f.Info["ranks"] = "1" },
		"empty":      func(f *trace.File) { f.Events = nil },
		"task fewer": func(f *trace.File) { f.Events = append(f.Events[:20:20], f.Events[21:]...) },
		"task more":  func(f *trace.File) { f.Events = append(f.Events, f.Events[20]) },
		"layer":      func(f *trace.File) { f.Events[20].Layer = 1 << 40 },
		"interval":   func(f *trace.File) { f.Events[len(f.Events)-4].Interval = 1 << 40 },
		"outline":    func(f *trace.File) { f.Processes[1].Outline = nil },
		"stages":     func(f *trace.File) { f.Processes[1].Outline = []byte(`{"Intervals":1099511627776}`) },
		"pairs":      func(f *trace.File) { f.Processes[1].Outline = encoded(engine.Outline{Pairs: true}) },
		"no sum":     func(f *trace.File) { f.Events = f.Events[:len(f.Events)-2] },
	} {
		t.Run(name, func(t *testing.T) {
			f := timeline(2, outlines["sums, pieces, ÂX kept"], 1)
			change(f)
			_, err := Record(f, "t.json")
			if k := fault.KindOf(err); k != fault.Data && k != fault.Config || !strings.Contains(err.Error(), "t.json") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A run's timeline is recorded, whatever the network. A replay has the run's work in
// it, to the task; how long it takes is for machines that do nothing else.
func TestReplayOfRuns(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 400, Edges: 4000, Name: "planted"}, false); err != nil {
		t.Fatal(err)
	}
	for n, change := range []func(c *config.Config){
		func(c *config.Config) {},
		func(c *config.Config) { c.Mode, c.Servers, c.Ranks, c.Threads = "nopipe", 1, 4, 2 },
		func(c *config.Config) { c.Dropout = 0; c.PreAggregate = "on" },
		func(c *config.Config) { c.Model, c.Heads, c.Hidden = "gat", 2, 4 },
		func(c *config.Config) { c.Model, c.CacheInput, c.Codec = "sage", "on", "bf16" },
		func(c *config.Config) { c.Ranks, c.Layers, c.Hidden = 1, 3, 128 },
		func(c *config.Config) { c.Ranks, c.Hidden, c.Threads = 1, 128, 2 },
		func(c *config.Config) { c.Memory, c.ForceMemory = "1MB", true },
		func(c *config.Config) { c.Mode, c.Staleness, c.Dropout = "async", 1, 0 },
		func(c *config.Config) { c.Mode, c.Servers, c.Ranks = "async", 2, 5 },
		func(c *config.Config) { c.RecomputeGhosts, c.InputDropout = "layers:0.5", 0 },
		func(c *config.Config) { c.RecomputeGhosts, c.Layers, c.InputDropout = "layers:1.5", 3, 0 },
		func(c *config.Config) { c.RecomputeGhosts, c.InputDropout = "all", 0 },
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := config.Defaults()
			c.Ranks, c.Servers, c.Threads, c.Epochs, c.Intervals, c.Quiet = 3, 0, 1, 4, 2, true
			c.Out, c.Trace = filepath.Join(dir, "run", fmt.Sprint(n)), filepath.Join(dir, fmt.Sprint(n, ".json"))
			change(&c)
			if err := ranks.Train(context.Background(), c, data, ranks.IO{Out: io.Discard, Err: os.Stderr}); err != nil {
				t.Fatal(err)
			}
			o := Options{Run: c.Out, GhostPower: 0.5, Scale: 1, Servers: -1, Staleness: -1}
			p, err := o.read()
			if err != nil {
				t.Fatal(err)
			}
			if ready := c.Dropout == 0 && c.Mode != async; p.Ranks[0].Split != ready { // an evaluation is the forward pass
				t.Errorf("split %t, want %t", p.Ranks[0].Split, ready)
			}
			f, err := trace.Read(c.Trace)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range f.Events {
				if e.Task == evaluation && e.Kernels != nil {
					t.Fatalf("an evaluation has %d kernels", len(e.Kernels))
				}
			}
			if one := c.Threads == 1; p.Divided && !one || !p.Divided && one && c.Hidden == 128 {
				t.Errorf("kernels with several chunks: %t", p.Divided)
			}
			check(t, &o, p, c.Memory != "")
		})
	}
}

// check replays a run as it was.
func check(t *testing.T, o *Options, p *recordedRun, fetches bool) {
	cluster, err := o.cluster(p)
	if err != nil {
		t.Fatal(err)
	}
	m := cluster.Run(len(p.Epochs))
	for r, u := range m.Ranks {
		was, workers := p.Ranks[r].Use, float64(p.Ranks[r].Workers) // those that ran a task
		if math.Abs(u.Busy*float64(cluster.Workers)-was.Busy*workers) > 1e-9 || u.Span < u.Busy ||
			(p.Ranks[r].Epochs[0].Fetches != nil) != fetches {
			t.Errorf("rank %d: %+v, recorded %+v", r, u, was)
		}
	}
	var out strings.Builder
	o.Processors, o.Straggler, o.Workers = 2, []string{"0:2"}, 3
	disks, assistance := "", "others, because"
	if p.Divided {
		assistance = "if workers without a task did not assist others: "
	}
	if fetches {
		o.DiskRate, disks = "1GB", ", disks of 1GB/s"
	}
	err = o.Print(&out)
	for _, want := range []string{"modelled to recorded: ", "recorded: planted, ", assistance,
		" on 2 processors" + disks + ", stragglers 0:2, --mode "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	sent := 0.
	for from := range cluster.Ranks {
		for to := range cluster.Ranks {
			if from == to {
				continue
			}
			rows := cluster.rowPattern(false)
			for _, l := range p.Ranks[0].exchanges(p.paced()) {
				sent += rows.to(from, to) * cluster.Bytes[l]
			}
		}
	}
	if math.Abs(sent-p.sent) > 1e-6*(1+p.sent) {
		t.Errorf("%g bytes of rows, recorded %g", sent, p.sent)
	}
}

// Flags that make no sense are refused, and shards are taken where they are named.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 400, Edges: 4000, Name: "planted"}, false); err != nil {
		t.Fatal(err)
	}
	r, err := Record(timeline(2, outlines["barrier"], 2), "")
	if err != nil {
		t.Fatal(err)
	}
	p := &recordedRun{Recording: r, counts: []Counts{{1, 1, 1}, {1, 1, 1}}, bytes: []float64{1, 1}}
	for name, o := range map[string]Options{
		"ranks": {Ranks: -1}, "many": {Ranks: 1 << 20}, "rate": {Rate: "fast"}, "power": {GhostPower: 2},
		"straggler": {Straggler: []string{"2:2"}}, "factor": {Straggler: []string{"0:-1"}}, "text": {Straggler: []string{"x"}},
		"epochs": {Epochs: -1}, "latency": {Latency: -1}, "processors": {Processors: -1},
		"scale": {}, "intervals": {Intervals: 1 << 20}, "cluster": {Cluster: "moon"}, "slow link": {SlowLink: []string{"2:1gbit"}},
		"its rate": {SlowLink: []string{"0:1GB"}}, "copy": {Copy: "8GB"},
		"disk rate": {DiskRate: "1gbit"}, "disk of async": {DiskRate: "1GB", Mode: "async"},
		"disk and intervals": {DiskRate: "1GB", Intervals: 3},
		"functions":          {FunctionOptions: FunctionOptions{Tensor: "lambda", Functions: -1, LambdaMemory: 192}},
		"memory":             {FunctionOptions: FunctionOptions{Tensor: "lambda", LambdaMemory: 1}},
		"tariff":             {FunctionOptions: FunctionOptions{Tensor: "lambda", LambdaMemory: 192, LambdaTariff: "gold"}},
		"function rate": {FunctionOptions: FunctionOptions{Tensor: "lambda", LambdaMemory: 192,
			LambdaTariff: "arm64", FunctionRate: "x"}},
		"async": {Mode: "async", Ranks: 257},
	} {
		if o.Scale == 0 && name != "scale" {
			o.Scale = 1
		}
		if _, err := o.cluster(p); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (&Options{DiskRate: "1GB", Scale: 1}).cluster(p); fault.KindOf(err) != fault.Config {
		t.Errorf("a rate of disks for a run that fetches no files: %v", err)
	}
	o := Options{Data: data, Ranks: 4, Rate: "1gbit", Scale: 1}
	if _, err := o.cluster(p); fault.KindOf(err) != fault.Missing {
		t.Errorf("without shards: %v", err)
	}
	report, err := partition.Run(data, partition.Options{Method: "hash", Parts: 4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.cluster(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Rows[1][3], float64(report.Ranks[1].SendTo[3]); got != want || want == 0 || len(c.Ranks) != 4 {
		t.Errorf("%g rows from 1 to 3 of %d ranks, want %g of 4", got, len(c.Ranks), want)
	}
	if want := 1e9 / 8 * 1448 / 1538; math.Abs(c.Link.Rate-want) > 1 {
		t.Errorf("%g bytes a second, want %g", c.Link.Rate, want)
	}
}

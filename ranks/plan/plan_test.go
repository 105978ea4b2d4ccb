package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"siafu/graph/generate"
	"siafu/graph/pairs"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/screen"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
)

// linked takes edges out of the graph of some options, to be estimated.
func linked(t *testing.T, o *Options) {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "links")
	if _, err := pairs.HoldOut(o.Data, dst, pairs.HoldOutOptions{Split: "85/5/10", Seed: 3}, false); err != nil {
		t.Fatal(err)
	}
	o.Data = dst
}

// Rows of pairs are in a plan of link prediction, as text and as JSON, in its epochs and in what
// it says of them, and not in one of another task.
func TestPlanOfLinks(t *testing.T) {
	text := func(o Options) string {
		var b bytes.Buffer
		if err := Run(o, &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	o := options(t, func(o *Options) {
		o.Config.Ranks, o.Config.Servers, o.Config.Partitioner, o.Config.Codec, o.Bandwidth = 2, 0, "hash", "int8", "10mbit"
	})
	if got := text(o); strings.Contains(got, "pairs' ends") {
		t.Errorf("a plan of another task has pairs:\n%s", got)
	}
	linked(t, &o)
	o.Config.Embedding = 32
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	one := p.Candidates[0]
	e := one.Codecs[0].Epoch
	if one.Pairs == nil || one.Pairs.Sent == 0 || e.Pairs == 0 || e.Overlapping < e.Pairs+e.Compute() {
		t.Errorf("pairs of %+v take %g s of an epoch of %g", one.Pairs, e.Pairs, e.Overlapping)
	}
	got := text(o)
	for _, want := range []string{"pairs' ends",
		megabytes(one.Pairs.Sent) + " ± " + megabytes(one.Pairs.Deviation), "narrower --embedding"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	o.All = false
	if got := text(o); !strings.Contains(got, megabytes(one.Pairs.Sent)+" MB of pairs") {
		t.Errorf("no pairs in:\n%s", got)
	}
	o.JSON = true
	var have Plan
	if err := json.Unmarshal([]byte(text(o)), &have); err != nil || *have.Candidates[0].Pairs != *one.Pairs {
		t.Errorf("%v: %+v as JSON, want %+v", err, have.Candidates[0].Pairs, one.Pairs)
	}
}

// options are those of a small generated graph.
func options(t *testing.T, set func(*Options)) Options {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "planted")
	if _, err := generate.Write(dir, generate.Options{Vertices: 2000, Edges: 20000, Features: 24, Classes: 4, Seed: 3}, false); err != nil {
		t.Fatal(err)
	}
	o := Options{Data: dir, RanksPerHost: 1, Bandwidth: "1gbit", Latency: "50us", All: true, Config: Flags(config.Defaults())}
	o.Config.Ranks = 5
	set(&o)
	return o
}

func TestPlan(t *testing.T) {
	for name, tc := range hosttest.Share(t, 2, map[string]struct {
		set  func(*Options)
		want func(*Plan) bool
	}{
		"everything": {func(*Options) {}, func(p *Plan) bool {
			return len(p.Candidates) == len(partition.Methods()) && len(p.Candidates[0].Codecs) > 2 && p.Servers == 1 && len(p.Server) > 0
		}},
		"lists": {func(o *Options) { o.Config.Partitioner, o.Config.Codec = "hash,ldg", "none,s2" }, func(p *Plan) bool {
			return len(p.Candidates) == 2 && p.Candidates[1].Method == "ldg" && len(p.Candidates[1].Codecs) == 2
		}},
		"a choice": {func(o *Options) { o.Config.Codec = "auto:bf16" }, func(p *Plan) bool {
			return len(p.Candidates[0].Codecs) == 6 && p.Candidates[0].Codecs[4].Codec == "bf16"
		}},
		"no servers": {func(o *Options) { o.Config.Servers = 0 }, func(p *Plan) bool { return p.GraphRanks == 5 && p.Server == nil }},
		"losses": {func(o *Options) { o.Config.Survive = true }, func(p *Plan) bool {
			return strings.Contains(p.Verdict[len(p.Verdict)-1], "a host has memory for another part")
		}},
		"losses without memory": {func(o *Options) { o.Config.Survive, o.Config.Memory = true, "52MB" }, func(p *Plan) bool {
			return strings.Contains(p.Verdict[len(p.Verdict)-1], "a host has no memory for another part")
		}},
		"one rank": {func(o *Options) { o.Config.Ranks = 1 },
			func(p *Plan) bool { return p.Candidates[0].Ghosts == 0 && strings.Contains(p.Verdict[0], "alone") }},
		"attention": {func(o *Options) { o.Config.Model, o.Config.Heads = "gat", 2 },
			func(p *Plan) bool { return p.Candidates[0].Codecs[0].Epoch.Gather > 0 }},
		"no graph": {func(o *Options) { o.Config.Model = "mlp" },
			func(p *Plan) bool { return p.Candidates[0].Codecs[0].Traffic.Raw == 0 }},
		"bounded": {func(o *Options) { o.Config.Mode = "async" }, func(p *Plan) bool { return p.Candidates[0].Codecs[0].Peak > 0 }},
		"slow link": {func(o *Options) { o.Bandwidth = "10kbit" },
			func(p *Plan) bool { return strings.HasPrefix(p.Verdict[0], "The link") }},
		"fast link": {func(o *Options) { o.Bandwidth, o.Latency = "1000tbit", "0s" },
			func(p *Plan) bool { return strings.HasPrefix(p.Verdict[0], "Computing") }},
		"parts": {func(o *Options) { o.Config.Parts, o.Config.RecomputeGhosts = 9, "layers:1" }, func(p *Plan) bool {
			c := p.Candidates[0]
			return p.GraphRanks == 4 && p.Parts == 9 && p.Servers == 1 && c.Largest < 4 &&
				len(c.report.Ranks) == 9 && c.Codecs[0].Epoch.Rows > 0
		}},
		"parts of one rank": {func(o *Options) { o.Config.Parts, o.Config.Ranks = 3, 1 }, func(p *Plan) bool {
			c := p.Candidates[0]
			return p.GraphRanks == 1 && c.Ghosts > 0 && c.Codecs[0].Epoch.Rows < 1e-3 // through memory
		}},
		"a limit": {func(o *Options) { o.MaxTime, o.Config.Partitioner = 1, "hash,ldg"; o.Try = []int{2} }, func(p *Plan) bool {
			return len(p.Candidates) == 1 &&
				strings.Contains(p.Verdict[len(p.Verdict)-1], "Not estimated within --max-time 1ns: --partitioner ldg; 2 graph ranks.")
		}},
		"shared host": {func(o *Options) { o.RanksPerHost = 99 }, func(p *Plan) bool { return p.RanksPerHost == 5 }},
	}) {
		t.Run(name, func(t *testing.T) {
			o := options(t, tc.set)
			p, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			if !tc.want(p) {
				t.Errorf("%+v", p)
			}
			for _, one := range p.Candidates {
				for _, c := range one.Codecs {
					e := c.Epoch
					lossless := slices.Contains([]string{"none", "zeros", "s2", "zstd"}, c.Codec)
					if !c.Fits || lossless != (c.Traffic.Sent >= c.Traffic.Raw) && c.Traffic.Raw > 0 && c.Codec != "polyline" ||
						e.Overlapping > e.Sequential || e.Tensor <= 0 || e.Exposed > e.Rows {
						t.Errorf("%s %s: %+v", one.Method, c.Codec, c)
					}
				}
			}
			var text bytes.Buffer
			if err := p.Print(&text); err != nil || !strings.Contains(text.String(), p.Verdict[0]) {
				t.Errorf("%v\n%s", err, text.String())
			}
		})
	}
}

// Shards that are there are counted as they are, without another assignment.
func TestPlanOfMadeShards(t *testing.T) {
	o := options(t, func(o *Options) {
		o.Config.Partitioner, o.Config.Codec, o.Config.RecomputeGhosts = "fennel,hash", "none", "none" // auto depends on measured rates
	})
	fresh, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := partition.Run(o.Data, partition.Options{Method: "fennel", Parts: 4}); err != nil {
		t.Fatal(err)
	}
	made, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Candidates[0].Made || !made.Candidates[0].Made || made.Candidates[1].Made ||
		made.Candidates[0].Codecs[0].Traffic != fresh.Candidates[0].Codecs[0].Traffic {
		t.Errorf("%+v\n%+v", fresh.Candidates[0], made.Candidates[0])
	}
}

// A plan on several hosts lists every number of layers whose ghost rows can be computed, in quarters,
// with its epoch, bytes and memory, and chooses the fastest one that fits. On one host there is no
// choice.
func TestPlanOfGhosts(t *testing.T) {
	of := func(set func(*Options)) *Plan {
		p, err := New(options(t, func(o *Options) {
			// slower than any processor
			o.Config.Ranks, o.Config.Servers, o.Config.Layers, o.Config.Hidden, o.Config.Partitioner, o.Config.Codec, o.Bandwidth, o.Try =
				4, 0, 3, 64, "hash", "none,int8", "10kbit", nil
			o.Config.InputDropout, o.Config.CacheInput = 0, "on"
			set(o)
		}))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	far := of(func(*Options) {})
	for _, c := range far.Candidates[0].Codecs {
		var names []string
		for k, one := range c.Choices {
			names = append(names, one.Ghosts)
			if !one.Counted || !one.Fits || one.Epoch.Compute() <= 0 || one.Fetched <= 0 != (k == 0) || one.Traffic.Raw > 0 != (k < 8) {
				t.Errorf("%s %s: %+v", c.Codec, one.Ghosts, one)
			}
			if k > 0 {
				before := c.Choices[k-1]
				if one.Epoch.Tensor <= before.Epoch.Tensor || one.Fetched <= before.Fetched || one.Traffic.Raw >= before.Traffic.Raw {
					t.Errorf("%s: %+v after %+v", c.Codec, one, before)
				}
			}
			if k > 0 && k%4 == 0 && one.Peak <= c.Choices[k-4].Peak {
				t.Errorf("%s: %+v after %+v", c.Codec, one, c.Choices[k-4])
			}
		}
		want := []string{"none", "layers:0.25", "layers:0.5", "layers:0.75", "layers:1", "layers:1.25",
			"layers:1.5", "layers:1.75", "layers:2"}
		if !slices.Equal(names, want) || c.Ghosts != "layers:2" || c.Epoch != c.Choices[8].Epoch || c.Other == nil ||
			*c.Other != c.Choices[7].Epoch || c.Peak != c.Choices[8].Peak {
			t.Errorf("%s: choice %s of %v, %+v, other %+v", c.Codec, c.Ghosts, names, c.Epoch, c.Other)
		}
	}
	var text bytes.Buffer
	if err := far.Print(&text); err != nil || !strings.Contains(text.String(), "Computed ghost rows with hash") ||
		!strings.Contains(text.String(), "--recompute-ghosts auto is layers:2: none ") {
		t.Errorf("%v\n%s", err, text.String())
	}
	peaks := far.Candidates[0].Codecs[0].Choices
	full := of(func(o *Options) { o.Config.Memory = fmt.Sprint((peaks[4].Peak+peaks[8].Peak)/2) + "B" })
	if c := full.Candidates[0].Codecs[0]; c.Ghosts != "layers:1" || !c.Fits || c.Choices[8].Fits || c.Choices[8].note() != "too large" {
		t.Errorf("without memory for layers:2, the choice is %s: %+v", c.Ghosts, c.Choices)
	}
	for name, set := range map[string]func(*Options){
		"one host": func(o *Options) { o.RanksPerHost = 4 },
		"stale":    func(o *Options) { o.Config.Refresh = "every:2" },
		"asked":    func(o *Options) { o.Config.RecomputeGhosts = "layers:1" },
	} {
		if c := of(set).Candidates[0].Codecs[0]; c.Ghosts != "" || c.Choices != nil || c.Other != nil {
			t.Errorf("%s: %s of %+v", name, c.Ghosts, c.Choices)
		}
	}
}

// A line of progress names the present step and its time.
func TestPlanSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteps(time.Minute)
		var said strings.Builder
		stop := screen.Repeat(&said, s.line)
		time.Sleep(6 * time.Second)
		s.begin("measuring")
		time.Sleep(6 * time.Second)
		stop()
		if want := "siafu plan: reading the dataset, after 5s\nsiafu plan: measuring, after 10s\n"; said.String() != want || s.over() {
			t.Errorf("%q, over: %v", said.String(), s.over())
		}
		if time.Sleep(48 * time.Second); !s.over() {
			t.Error("a minute is not over")
		}
	})
}

// The estimate of a graph 10,000 times larger allocates at most 2 GB in all: no array has a length of the
// larger graph. Each of the nine choices has up to 256 frames for the ghosts of a hop; arrays of their
// length would take 32 GB.
func TestPlanOfLargerGraphAllocatesLittle(t *testing.T) {
	of := func(scale float64) uint64 {
		o := options(t, func(o *Options) {
			o.Config.Layers, o.Config.Partitioner, o.Config.Codec, o.Config.Memory, o.Scale = 3, "hash", "none", "9TB", scale
		})
		q, err := o.parse()
		if err != nil {
			t.Fatal(err)
		}
		ds, err := q.open()
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		if q.sized, err = q.larger(); err != nil {
			t.Fatal(err)
		}
		q.codedBits = func() float64 { return 8 }
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := q.candidate(ds, "hash")
		if err != nil || len(c.Codecs[0].Choices) != 9 {
			t.Fatalf("%v: %d choices of ghosts", err, len(c.Codecs[0].Choices))
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := of(1), of(1e4); large > small+2<<30 {
		t.Errorf("%d bytes, and %d for a graph 10,000 times larger", small, large)
	}
}

// With a scratch folder, values move to the disk until a rank fits in its memory, and the plan prints
// them.
func TestPlanWithScratch(t *testing.T) {
	plan := func(memory string) *Plan {
		p, err := New(options(t, func(o *Options) { o.Config.Scratch, o.Config.Memory = t.TempDir(), memory }))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	in, on := plan("4GB").Candidates[0], plan("1MB")
	out := on.Candidates[0]
	if in.Memory.Of(forecast.Disk) != 0 || out.Memory.Of(forecast.Disk) == 0 ||
		out.Codecs[0].Peak >= in.Codecs[0].Peak || out.Codecs[0].Fits {
		t.Errorf("%v in memory, %v with a scratch file", in.Memory, out.Memory)
	}
	var text bytes.Buffer
	if err := on.Print(&text); err != nil || !strings.Contains(text.String(), "scratch file of a rank") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// With --memory, a plan accepts what train accepts: pages of files are not counted in full.
func TestPlanLimit(t *testing.T) {
	of := func(memory int64) *Candidate {
		o := options(t, func(o *Options) {
			o.Config.Ranks, o.Config.Partitioner, o.Config.Codec, o.Config.Edges, o.Config.CacheInput = 1, "hash", "none", "plain", "off"
			o.Config.Memory, o.Scale = fmt.Sprint(memory)+"B", 1e3
		})
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		return p.Candidates[0]
	}
	all := of(1 << 50)
	need := all.Memory.Resident()
	if need >= all.Codecs[0].Peak || !of(need).Codecs[0].Fits || of(need - 1).Codecs[0].Fits {
		t.Errorf("%d bytes are needed, the peak is %d", need, all.Codecs[0].Peak)
	}
}

// What does not fit is refused, and printed all the same.
func TestPlanThatDoesNotFit(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*Options)
		says string
	}{
		"a little more ranks": {func(o *Options) { o.Config.Memory = "50.5MB" }, "graph ranks"},
		"never":               {func(o *Options) { o.Config.Memory = "1MB" }, "the program alone"},
		"kept input": {func(o *Options) {
			o.Config.Memory, o.Config.CacheInput, o.Config.InputDropout = "50.5MB",
				"on", 0
		}, "--cache-input off"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, tc.set)
			o.JSON = true
			var out bytes.Buffer
			err := Run(o, &out)
			if fault.KindOf(err) != fault.Config || fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v", err)
			}
			var p Plan
			if err := json.Unmarshal(out.Bytes(), &p); err != nil || p.Candidates[0].Codecs[0].Fits {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// A plan begins with which way is fastest and which is cheapest, in three lines at the
// most, of those that fit.
func TestRecommendation(t *testing.T) {
	of := func(set func(*Options)) (*Plan, []string) {
		p, err := New(options(t, func(o *Options) {
			o.Config.Ranks, o.Config.Servers, o.Config.Partitioner, o.Config.Codec, o.Try, o.All = 2, 0, "hash",
				"none,int4", []int{1, 4}, false
			set(o)
		}))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.Print(&text); err != nil {
			t.Fatal(err)
		}
		return p, strings.Split(text.String(), "\n")
	}
	p, lines := of(func(o *Options) { o.Bandwidth = "1mbit" })
	if p.Fastest == nil || p.Fastest.GraphRanks != 1 || p.Cheapest.GraphRanks != 1 ||
		!strings.HasPrefix(lines[0], "fastest:") || len(lines) > 12 {
		t.Errorf("over a slow link: %+v\n%s", p.Fastest, strings.Join(lines, "\n"))
	}
	if !strings.HasPrefix(lines[2], "basis:     ") || !strings.HasPrefix(lines[3], "planted") {
		t.Errorf("%q", lines)
	}
	p, _ = of(func(o *Options) {
		o.Bandwidth, o.Latency, o.Config.Hidden, o.Config.Instance = "1000tbit", "0s", 512, "0.36"
	})
	if f, c := p.Fastest, p.Cheapest; f.GraphRanks != 4 || c.USD > f.USD || f.Seconds > c.Seconds ||
		f.USD != f.Seconds*4*0.36/3600 || f.Codec != "none" {
		t.Errorf("over a fast link: %+v and %+v", f, c)
	}
	// 55 MB are enough for a rank of two, and not for one alone.
	p, _ = of(func(o *Options) { o.Config.Hidden, o.Config.Memory = 512, "55MB" })
	if p.Fastest == nil || p.Fastest.GraphRanks == 1 {
		t.Errorf("where one rank does not fit: %+v", p.Fastest)
	}
}

func TestBadOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*Options)
		kind fault.Kind
		says string
	}{
		"bandwidth":     {func(o *Options) { o.Bandwidth = "1GB" }, fault.Usage, "10gbit"},
		"latency":       {func(o *Options) { o.Latency = "-1s" }, fault.Usage, "50us"},
		"disk rate":     {func(o *Options) { o.DiskRate = "fast" }, fault.Usage, "1GB"},
		"memory":        {func(o *Options) { o.Config.Memory = "much" }, fault.Usage, "8GB"},
		"max time":      {func(o *Options) { o.MaxTime = -1 }, fault.Usage, "--max-time=-1ns"},
		"try":           {func(o *Options) { o.Try = []int{0} }, fault.Usage, "--try=0"},
		"hosts":         {func(o *Options) { o.RanksPerHost = 0 }, fault.Usage, "--ranks-per-host=0"},
		"codec":         {func(o *Options) { o.Config.Codec = "none,morse" }, fault.Usage, "morse"},
		"partitioner":   {func(o *Options) { o.Config.Partitioner = "hash,coin" }, fault.Usage, "coin"},
		"train's flags": {func(o *Options) { o.Config.Hidden = 0 }, fault.Usage, "--hidden=0"},
		"servers":       {func(o *Options) { o.Config.Servers = 4 }, fault.Config, "4 servers"},
		"no dataset":    {func(o *Options) { o.Data += "x" }, fault.Missing, "x"},
		"ranks":         {func(o *Options) { o.Config.Ranks = 4000 }, fault.Config, "3999 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(options(t, tc.set))
			if fault.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]float64{"10gbit": 1.25e9, "1Gbit/s": 1.25e8, "200 mbit": 2.5e7, "1.5kbit": 187.5, "1gb": 0,
		"gbit": 0, "-1gbit": 0, "1e400gbit": 0, "": 0, "0gbit": 0} {
		if got, err := Bandwidth(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("a bandwidth of %q: %v %v", text, got, err)
		}
	}
	for text, want := range map[string]int64{"8GB": 8e9, "1.5GiB": 3 << 29, "100": 100, "7kib": 7168, "1xb": 0, "9999999999TB": 0, "0": 0} {
		if got, err := Bytes(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q of memory: %v %v", text, got, err)
		}
	}
	for bytes, want := range map[int64]string{123: "0.000", 456789: "0.457", 12345678: "12.3", 1234567890: "1235"} {
		if got := megabytes(bytes); got != want {
			t.Errorf("%d bytes: %s", bytes, got)
		}
	}
	for s, want := range map[float64]string{12.3456: "12.3 s", 0.0123456: "12.3 ms", 5e-5: "50 µs"} {
		if got := duration(s); got != want {
			t.Errorf("%v seconds: %s", s, got)
		}
	}
	for b, want := range map[float64]string{1.25e9: "10 Gbit/s", 2.5e7: "200 Mbit/s", 125: "1 kbit/s"} {
		if got := rate(b); got != want {
			t.Errorf("%v bytes a second: %s", b, got)
		}
	}
}

// A plan of tensor work in functions has their table, by the prices of their memory, and
// one of a run on the ranks has none.
func TestPlanOfFunctions(t *testing.T) {
	of := func(memory int) (*Plan, string) {
		p, err := New(options(t, func(o *Options) {
			o.Config.Partitioner, o.Config.Codec, o.Config.Tensor, o.Config.Lambda, o.Config.LambdaMemory = "hash",
				"none", "lambda", "local", memory
		}))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.Print(&text); err != nil {
			t.Fatal(err)
		}
		return p, text.String()
	}
	large, text := of(10240)
	small, _ := of(192)
	if !strings.Contains(text, "Tensor work in functions with 10240 MB") || !strings.Contains(text, "invocations") {
		t.Errorf("no table of functions:\n%s", text)
	}
	x, y := large.Candidates[0].Functions, small.Candidates[0].Functions
	if x.Epoch.Invocations == 0 || x.Run.Invocations != y.Run.Invocations || x.Run.To != y.Run.To ||
		x.Run.From != y.Run.From || x.Run.To <= x.Epoch.To {
		t.Errorf("%+v with more memory, %+v with less", x, y)
	}
	if x.Run.USD <= 0 || y.Run.GBSeconds <= 0 {
		t.Errorf("%+v cost nothing, or %+v", x, y)
	}
	on, err := New(options(t, func(o *Options) { o.Config.Partitioner, o.Config.Codec = "hash", "none" }))
	if err != nil || on.Candidates[0].Functions != nil {
		t.Errorf("functions of a run without them: %v", err)
	}
	if _, err := New(options(t, func(o *Options) {
		o.Config.Tensor, o.Config.Lambda, o.Config.Mode = "lambda", "local",
			"async"
	})); fault.KindOf(err) != fault.Usage {
		t.Errorf("a run in bounded asynchrony: %v", err)
	}
}

// A plan of a run on GPUs says what lies there, beside what the host has, and times
// nothing.
func TestPlanOfGPUs(t *testing.T) {
	var memory [2]int64
	for k, tensor := range []string{"cpu", "cuda"} {
		p, err := New(options(t, func(o *Options) {
			o.Config.Tensor, o.Config.Partitioner, o.Config.Codec = tensor, "hash", "none"
		}))
		if err != nil {
			t.Fatal(err)
		}
		m := p.Candidates[0].Memory
		memory[k] = m.Of(forecast.Array)
		if gpu := m.Of(forecast.Device); p.Timed == (tensor == "cuda") || (gpu > memory[0]/2) == p.Timed ||
			strings.Contains(p.Verdict[0], "of a GPU") == p.Timed {
			t.Errorf("%s: timed %t, %d bytes on a GPU, %q", tensor, p.Timed, gpu, p.Verdict)
		}
	}
	if memory[1] >= memory[0] {
		t.Errorf("the host keeps arrays of %d bytes, of %d", memory[1], memory[0])
	}
}

// A plan of a large dataset with known counts reads only samples of it, so that it does not find damage
// elsewhere. Without the counts it verifies the dataset.
func TestPlanOfALargeDataset(t *testing.T) {
	o := options(t, func(o *Options) {
		o.Config.Ranks, o.Config.VertexOrder, o.Config.Codec, o.DiskRate = 1, "natural", "none", "2GB/s"
		o.Config.Scratch, o.Config.Memory, o.Config.InputDropout = t.TempDir(), "1GB", 0
		o.Try = []int{1, 2}
	})
	path := filepath.Join(o.Data, "features.bin")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1]++
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	plan := func(o Options) (*Plan, error) {
		q, err := o.parse()
		if err != nil {
			t.Fatal(err)
		}
		q.large = 0
		return q.estimate()
	}
	p, err := plan(o)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Disk; d == nil || d.Rate != 2e9 || d.Files.Verified == 0 || p.Candidates[0].report.Ranks[0].TrainEdges == 0 {
		t.Errorf("%+v", p.Disk)
	}
	if last := p.Verdict[len(p.Verdict)-1]; !strings.Contains(last, "[2] graph ranks") {
		t.Errorf("%q", p.Verdict)
	}
	o.Config.Ranks = 3
	if _, err := plan(o); fault.KindOf(err) != fault.Data {
		t.Errorf("without counts, a damaged file is not found: %v", err)
	}
}

// The estimates of a scaled graph are those of a generated graph of that size with the same degrees. The
// ghosts of 250 vertices a rank differ by up to a few percent from their mean.
func TestScale(t *testing.T) {
	of := func(vertices, edges int64, scale float64) *Plan {
		p, err := New(options(t, func(o *Options) {
			o.Data = filepath.Join(t.TempDir(), "planted")
			if _, err := generate.Write(o.Data,
				generate.Options{Vertices: vertices, Edges: edges, Features: 24, Classes: 4, Seed: 3}, false); err != nil {
				t.Fatal(err)
			}
			o.Scale, o.Config.Ranks, o.Config.Servers, o.Config.Partitioner, o.Config.Codec, o.Try = scale, 8, 0, "hash", "none,int8", nil
			o.Config.RecomputeGhosts, o.Config.CacheInput, o.Config.Order = "none", "off", "apply-first"
		}))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	big, scaled := of(32000, 320000, 1), of(2000, 20000, 16)
	within := func(what string, got, want int64) {
		if d := math.Abs(float64(got)/float64(want) - 1); d > 0.05 {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	b, s := big.Candidates[0], scaled.Candidates[0]
	within("edges", scaled.Edges, big.Edges)
	within("ghosts", s.Ghosts, b.Ghosts)
	within("bytes", s.Codecs[0].Traffic.Sent, b.Codecs[0].Traffic.Sent)
	within("memory", s.Codecs[0].Peak, b.Codecs[0].Peak)
	if scaled.Vertices != big.Vertices {
		t.Errorf("%d vertices, want %d", scaled.Vertices, big.Vertices)
	}
	for _, scale := range []float64{0.5, math.NaN(), 3e6} {
		if _, err := New(options(t, func(o *Options) { o.Scale = scale })); fault.KindOf(err) != fault.Usage {
			t.Errorf("--scale %g: %v", scale, err)
		}
	}
}

package simulate

import (
	"math"
	"testing"
	"time"

	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// streaming returns a rank that fetches files: two intervals of one layer, whose tasks take a second each,
// those that gather from own vertices two.
//
//	pull | 2 (fetch, AV) | 2 (fetch, 2 GA own, GA, AV, loss, ∇AV, ∇AV) | WU | loss | WU
func streaming(fetches ...Fetch) *Rank {
	r := &Rank{Workers: 1, Outline: engine.Outline{Layers: []engine.LayerOutline{{Gathers: true}}, Intervals: 2, Loss: true}}
	e := Epoch{Pull: 1, Score: 1, Flush: 1, Fetches: fetches}
	for _, t := range r.Graphs()[0].Tasks() {
		takes := 1.
		if t.Stage == schedule.GatherOwn {
			takes = 2
		}
		e.Tasks = append(e.Tasks, Work{Serial: takes})
	}
	r.Epochs = []Epoch{e}
	return r
}

// Expected values were computed by hand from the diagram above: 20 seconds of work. Tasks begin at 1.
func TestKnownFetches(t *testing.T) {
	fetches := []Fetch{{20, 1}, {40, 1}, {60, 1}, {10, 1}}
	large := []Fetch{{engine.FetchAhead, 0.5}, {engine.FetchAhead, 0.5}, {engine.FetchAhead, 0.5}, {1, 10}}
	for name, tc := range map[string]struct {
		fetches     []Fetch
		rate        float64
		workers     int
		epoch, wait float64
	}{
		// Fetches end at 2, 3, 4 and 5: only the first task waits.
		"as recorded": {fetches, 0, 1, 21, 1},
		// Fetches end at 3, 7, 13 and 14. The tasks AV begin at 3 and 7, the first gather at 13 and not at 8.
		"slow": {fetches, 10, 1, 30, 2 + 3 + 5},
		"fast": {fetches, math.Inf(1), 1, 20, 0},
		// Tasks AV begin at 1.5 and 2.5. The third fetch begins at 2.5, when no fetched bytes wait for their
		// task, and the last one at 3.5, with the first gather. The second chain begins at 13.5 and not at 10.5.
		"limit of bytes ahead": {large, 0, 1, 20 + 0.5 + 3, 3.5},
		// The second worker reads the second fetch itself, from 1 to 2, and both tasks AV begin at 2. The
		// fetches of the gathers end at 3 and 4, so one worker waits from 3 to 4. Gathers begin at 3 and 4.
		// Work of both chains ends at 10 and 11, then WU, loss and WU.
		"two workers": {fetches, 0, 2, 14, (1 + 1 + 1) / 2.},
		// The disk reads one fetch at a time: 1 to 3, 3 to 7, 7 to 13, and 13 to 14. One worker waits for the
		// third fetch from 8 to 13. The chains end at 20 and 21.
		"two workers, slow": {fetches, 10, 2, 24, (2 + 6 + 5 + 6) / 2.},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{Ranks: []*Rank{streaming(tc.fetches...)}, Workers: tc.workers,
				Link: Link{Rate: math.Inf(1)}, Staleness: -1, Disk: tc.rate}
			m := c.Run(1)
			if got := m.Ranks[0]; math.Abs(m.Epoch-tc.epoch) > 1e-9 || math.Abs(got.Disk-tc.wait) > 1e-9 {
				t.Errorf("%g s with %g s of waits, want %g with %g", m.Epoch, got.Disk, tc.epoch, tc.wait)
			}
		})
	}
}

// fetchTimeline is the timeline of one rank and one worker, which waits for fetches of the given bytes and
// durations. Tasks take a millisecond, and begin half a millisecond after the task before or with the end of
// their fetch. After an epoch, an evaluation reads the same parts.
func fetchTimeline(o engine.Outline, epochs int, of func(k int) (bytes int, takes time.Duration)) *trace.File {
	const gap = time.Millisecond / 2
	f := &trace.File{Info: map[string]string{"mode": "pipe"}, Processes: []trace.Process{{Role: "graph", Outline: encoded(o)}}}
	at := time.Second
	add := func(e trace.Event) { f.Events = append(f.Events, e) }
	step := func(kind string, epoch int) {
		add(trace.Event{Task: kind, Epoch: epoch, Layer: trace.None, Interval: trace.None, Start: at, Dur: time.Millisecond})
		at += time.Millisecond
	}
	g := o.Epoch()
	for epoch := 1; epoch <= epochs; epoch++ {
		step("WU", epoch)
		var ends []time.Duration
		end := at
		for k, t := range g.Fetches() {
			bytes, takes := of(k)
			add(trace.Event{Task: trace.Fetch, Worker: 1, Epoch: epoch, Layer: t.Layer, Interval: t.Interval,
				Read: bytes, Start: end, Dur: takes})
			end += takes
			ends = append(ends, end)
		}
		w := schedule.NewWalk(g.Graph)
		w.Start(epoch)
		for t, ok := w.Next(); ok; t, ok = w.Next() {
			at += gap
			e := trace.Event{Task: trace.Fetch, Epoch: epoch, Layer: t.Layer, Interval: t.Interval, Read: trace.None, Start: at}
			if k := g.FetchOf(t); k >= 0 && ends[k] > at {
				e.Dur, e.Wait = ends[k]-at, ends[k]-at
				add(e)
				at = ends[k]
			}
			e.Task, e.Start, e.Dur, e.Wait = t.Stage.Kind(), at, time.Millisecond, 0
			add(e)
			at += e.Dur
			w.Done(t)
		}
		step("loss", epoch)
		step("WU", epoch)
		for _, t := range g.Fetches() {
			add(trace.Event{Task: trace.Fetch, Worker: 1, Epoch: epoch, Layer: t.Layer, Interval: t.Interval, Start: at + gap, Dur: gap})
		}
		step(evaluation, epoch)
	}
	return f
}

// A replay takes as long as the recorded epochs if fetches take the recorded time. At the recorded rate of
// all bytes, fetches end earlier or later than recorded. Ends of tasks are sums and maxima of ends of
// fetches, so an epoch differs at most by the largest difference of a fetch.
func TestReplayOfFetches(t *testing.T) {
	o := engine.Outline{Layers: []engine.LayerOutline{{Gathers: true}, {Gathers: true, GathersBackward: true}}, Intervals: 5, Loss: true}
	of := func(k int) (bytes int, takes time.Duration) {
		return 8000 + 400*(k%7), time.Duration(8000+500*(k%4)) * time.Microsecond
	}
	r, err := Record(fetchTimeline(o, 3, of), "")
	if err != nil {
		t.Fatal(err)
	}
	bytes, seconds := 0., 0.
	for _, f := range r.Ranks[0].Epochs[0].Fetches {
		bytes, seconds = bytes+f.Bytes, seconds+f.Seconds
	}
	rate, apart, end, paced := bytes/seconds, 0., 0., 0.
	for _, f := range r.Ranks[0].Epochs[0].Fetches {
		end, paced = end+f.Seconds, paced+f.Bytes/rate
		apart = max(apart, math.Abs(end-paced))
	}
	was := r.Ranks[0].Use
	if was.Disk < was.Span/4 || apart > was.Span/10 {
		t.Fatalf("recorded %+v, %g bytes, fetches %g s apart", was, bytes, apart)
	}
	for disk, tolerance := range map[float64]float64{0: 1e-9, rate: apart} {
		c := &Cluster{Ranks: r.Ranks, Workers: 1, Link: Link{Rate: math.Inf(1)}, Staleness: -1, Disk: disk}
		m := c.Run(len(r.Epochs))
		if got := m.Ranks[0]; math.Abs(got.Span-was.Span) > tolerance || math.Abs(got.Disk-was.Disk) > tolerance {
			t.Errorf("rate %g: %+v, recorded %+v", disk, got, was)
		}
	}
	broken := fetchTimeline(o, 1, of)
	broken.Events = append(broken.Events[:3:3], broken.Events[4:]...)
	if _, err := Record(broken, ""); err == nil {
		t.Error("a timeline that lacks a fetch is recorded")
	}
}

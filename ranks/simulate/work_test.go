package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"siafu/kernels"
	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// alone returns a cluster of one rank of one layer. Its tasks take what work returns.
func alone(intervals, workers int, work func(schedule.Task) Work) *Cluster {
	r := &Rank{Workers: 1, Outline: engine.Outline{
		Layers: []engine.LayerOutline{{Gathers: true, GathersBackward: true}}, Intervals: intervals, Loss: true,
	}}
	e := Epoch{Pull: 1, Score: 1, Flush: 1}
	for _, t := range r.Graphs()[0].Tasks() {
		e.Tasks = append(e.Tasks, work(t))
	}
	r.Epochs = []Epoch{e}
	return &Cluster{Ranks: []*Rank{r}, Ghosts: []float64{0}, Workers: workers, Bytes: []float64{1}, Weights: 8, Staleness: -1,
		Link: Link{Rate: math.Inf(1)}}
}

// kernel returns a kernel of n chunks.
func kernel(n, slowest int32, total, longest float64) kernels.Chunks {
	return kernels.Chunks{Count: n, Slowest: slowest, Total: time.Duration(1e9 * total), Longest: time.Duration(1e9 * longest)}
}

// divisible returns work of some kernels, and at times of none.
func divisible(rng *rand.Rand) (w Work) {
	w.Serial = 0.1 * rng.Float64()
	for range rng.IntN(4) {
		n, total := 2+rng.Int32N(9), rng.Float64()
		w.Kernels = append(w.Kernels, kernel(n, rng.Int32N(n), total, total/float64(n)*(1+rng.Float64())))
	}
	return w
}

// chain returns the seconds of a task that any number of workers assist.
func (w Work) chain() float64 {
	sum := w.Serial
	for _, k := range w.Kernels {
		sum += k.Longest.Seconds()
	}
	return sum
}

// Expected values were computed by hand. Each task takes a second, except for the first ones.
func TestAssistanceByHand(t *testing.T) {
	// A second, then two kernels: 1, 3 and 1; 1 and 1.
	two := Work{1, []kernels.Chunks{kernel(3, 1, 5, 3), kernel(2, 0, 2, 1)}}
	// Four chunks of two seconds.
	even := Work{0, []kernels.Chunks{kernel(4, 0, 8, 2)}}
	short, long := Work{0, []kernels.Chunks{kernel(2, 0, 2, 1)}}, Work{0, []kernels.Chunks{kernel(3, 0, 9, 3)}}
	for name, tc := range map[string]struct {
		first              []Work
		intervals, workers int
		shared             int
		saved              float64 // against no assistance
	}{
		"one worker": {[]Work{two}, 1, 1, 0, 0},
		// One worker runs the chunks 0 and 2, the other one chunk 1 until 4; then each one chunk.
		"two workers":   {[]Work{two}, 1, 2, 0, 3},
		"three workers": {[]Work{two}, 1, 3, 0, 3},
		"four workers":  {[]Work{even}, 1, 4, 0, 6},
		"one processor": {[]Work{even}, 1, 4, 1, 0},
		"three":         {[]Work{even}, 1, 4, 3, 4}, // chunk 3 runs after the others
		// The other worker has a task until 1, and then runs chunks until 3 and 5, the first worker until 2 and 4.
		"two intervals": {[]Work{even}, 2, 2, 0, 3},
		// All chunks begin at once.
		"two kernels": {[]Work{short, long}, 2, 5, 0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			n := -1
			c := alone(tc.intervals, tc.workers, func(schedule.Task) Work {
				if n++; n < len(tc.first) {
					return tc.first[n]
				}
				return Work{Serial: 1}
			})
			c.Shared = tc.shared
			for _, c.Staleness = range []int{-1, 0} {
				m, base := c.Run(1), *c
				base.Alone = true
				if b := base.Run(1); math.Abs(b.Epoch-m.Epoch-tc.saved) > 1e-9 || math.Abs(b.Ranks[0].Busy-m.Ranks[0].Busy) > 1e-9 {
					t.Errorf("staleness %d: %g seconds and %g of work, %g and %g without assistance, want %g less", c.Staleness, m.Epoch,
						m.Ranks[0].Busy, b.Epoch, b.Ranks[0].Busy, tc.saved)
				}
			}
		})
	}
}

// The idle time of a worker that waits for rows ends when it assists. Rows leave at 3 and come at 8.5. One worker gathers until 4,
// and assists the other one from 6 to 8.
func TestWaitsDuringAssistance(t *testing.T) {
	c := two(false, Link{Rate: 64, Latency: 0.5})
	c.Workers = 2
	for _, k := range c.Ranks {
		for n, task := range k.Graphs()[0].Tasks() {
			if task.Stage == schedule.GatherOwn && task.Interval == 1 {
				k.Epochs[0].Tasks[n] = Work{3, []kernels.Chunks{kernel(4, 0, 4, 1)}}
			}
		}
	}
	if u := c.Run(1).Ranks[0]; math.Abs(u.Rows-(2+1)/2.0) > 1e-9 {
		t.Errorf("%+v", u)
	}
}

// An epoch of one rank takes at least the work of a worker, and at least the longest chunk of each kernel of an interval. It takes
// at most as long as without assistance. One worker takes all work, and many workers the longest chunks of a single interval.
func TestAssistance(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 21))
		intervals, workers := 1+rng.IntN(5), 1+rng.IntN(9)
		all, chain := 3.0, 3.0 // pull, score, flush
		c := alone(intervals, workers, func(t schedule.Task) Work {
			w := divisible(rng)
			all += w.seconds()
			if t.Interval <= 0 {
				chain += w.chain()
			}
			return w
		})
		c.Staleness = -rng.IntN(2) // also in bounded asynchrony
		m := c.Run(1)
		base := *c
		base.Alone = true
		without := base.Run(1)
		if math.Abs(without.Ranks[0].Busy-m.Ranks[0].Busy) > 1e-9 || m.Epoch < m.Ranks[0].Busy-1e-9 || m.Epoch > without.Epoch+1e-9 {
			t.Errorf("%d: %+v, without assistance %+v", seed, m.Ranks[0], without.Ranks[0])
		}
		if c.Staleness == 0 {
			continue
		}
		if m.Epoch < chain-1e-9 || workers == 1 && math.Abs(m.Epoch-all) > 1e-9 {
			t.Errorf("%d: %g seconds of %d workers, the chain takes %g, all work %g", seed, m.Epoch, workers, chain, all)
		}
		if c.Workers = 99; intervals == 1 && math.Abs(c.Run(1).Epoch-chain) > 1e-9 {
			t.Errorf("%d: %g seconds of many workers, want %g", seed, c.Run(1).Epoch, chain)
		}
	}
}

// Ranks that exchange rows are no slower with assistance, and do the same work.
func TestAssistanceOfRanks(t *testing.T) {
	faster := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 22))
		c := random(rng)
		for _, k := range c.Ranks {
			for n := range k.Epochs[0].Tasks {
				k.Epochs[0].Tasks[n] = divisible(rng)
			}
		}
		c.Shared = rng.IntN(2) * (1 + rng.IntN(6))
		m := c.Run(3)
		c.Alone = true
		without := c.Run(3)
		for n, u := range m.Ranks {
			if math.Abs(u.Busy-without.Ranks[n].Busy) > 1e-9 || u.Span < u.Busy-1e-9 || m.Epoch > without.Epoch*anomaly {
				t.Errorf("%d: %+v, %+v without assistance", seed, u, without.Ranks[n])
			}
		}
		if m.Epoch < without.Epoch-1e-9 {
			faster++
		}
	}
	if faster < 20 {
		t.Errorf("assistance makes %d of 60 epochs faster", faster)
	}
}

// x times the work has chunks of x times the time in all, of which none is longer unless their number cannot grow.
func TestTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 31))
	for range 500 {
		w, x := divisible(rng), math.Pow(10, 4*rng.Float64()-2)
		got := w.times(x)
		if math.Abs(got.seconds()-x*w.seconds()) > 1e-6 || len(got.Kernels) != len(w.Kernels) {
			t.Fatalf("%g times %+v is %+v", x, w, got)
		}
		for n, k := range got.Kernels {
			was, sum, longest := w.Kernels[n], 0.0, 0.0
			for i := range k.Count {
				sum += secondsOf(k, i)
				longest = max(longest, secondsOf(k, i))
			}
			most := max(was.Longest.Seconds(), was.Total.Seconds()*x/max(math.Round(x*float64(was.Count)), 1))
			if math.Abs(sum-x*was.Total.Seconds()) > 1e-6 || math.Abs(longest-k.Longest.Seconds()) > 1e-6 || longest > most+1e-6 {
				t.Fatalf("%g times %+v is %+v", x, was, k)
			}
		}
	}
}

// A task has the kernels of its event, unless they ran during a wait.
func TestWorkOf(t *testing.T) {
	e := &trace.Event{Dur: 10 * time.Second, Kernels: []kernels.Chunks{kernel(4, 2, 8, 3)}}
	for wait, want := range map[time.Duration]Work{
		2 * time.Second: {0, e.Kernels},
		3 * time.Second: {Serial: 7},
	} {
		if e.Wait = wait; fmt.Sprint(workOf(e)) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", workOf(e), want)
		}
	}
}

// The least of two epochs has the faster one of the two runs of each task, also in bounded asynchrony.
func TestTakeLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 41))
	draw := func(schedule.Task) Work { return divisible(rng) }
	k := alone(2, 1, draw).Ranks[0]
	other := *alone(2, 1, draw).Ranks[0]
	want := Epoch{Pull: 1, Score: 0.5, Flush: 0.25}
	for n, w := range k.Epochs[0].Tasks {
		if o := other.Epochs[0].Tasks[n]; o.seconds() < w.seconds() {
			w = o
		}
		want.Tasks = append(want.Tasks, w)
	}
	paced := *k
	for at, w := range k.splitTimes(&k.Epochs[0]) {
		o := k.splitTimes(&other.Epochs[0])[at]
		paced.pace = []map[taskKey]Work{{at: w}, {at: o}}
		(&Recording{Ranks: []*Rank{&paced}}).takeLeast()
		if got := paced.pace[0][at].seconds(); got != min(w.seconds(), o.seconds()) {
			t.Errorf("%v takes %g", at, got)
		}
	}
	k.Epochs = append(k.Epochs, Epoch{Pull: 2, Score: 0.5, Flush: 0.25, Gap: 1, Left: 1, Tasks: other.Epochs[0].Tasks})
	if (&Recording{Ranks: []*Rank{k}}).takeLeast(); !reflect.DeepEqual(k.Epochs, []Epoch{want}) {
		t.Errorf("%+v, want %+v", k.Epochs, want)
	}
}

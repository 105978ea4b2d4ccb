package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

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

// divisible returns work of some kernels, and at times of none.
func divisible(rng *rand.Rand) (w Work) {
	w.Seconds = 0.1 * rng.Float64()
	for range rng.IntN(4) {
		k := Kernel{Chunks: 2 + rng.IntN(9), Total: rng.Float64()}
		k.Slowest = rng.IntN(k.Chunks)
		k.Longest = k.Total / float64(k.Chunks) * (1 + rng.Float64())
		w.Seconds += k.Total
		w.Kernels = append(w.Kernels, k)
	}
	return w
}

// chain returns the seconds of a task that any number of workers assist.
func (w Work) chain() float64 {
	sum := w.Seconds
	for _, k := range w.Kernels {
		sum -= k.Total - k.Longest
	}
	return sum
}

// Expected values were computed by hand. Each task takes a second, except for the first one, which takes 8.
func TestAssistanceByHand(t *testing.T) {
	// A second, then two kernels: 1, 3 and 1; 1 and 1.
	two := Work{8, []Kernel{{3, 1, 5, 3}, {2, 0, 2, 1}}}
	// Four chunks of two seconds.
	even := Work{8, []Kernel{{4, 0, 8, 2}}}
	for name, tc := range map[string]struct {
		first              Work
		intervals, workers int
		shared             int
		saved              float64 // against no assistance
	}{
		"one worker": {two, 1, 1, 0, 0},
		// One worker runs the chunks 0 and 2, the other one chunk 1 until 4; then each one chunk.
		"two workers":   {two, 1, 2, 0, 3},
		"three workers": {two, 1, 3, 0, 3},
		"four workers":  {even, 1, 4, 0, 6},
		"one processor": {even, 1, 4, 1, 0},
		"three":         {even, 1, 4, 3, 4}, // chunk 3 runs after the others
		// The other worker has a task until 1, and then runs chunks until 3 and 5, the first worker until 2 and 4.
		"two intervals": {even, 2, 2, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			begun := false
			c := alone(tc.intervals, tc.workers, func(schedule.Task) Work {
				if begun {
					return Work{Seconds: 1}
				}
				begun = true
				return tc.first
			})
			c.Shared = tc.shared
			m := c.Run(2)
			c.Alone = true
			if base := c.Run(2); math.Abs(base.Epoch-m.Epoch-tc.saved) > 1e-9 || math.Abs(base.Ranks[0].Busy-m.Ranks[0].Busy) > 1e-9 {
				t.Errorf("%g seconds and %g of work, %g and %g without assistance, want %g less", m.Epoch, m.Ranks[0].Busy, base.Epoch,
					base.Ranks[0].Busy, tc.saved)
			}
		})
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
			all += w.Seconds
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
		if math.Abs(got.Seconds-x*w.Seconds) > 1e-9 || len(got.Kernels) != len(w.Kernels) {
			t.Fatalf("%g times %+v is %+v", x, w, got)
		}
		for n, k := range got.Kernels {
			was, sum, longest := w.Kernels[n], 0.0, 0.0
			for i := range k.Chunks {
				sum += k.seconds(i)
				longest = max(longest, k.seconds(i))
			}
			most := max(was.Longest, was.Total*x/max(math.Round(x*float64(was.Chunks)), 1))
			if math.Abs(sum-x*was.Total) > 1e-9*(1+sum) || math.Abs(longest-k.Longest) > 1e-9 || longest > most+1e-9 {
				t.Fatalf("%g times %+v is %+v", x, was, k)
			}
		}
	}
}

// A task has the kernels of its event, unless they ran during a wait.
func TestWorkOf(t *testing.T) {
	e := &trace.Event{Dur: 10 * time.Second, Kernels: []trace.Kernel{{Count: 4, Slowest: 2, Total: 8 * time.Second, Longest: 3 * time.Second}}}
	for wait, want := range map[time.Duration]Work{
		2 * time.Second: {8, []Kernel{{4, 2, 8, 3}}},
		3 * time.Second: {7, nil},
	} {
		if e.Wait = wait; fmt.Sprint(workOf(e)) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", workOf(e), want)
		}
	}
}

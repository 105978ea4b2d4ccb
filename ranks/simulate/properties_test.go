package simulate

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/lambda/bill"
	"siafu/ranks/engine"
	"siafu/ranks/schedule"
)

// drawnFrom returns a rank of two layers whose tasks take a random time each.
func drawnFrom(rng *rand.Rand, intervals int) *Rank {
	r := &Rank{Workers: 1, Outline: engine.Outline{
		Layers:    []engine.LayerOutline{{Gathers: true}, {Gathers: true, GathersBackward: true}},
		Intervals: intervals, Loss: true, GhostOutline: engine.GhostOutline{Ghosts: true, Returns: true, Pieces: 1},
	}}
	e := Epoch{Pull: 0.1, Score: 0.1, Flush: 0.1, Gap: 0.01}
	for _, g := range r.Graphs() {
		for range g.Tasks() {
			e.Tasks = append(e.Tasks, Work{Serial: 0.1 + rng.Float64()})
		}
	}
	r.Epochs = []Epoch{e}
	return r
}

// random returns a cluster of some ranks like that.
func random(rng *rand.Rand) *Cluster {
	c := &Cluster{Workers: 1 + rng.IntN(3), Bytes: []float64{40, 10}, Weights: 100, Staleness: -1 + rng.IntN(2)}
	c.Link = Link{Rate: math.Pow(10, 1+3*rng.Float64()), Latency: 0.1 * rng.Float64()}
	c.Servers, c.Server = rng.IntN(3), 0.1
	intervals := 1 + rng.IntN(4)
	for range 2 + rng.IntN(4) {
		c.Ranks = append(c.Ranks, drawnFrom(rng, intervals))
		c.Ghosts = append(c.Ghosts, float64(1+rng.IntN(20)))
		c.Slower = append(c.Slower, 1)
	}
	return c
}

// anomaly is by how much an epoch may be longer although nothing is worse: tasks and messages
// that arrive at other times are processed in another order (Graham's anomalies). Of 2,000
// samples 88 did so, by at most 12 %.
const anomaly = 1.15

// More bandwidth is never slower. A straggler's epoch takes at least its own work, and at most
// the straggler's factor times all work. Bounded asynchrony with staleness 1 is no slower than
// with 0.
func TestProperties(t *testing.T) {
	const epochs = 6
	for seed := range uint64(60) {
		c := random(rand.New(rand.NewPCG(seed, 1)))
		base := c.Run(epochs).Epoch
		if again := c.Run(epochs).Epoch; again != base {
			t.Fatalf("%d: %g seconds, and %g", seed, base, again)
		}
		fast := *c
		fast.Link = Link{Rate: 10 * c.Link.Rate, Latency: c.Link.Latency / 2}
		if got := fast.Run(epochs).Epoch; got > base*anomaly {
			t.Errorf("%d: %g seconds over a faster link, %g before", seed, got, base)
		}
		slow := *c
		slow.Slower = append([]float64{3}, c.Slower[1:]...)
		m := slow.Run(epochs)
		if m.Epoch < m.Ranks[0].Busy-1e-9 || m.Epoch > 3*base*anomaly || c.Staleness < 0 && m.Epoch*anomaly < base {
			t.Errorf("%d: %g seconds with a straggler that works %g, %g without", seed, m.Epoch, m.Ranks[0].Busy, base)
		}
		if c.Staleness == 0 {
			ahead := *c
			ahead.Staleness = 1
			if got := ahead.Run(epochs).Epoch; got > base*anomaly {
				t.Errorf("%d: %g seconds with staleness 1, %g with 0", seed, got, base)
			}
		}
	}
}

// Where ranks wait for each other's rows, bounded asynchrony is faster than training in
// step with the same tasks: within an epoch nobody waits for rows.
func TestAsyncHidesSlowLinks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := &Cluster{Workers: 1, Bytes: []float64{40, 40}, Weights: 8, Staleness: -1, Link: Link{Rate: 100, Latency: 0.5}}
	for range 4 {
		c.Ranks = append(c.Ranks, drawnFrom(rng, 3))
		c.Ghosts = append(c.Ghosts, 20)
	}
	inStep := c.Run(10)
	c.Staleness = 0
	paced := c.Run(10)
	if paced.Epoch > 0.9*inStep.Epoch {
		t.Errorf("%g seconds in bounded asynchrony, %g in step", paced.Epoch, inStep.Epoch)
	}
}

// Rows are of an epoch when every interval of the others has sent that epoch's, gradients
// when every other rank has.
func TestAsyncKnowsTheAgeOfRows(t *testing.T) {
	p := &asyncRank{stored: map[epochTask]int{}, oldest: map[taskKey]int{}, ranges: 3, nodes: 1}
	expect := func(when string, there, back int) {
		t.Helper()
		a, b := p.Oldest(schedule.Task{Stage: schedule.GatherGhosts, Layer: 1}),
			p.Oldest(schedule.Task{Stage: schedule.GatherBackward, Layer: 1})
		if a != there || b != back {
			t.Errorf("%s: epochs %d and %d, want %d and %d", when, a, b, there, back)
		}
	}
	put := func(stage schedule.Stage, epoch, times int) {
		for range times {
			p.noteStored(schedule.Task{Stage: stage, Layer: 1, Epoch: epoch})
		}
	}
	expect("at first", 0, 0)
	put(schedule.Receive, 1, 2)
	expect("but one", 0, 0)
	put(schedule.Receive, 2, 1)
	put(schedule.Receive, 1, 1)
	expect("rows", 1, 0)
	put(schedule.ReceiveBackward, 1, 1)
	expect("gradients", 1, 1)
}

// Every task of every interval runs once an epoch, at its time.
func TestAsyncDoesAllWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for servers := range 3 {
		c := &Cluster{Workers: 2, Bytes: []float64{1, 1}, Weights: 8, Servers: servers, Link: Link{Rate: math.Inf(1)}}
		for range 3 {
			c.Ranks = append(c.Ranks, drawnFrom(rng, 3))
			c.Ghosts = append(c.Ghosts, 1)
		}
		m := c.Run(5)
		for n, k := range c.Ranks {
			want := 0.
			for at, takes := range k.asyncTimes()[0] {
				if at.stage != schedule.Update && (at.stage != schedule.Send || at.interval >= 0) {
					want += takes.seconds()
				}
			}
			if got := 2 * m.Ranks[n].Busy; math.Abs(got-want) > 1e-9 { // of two workers
				t.Errorf("%d servers, rank %d: %g seconds of work, want %g", servers, n, got, want)
			}
		}
	}
}

// Invocations by hand: one interval of one rank, whose six tensor tasks are five in
// functions, each of which is a second on its way, 50 bytes at 25 bytes a second, and a
// second of work.
func TestFunctions(t *testing.T) {
	tariff, err := bill.Architecture("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	r := drawn(false)
	r.Outline.Intervals, r.Outline.Ghosts, r.Outline.Returns = 1, false, false
	r.Epochs[0].Tasks = nil
	for range r.Graphs()[0].Tasks() {
		r.Epochs[0].Tasks = append(r.Epochs[0].Tasks, Work{Serial: 1})
	}
	f := &Functions{
		AtOnce: 1, Memory: 1024, Overhead: 1, Cold: 0.5, Rate: 25, Hand: 0, Tariff: tariff, Near: true,
		Of: func(int, schedule.Task, float64) Call { return Call{To: 30, Back: 20, Work: 1} },
	}
	c := &Cluster{Ranks: []*Rank{r}, Ghosts: []float64{0}, Workers: 1, Link: Link{Rate: math.Inf(1)}, Bytes: []float64{1},
		Weights: 8, Staleness: -1, Functions: f}
	tensor, others := 0., 0.
	for _, task := range r.Graphs()[0].Tasks() {
		if engine.Tensor(task.Stage) {
			tensor++
		} else {
			others++
		}
	}
	m := c.Run(2)
	// An invocation takes 1+2+1 seconds; the first half a second more. Weights, losses
	// and gradients take a second each.
	want := (2*(tensor*4+others+3) + 0.5) / 2
	if math.Abs(m.Epoch-want) > 1e-9 || m.Invocations != tensor {
		t.Errorf("%g seconds and %g invocations, want %g and %g", m.Epoch, m.Invocations, want, tensor)
	}
	// Work and bytes are charged for, at a GB.
	if seconds := (2*3*tensor + 0.5) / 2; math.Abs(m.GBSeconds-seconds) > 1e-9 || m.USD <= 0 || m.To != 30*tensor || m.Back != 20*tensor {
		t.Errorf("%+v, want %g GB-seconds", m.Bill, seconds)
	}
	// Cards carry bytes where functions are elsewhere; a bridge carries them twice.
	f.Near, f.Cold, c.Link = false, 0, Link{Rate: 10}
	far := c.Run(2).Epoch
	if want := tensor*(4+5) + others + 3; math.Abs(far-want) > 1e-9 {
		t.Errorf("%g seconds over a card, want %g", far, want)
	}
	f.Bridges = 1
	if got, want := c.Run(2).Epoch, tensor*(4+10)+others+3; got < far || got > want+1e-9 {
		t.Errorf("%g seconds over a bridge, want from %g to %g", got, far, want)
	}
}

// Functions on the ranks' hosts use the processors that ranks share, and so do copies of an idle
// worker: on one processor an epoch takes the sum of all work.
func TestSharedProcessors(t *testing.T) {
	tariff, _ := bill.Architecture("x86_64")
	rng := rand.New(rand.NewPCG(11, 12))
	for _, staleness := range []int{-1, 0} {
		c := &Cluster{Workers: 1, Bytes: []float64{40, 10}, Weights: 8, Staleness: staleness, Shared: 1,
			Link: Link{Rate: math.Inf(1)}, Copy: 1e-3}
		for range 2 {
			k := drawnFrom(rng, 3).recut(true, 3)
			k.Epochs[0].Gap = 0
			c.Ranks = append(c.Ranks, k)
			c.Ghosts = append(c.Ghosts, 10)
		}
		c.Functions = &Functions{AtOnce: 3, Memory: 192, Near: true, Overhead: 0.1, Tariff: tariff,
			Of: func(int, schedule.Task, float64) Call { return Call{Work: 0.2} }}
		m := c.Run(2)
		work := 0.3 * m.Invocations
		for _, u := range m.Ranks {
			work += u.Busy
		}
		// Rows and gradients of 10 ghosts of each rank are copied twice; in step, sums are copied too.
		copies := 2 * 2 * 10 * (40 + 10 + 10) * c.Copy
		if least := work + copies - 1e-9; m.Epoch < least || m.Epoch > least+copies {
			t.Errorf("staleness %d: %g seconds for %g of work and %g of copies", staleness, m.Epoch, work, copies)
		}
	}
}

// More functions at a time are never slower, in step and in bounded asynchrony, and all
// tasks are done.
func TestMoreFunctions(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	tariff, _ := bill.Architecture("x86_64")
	for _, staleness := range []int{-1, 1} {
		before := math.Inf(1)
		for _, atOnce := range []int{1, 2, 8} {
			c := &Cluster{Workers: 2, Bytes: []float64{1, 1}, Weights: 8, Staleness: staleness, Link: Link{Rate: 1e6}}
			for range 3 {
				c.Ranks = append(c.Ranks, drawnFrom(rng, 6).recut(true, 6))
				c.Ghosts = append(c.Ghosts, 1)
			}
			c.Functions = &Functions{AtOnce: atOnce, Memory: 192, Overhead: 0.3, Tariff: tariff,
				Of: func(_ int, _ schedule.Task, recorded float64) Call { return Call{100, 100, 2 * recorded} }}
			m := c.Run(4)
			if m.Epoch > before || m.Invocations < 3*6*3 {
				t.Errorf("%g seconds with %d functions, %g with fewer; %g invocations", m.Epoch, atOnce, before, m.Invocations)
			}
			before = m.Epoch
		}
	}
}

// What is fused does the work of its stages.
func TestFused(t *testing.T) {
	k := drawnFrom(rand.New(rand.NewPCG(7, 8)), 2)
	f := k.recut(true, 2)
	sum := func(k *Rank) (s float64) {
		for _, x := range k.Epochs[0].Tasks {
			s += x.seconds()
		}
		return s
	}
	if a, b := sum(k), sum(f); math.Abs(a-b) > 1e-9 || len(f.Epochs[0].Tasks) >= len(k.Epochs[0].Tasks) || k.Outline.Fused {
		t.Errorf("%g seconds in %d tasks, %g in %d", a, len(k.Epochs[0].Tasks), b, len(f.Epochs[0].Tasks))
	}
}

// More intervals do the same work in smaller tasks, also in bounded asynchrony.
func TestRecut(t *testing.T) {
	c := &Cluster{Workers: 1, Bytes: []float64{1, 1}, Weights: 8, Link: Link{Rate: math.Inf(1)}, Ghosts: []float64{1, 1}}
	k := drawnFrom(rand.New(rand.NewPCG(9, 10)), 2)
	k.Epochs[0].Gap = 0
	for _, c.Staleness = range []int{-1, 0} {
		busy := 0.
		for _, intervals := range []int{2, 7} {
			of := k.recut(false, intervals)
			c.Ranks = []*Rank{of, of}
			got := c.Run(1).Ranks[0].Busy
			if busy > 0 && math.Abs(got-busy) > 1e-9 || of.Outline.Intervals != intervals {
				t.Errorf("staleness %d: %g seconds of work in %d intervals, %g in 2", c.Staleness, got, intervals, busy)
			}
			busy = got
		}
	}
}

// Thousands of ranks take seconds, and as long as 64 of the same over a link of any rate.
func TestManyRanks(t *testing.T) {
	of := func(n int) *Cluster {
		c := &Cluster{Workers: 1, Bytes: []float64{1}, Weights: 64, Link: Link{Rate: math.Inf(1)}, Staleness: -1}
		k := drawn(false)
		k.tracks()
		for range n {
			c.Ranks = append(c.Ranks, k)
			c.Ghosts = append(c.Ghosts, 10)
		}
		return c
	}
	few, many := of(64).Run(1), of(2048).Run(1)
	if math.Abs(few.Epoch-22) > 1e-9 || math.Abs(many.Epoch-22) > 1e-9 {
		t.Errorf("%g seconds of 64 ranks, %g of 2,048, want 22", few.Epoch, many.Epoch)
	}
}

// A failure costs the epochs since the last checkpoint, and the start.
func TestFailures(t *testing.T) {
	o := FailureOptions{Restart: 5 * time.Second, CheckpointEvery: 4, RunEpochs: 10}
	for name, tc := range map[string]struct {
		fails   []float64
		every   int
		seconds float64
		again   int
	}{
		"none":             {nil, 4, 20, 0},
		"behind the end":   {[]float64{20}, 4, 20, 0},
		"in epoch 7":       {[]float64{13}, 4, 13 + 5 + 12, 2}, // six are done, four saved
		"at a checkpoint":  {[]float64{8}, 4, 8 + 5 + 12, 0},
		"no checkpoint":    {[]float64{13}, 0, 13 + 5 + 20, 6},
		"during the start": {[]float64{13, 14}, 4, 14 + 5 + 12, 2},
		"twice":            {[]float64{13, 13 + 5 + 5}, 4, 23 + 5 + 12, 2 + 2},
	} {
		o.CheckpointEvery = tc.every
		if seconds, again := o.interrupted(2, tc.fails); seconds != tc.seconds || again != tc.again {
			t.Errorf("%s: %g seconds and %d again, want %g and %d", name, seconds, again, tc.seconds, tc.again)
		}
	}
	for _, bad := range []string{"0", "0@", "@1s", "2@1s", "-1@1s", "0@-1s", "x@1s"} {
		o.Fail = []string{bad}
		if _, err := o.failures(2); fault.KindOf(err) != fault.Usage {
			t.Errorf("--fail %q: %v", bad, err)
		}
	}
	o.Fail = []string{"1@10m", "0@1s"}
	if got, err := o.failures(2); err != nil || !reflect.DeepEqual(got, []float64{1, 600}) {
		t.Errorf("%v %v", got, err)
	}
}

// Clusters have their shapes by name, and flags come before.
func TestNamedClusters(t *testing.T) {
	o := Options{Cluster: "friendster", Workers: 3}
	if err := o.applyCluster(); err != nil || o.Ranks != 32 || o.Workers != 3 || o.Rate != "25gbit" {
		t.Errorf("%+v %v", o, err)
	}
	if usd := o.hostCost(&Cluster{Ranks: make([]*Rank, 32)}, 3600); math.Abs(usd-32*0.864) > 1e-9 {
		t.Errorf("%g USD an hour", usd)
	}
	for _, bad := range []string{"moon", "c5n.2xlarge", "c5n.2xlarge:0", "c5n.2xlarge:x", "c5n.metal:2",
		"p3.2xlarge:8", "c5n.2xlarge:5000"} {
		if err := (&Options{Cluster: bad}).applyCluster(); fault.KindOf(err) != fault.Usage {
			t.Errorf("--cluster %s: %v", bad, err)
		}
	}
}

package simulate

import (
	"math"
	"reflect"
	"testing"

	"siafu/ranks/engine"
	"siafu/ranks/schedule"
)

// drawn returns a rank with two intervals of one layer whose tasks take a second each, those
// that gather from own vertices two.
//
//	pull | 2 AV, SC, (2 GA own), SC, 2 GA, 2 AV, 2 loss, 2 ∇AV, 2 ∇AV, WU | loss | WU
func drawn(barrier bool) *Rank {
	r := &Rank{Workers: 1, Outline: engine.Outline{
		Layers: []engine.LayerOutline{{Gathers: true}}, Intervals: 2, Loss: true, Barrier: barrier,
		GhostOutline: engine.GhostOutline{Ghosts: true, Returns: true},
	}}
	e := Epoch{Pull: 1, Score: 1, Flush: 1}
	for _, g := range r.Graphs() {
		for _, t := range g.Tasks() {
			takes := 1.
			if t.Stage == schedule.GatherOwn {
				takes = 2
			}
			e.Tasks = append(e.Tasks, Work{Serial: takes})
		}
	}
	r.Epochs = []Epoch{e}
	return r
}

// two is two such ranks, which exchange 320 bytes of rows.
func two(barrier bool, l Link) *Cluster {
	return &Cluster{
		Ranks: []*Rank{drawn(barrier), drawn(barrier)}, Workers: 1, Link: l,
		Rows: [][]float64{{0, 10}, {10, 0}}, Bytes: []float64{32}, Weights: 64, Staleness: -1,
	}
}

// Expected values were computed by hand from the diagram above: 22 seconds of work.
func TestKnownMakespans(t *testing.T) {
	fast := Link{Rate: math.Inf(1)}
	// Rows take 5 s and 0.5 s more, a sum of losses (128 bytes) 2.5 s, of weights 1.5 s.
	slow := Link{Rate: 64, Latency: 0.5}
	with := func(c *Cluster, change func(c *Cluster)) *Cluster {
		change(c)
		return c
	}
	for name, tc := range map[string]struct {
		c     *Cluster
		epoch float64
		first Use // rank 0's
	}{
		"fast":          {two(false, fast), 22, Use{Span: 22, Busy: 22}},
		"fast, barrier": {two(true, fast), 22, Use{Span: 22, Busy: 22}},
		// Rows leave at 4; gathers along own edges end at 8, rows come at 9.5.
		"slow": {two(false, slow), 22 + 1.5 + 2.5 + 1.5, Use{Span: 27.5, Busy: 22, Rows: 1.5, Sums: 4}},
		// Nothing runs from 4 to 9.5.
		"slow, barrier": {two(true, slow), 22 + 5.5 + 2.5 + 1.5, Use{Span: 31.5, Busy: 22, Rows: 5.5, Sums: 4}},
		// Rank 1's rows are there at 8, when rank 0 has gathered along its own edges;
		// losses are summed at 42 and not at 21, weights at 44 and not at 43.
		"straggler": {with(two(false, fast), func(c *Cluster) { c.Slower = []float64{1, 2} }), 44, Use{Span: 44, Busy: 22, Sums: 22}},
		// 1 of weights; until 2 both AV; SC and GA beside each other until 4 and 5, the second
		// SC from 4 to 5; five stages of both intervals; then WU, loss and WU.
		"two workers": {with(two(false, fast), func(c *Cluster) { c.Workers = 2 }), 13, Use{Span: 13, Busy: 11}},
		"one shared":  {with(two(false, fast), func(c *Cluster) { c.Shared = 1 }), 44, Use{Span: 44, Busy: 22}},
		// Gradients leave at 26; they have come, one after the other, at 28.5. Weights leave
		// from 31.5 on, a second each; rank 1's have come at 34.
		"server": {with(two(false, slow), func(c *Cluster) { c.Servers, c.Server = 1, 3 }), 34,
			Use{Span: 33, Busy: 22, Rows: 1.5, Sums: 2.5 + 7}},
	} {
		t.Run(name, func(t *testing.T) {
			m := tc.c.Run(1)
			if math.Abs(m.Epoch-tc.epoch) > 1e-9 {
				t.Errorf("%g seconds, want %g", m.Epoch, tc.epoch)
			}
			got := m.Ranks[0]
			if tc.c.Shared > 0 { // which of the two waits is not computed here
				got.Span, got.Rows, got.Sums = 44, 0, 0
			}
			for _, d := range []float64{got.Span - tc.first.Span, got.Busy - tc.first.Busy,
				got.Rows - tc.first.Rows, got.Sums - tc.first.Sums} {
				if math.Abs(d) > 1e-9 {
					t.Errorf("%+v, want %+v", got, tc.first)
					break
				}
			}
		})
	}
}

// Cards send one message after another, and receive one after another.
func TestCardsAreShared(t *testing.T) {
	var c clock
	n := newNetwork(&c, 1, []float64{10, 10, 10})
	var times []float64
	note := func() { times = append(times, c.now) }
	n.send(0, 2, 20, note) // leaves until 2, comes from 1 to 3
	n.send(0, 1, 10, note) // leaves from 2 to 3, comes from 3 to 4
	n.send(1, 2, 10, note) // sent until 1, received from 3 to 4, after the first
	c.run()
	if want := []float64{3, 4, 4}; !reflect.DeepEqual(times, want) {
		t.Errorf("come at %v, want %v", times, want)
	}
}

// Gradients return to the senders of rows; a pattern of ghosts equals the explicit pattern of
// evenly spread rows.
func TestPatterns(t *testing.T) {
	counts := []Counts{{Ghosts: 6}, {Ghosts: 12}, {Ghosts: 24}, {Ghosts: 3}}
	explicit, ghosts := [][]float64{}, []float64{}
	for from := range counts {
		explicit = append(explicit, make([]float64, len(counts)))
		ghosts = append(ghosts, counts[from].Ghosts)
		for to, c := range counts {
			if to != from {
				explicit[from][to] = c.Ghosts / 3
			}
		}
	}
	for from := range counts {
		for to := range counts {
			if to == from {
				continue
			}
			for _, p := range []*pattern{listed(explicit, false), spread(ghosts, false)} {
				if got := p.to(from, to); got != explicit[from][to] {
					t.Errorf("%d sends %d %g rows, want %g", from, to, got, explicit[from][to])
				}
			}
			for _, p := range []*pattern{listed(explicit, true), spread(ghosts, true)} {
				if got := p.to(from, to); got != explicit[to][from] {
					t.Errorf("%d sends %d %g gradients, want %g", from, to, got, explicit[to][from])
				}
			}
		}
	}
}

// Equal input gives equal output, and epochs with equal times have equal durations.
func TestDeterministic(t *testing.T) {
	many := func(epochs int) Result {
		c := two(false, Link{Rate: 64, Latency: 0.5})
		for range 5 {
			c.Ranks = append(c.Ranks, drawn(false))
		}
		for r := range c.Ranks {
			c.Ghosts = append(c.Ghosts, float64(10+r))
		}
		c.Rows, c.Workers, c.Servers = nil, 2, 3
		c.Slower = []float64{1, 1, 1.5, 1, 1, 1, 3}
		return c.Run(epochs)
	}
	if a, b := many(7), many(7); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v and %+v", a, b)
	}
	c := two(false, Link{Rate: 64, Latency: 0.5})
	if once, often := c.Run(1).Epoch, c.Run(9).Epoch; math.Abs(once-often) > 1e-9 {
		t.Errorf("an epoch takes %g s, nine %g s each", once, often)
	}
}

// The rule for other numbers of ranks, by its words.
func TestShares(t *testing.T) {
	was := []Counts{{100, 1000, 80}, {120, 1200, 40}}
	got := Shares(was, 8, 0.5)
	if want := (Counts{30, 300, 20}); len(got) != 8 || got[7] != want {
		t.Errorf("%v, want 8 with %v last", got, want)
	}
	r := &Recording{Ranks: []*Rank{drawn(false), drawn(false)}}
	tasks := r.Ranks[0].Graphs()[0].Tasks()
	scaled := r.Scaled(was, got)[7]
	for i, of := range scaled.Epochs[0].Tasks {
		takes := of.times(scaled.factor(tasks[i].Stage)).seconds()
		want := 0.25
		switch tasks[i].Stage {
		case schedule.GatherOwn: // of two seconds
			want = 0.5
		case schedule.Send, schedule.Receive:
			want = 0.5
		case schedule.Update:
			want = 1
		}
		if takes != want {
			t.Errorf("%v takes %g, want %g", tasks[i], takes, want)
		}
	}
}

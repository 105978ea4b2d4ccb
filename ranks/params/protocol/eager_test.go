package protocol

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"siafu/internal/wire"
)

// race is an Eager server and its ranks in a world whose messages arrive in random order,
// except between two ranks. Some ranks work more often than others, and some rarely.
type race struct {
	t      *testing.T
	server *Eager
	rand   *rand.Rand
	ranks  []*racer
	links  map[[2]int][]Message
	layers []Range
	bound  int
	ends   int   // the update after which rank 0 requests the end, 0: none
	taken  []int // by rank: updates in its weights
}

// racer is a graph rank.
type racer struct {
	*Runner
	weight int // its relative speed
	state  int // 0: asks, 1: waits, 2: works, 3: has left
	layer  int
	own    int // updates sent
	final  []float32
}

// counting is an Updater that records steps and their ranks. In the first layer a rank's
// gradient has the number of its update at the rank's position, and zeros elsewhere; in the
// second it has that number everywhere, and the weights become the sum.
type counting struct {
	steps, by []int
	made      []float32 // by rank: updates
	wrong     bool      // not exactly one more update of one rank
}

func (c *counting) Update(step, layer int, weights, grad []float32) {
	c.steps = append(c.steps, step)
	if layer == 1 {
		copy(weights, grad)
		return
	}
	if c.made == nil {
		c.made = make([]float32, len(grad))
	}
	more := float32(0)
	for r, n := range grad {
		if n > c.made[r] {
			c.by = append(c.by, r)
		}
		c.wrong = c.wrong || n < c.made[r]
		more += n - c.made[r]
	}
	c.wrong = c.wrong || more != 1
	copy(c.made, grad)
}

func (c *counting) State() [][]float32 { return nil }

func newRace(t *testing.T, ranks, epochs, trained, bound int, seed uint64) (*race, *counting) {
	c, u := Setting{Intervals: slices.Repeat([]int{1}, ranks), Servers: 1, Trained: trained, Staleness: bound}, &counting{}
	layers := []Range{{0, ranks}, {ranks, ranks + 3}}
	w := &race{
		t: t, server: NewEager(c, trained+epochs, layers, make([]float32, ranks+3), u), rand: rand.New(rand.NewPCG(seed, 11)),
		links: map[[2]int][]Message{}, layers: layers, bound: bound, taken: make([]int, ranks),
	}
	if bound == 0 {
		w.bound = math.MaxInt
	}
	for r := range ranks {
		w.ranks = append(w.ranks, &racer{Runner: NewRunner(c, r, trained, 2, ranks+3), weight: 1 + w.rand.IntN(30)})
	}
	return w, u
}

func (w *race) send(m Message) {
	m.Values = slices.Clone(m.Values)
	w.links[[2]int{m.From, m.To}] = append(w.links[[2]int{m.From, m.To}], m)
}

// run executes all possible events, and reports whether all ranks have left.
func (w *race) run() bool {
	for {
		var acts []func()
		for _, link := range slices.SortedFunc(mapKeys(w.links), func(a, b [2]int) int { return 1000*(a[0]-b[0]) + a[1] - b[1] }) {
			if len(w.links[link]) > 0 {
				acts = append(acts, func() { w.deliver(link) })
			}
		}
		for r, k := range w.ranks {
			if k.state == 0 || k.state == 2 {
				for range k.weight {
					acts = append(acts, func() { w.work(r) })
				}
			}
		}
		if len(acts) == 0 {
			break
		}
		acts[w.rand.IntN(len(acts))]()
	}
	return w.server.Done()
}

func mapKeys(m map[[2]int][]Message) func(func([2]int) bool) {
	return func(yield func([2]int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (w *race) work(r int) {
	k := w.ranks[r]
	if k.state == 0 {
		w.send(k.Fetch())
		k.state = 1
		return
	}
	at := w.layers[k.layer]
	grad := make([]float32, at.Hi-at.Lo)
	for i := range grad {
		if k.layer > 0 || i == r {
			grad[i] = float32(k.own + 1)
		}
	}
	w.send(k.Gradient(k.layer, grad))
	if k.layer--; k.layer < 0 {
		k.own++
		k.state = 0
		if r == 0 && k.own == w.ends {
			w.send(k.End(0))
		}
	}
}

func (w *race) deliver(link [2]int) {
	m := w.links[link][0]
	w.links[link] = w.links[link][1:]
	if m.To < len(w.ranks) {
		w.receive(m)
		return
	}
	before := w.server.applied
	out, err := w.server.Step(m)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range out {
		if m.Count > 0 {
			w.taken[m.To] = m.Version - 1
		}
		w.send(m)
	}
	w.watch(before)
}

// watch checks the bound for every working rank: at most Bound updates have been applied since
// it was sent its weights.
func (w *race) watch(before int) {
	if w.server.applied == before {
		return
	}
	for r, n := range w.server.runs {
		if n.started && w.server.applied-w.taken[r] > w.bound {
			w.t.Fatalf("rank %d is at work on version %d, and %d updates are in the weights, bound %d", r,
				w.taken[r]+1, w.server.applied, w.bound)
		}
	}
}

func (w *race) receive(m Message) {
	k := w.ranks[m.To]
	trains, err := k.Take(m)
	if err != nil {
		w.t.Fatal(err)
	}
	k.state, k.layer = 2, len(w.layers)-1
	if !trains {
		k.state, k.final = 3, m.Values
		w.send(k.Leave())
	}
}

// For any order of messages and speed of ranks: no rank is stuck, and an epoch has as many
// updates as ranks. Each update is applied once and completely, with the newest of the other
// ranks. Every rank ends with the same weights. Between two updates of one rank are at most
// Bound others, and "the delay is bounded, i.e., τ < K" (DIGEST, theorem 3; here at most K).
func TestEagerUnderHostileDelivery(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ranks, epochs, trained := 1+rng.IntN(6), 1+rng.IntN(12), rng.IntN(3)
		bound := 0
		if rng.IntN(3) > 0 {
			bound = max(ranks-1+rng.IntN(5), 1)
		}
		w, u := newRace(t, ranks, epochs, trained, bound, seed)
		if rng.IntN(2) == 0 {
			w.ends = 1 + rng.IntN(epochs)
		}
		what := fmt.Sprintf("seed %d: %d ranks, %d epochs after %d, bound %d, end behind %d", seed, ranks, epochs, trained, bound, w.ends)
		if !w.run() {
			t.Fatalf("%s: it has come to a stand", what)
		}
		done := w.server.applied - trained*ranks
		if done%ranks != 0 || done > epochs*ranks || w.ends == 0 && done != epochs*ranks || done == 0 {
			t.Fatalf("%s: %d updates", what, done)
		}
		if w.server.Delay() > w.bound {
			t.Fatalf("%s: a delay of %d", what, w.server.Delay())
		}
		for k, step := range u.steps {
			if step != trained*ranks+k/2+1 {
				t.Fatalf("%s: steps %v", what, u.steps)
			}
		}
		want := slices.Repeat([]float32{float32(done)}, 3)
		if u.wrong {
			t.Fatalf("%s: updates %v are in no step, or in two", what, u.by)
		}
		for r, k := range w.ranks {
			if !slices.Equal(k.final[ranks:], want) {
				t.Fatalf("%s: rank %d ends with %v, want %v", what, r, k.final, want)
			}
			between := 0
			for _, by := range u.by {
				if between++; by == r {
					between = 0
				}
				if between > w.bound {
					t.Fatalf("%s: more than %d updates between two of rank %d: %v", what, w.bound, r, u.by)
				}
			}
		}
	}
}

// The last weights are a running mean of the weights after the last updates, if requested and
// not ended before.
func TestEagerAverages(t *testing.T) {
	for name, tc := range map[string]struct {
		window, ends int
		want         float32
	}{"none": {0, 0, 6}, "all": {9, 0, 3.5}, "the last ones": {2, 0, 5.03125}, "ended before": {9, 3, 3}} {
		w, _ := newRace(t, 1, 6, 0, 0, 7)
		w.server.Average(tc.window)
		w.ends = tc.ends
		if w.run(); w.ranks[0].final[1] != tc.want {
			t.Errorf("%s: the last weights are %v, want %v", name, w.ranks[0].final[1], tc.want)
		}
	}
}

// "Each subgraph directly pulls/pushes ... without blindly waiting for the slowest subgraph to
// finish" (DIGEST, §3.2): while one rank pauses, the others train all epochs, as far as the
// bound permits.
func TestEagerWaitsForNoStraggler(t *testing.T) {
	for _, bound := range []int{0, 7} {
		w, _ := newRace(t, 3, 20, 0, bound, 5)
		w.ranks[2].weight = 0
		w.send(w.ranks[2].Fetch()) // and never does anything with the weights
		w.ranks[2].state = 1
		w.deliver([2]int{2, 3})
		w.run()
		want := 60
		if bound > 0 {
			want = bound
		}
		if w.server.applied != want {
			t.Errorf("bound %d: %d updates are applied, want %d", bound, w.server.applied, want)
		}
		if owe := w.server.AwaitedRanks(); !slices.Equal(owe, []int{2}) {
			t.Errorf("bound %d: waits for %v", bound, owe)
		}
	}
}

// The error names the rank that breaks the protocol.
func TestEagerBrokenProtocol(t *testing.T) {
	fetched := []Message{{Type: wire.Fetch, Epoch: 1}}
	for name, tc := range map[string]struct {
		before []Message
		m      Message
		says   string
	}{
		"fetch by nobody":      {nil, Message{Type: wire.Fetch, From: 2, Epoch: 1}, "2 graph ranks"},
		"fetch while at work":  {fetched, Message{Type: wire.Fetch, Epoch: 2}, "has not finished epoch 1"},
		"gradient of nothing":  {nil, Message{Type: wire.Gradient, Epoch: 1, Values: values(2)}, "no weights for this epoch"},
		"gradient of another":  {fetched, Message{Type: wire.Gradient, Epoch: 2, Values: values(2)}, "no weights for this epoch"},
		"gradient of no layer": {fetched, Message{Type: wire.Gradient, Epoch: 1, Layer: 2}, "2 layers"},
		"gradient too short":   {fetched, Message{Type: wire.Gradient, Epoch: 1, Values: values(1)}, "1 values, want 2"},
		"gradient twice": {append(fetched[:1:1], Message{Type: wire.Gradient, Epoch: 1, Values: values(2)}),
			Message{Type: wire.Gradient, Epoch: 1, Values: values(2)}, "duplicate gradient"},
		"leaves in the middle":  {fetched, Message{Type: wire.Leave}, "has not finished epoch 1"},
		"after leaving":         {[]Message{{Type: wire.Leave}}, Message{Type: wire.Fetch, Epoch: 1}, "has left"},
		"a sum, of no use here": {nil, Message{Type: wire.Sum}, "does not accept this type"},
	} {
		c := Setting{Intervals: []int{1, 1}, Servers: 1}
		s := NewEager(c, 3, []Range{{0, 2}, {2, 5}}, make([]float32, 5), &counting{})
		for _, m := range tc.before {
			if _, err := s.Step(m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Step(tc.m); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v does not say %q", name, err, tc.says)
		}
	}
	r := NewRunner(Setting{Intervals: []int{1}, Servers: 1}, 0, 0, 1, 2)
	r.Fetch()
	for says, m := range map[string]Message{
		"nothing was requested": {Type: wire.Weights, From: 1, Epoch: 2, Version: 1, Values: values(2)},
		"0 weights":             {Type: wire.Weights, From: 1, Epoch: 1, Version: 1},
		"version 0 ":            {Type: wire.Weights, From: 1, Epoch: 1, Values: values(2)},
	} {
		if _, err := r.Take(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/ranks/world"
)

// node is a rank of a simulated world. It acts as the caller of a Machine must: it reports when its view
// has ended, and again after each loss; it sends a decision on before it acts.
type node struct {
	*Machine
	net     *network
	running bool  // its view has not ended here
	dead    bool  // its process has ended
	out     bool  // it has ended alone
	stored  []int // epochs by part, -1: none
	applied []Decision
	done    bool
}

// network carries messages, in order for each pair of ranks. A rank sees the loss of another after
// the messages that it had sent.
type network struct {
	rng   *rand.Rand
	nodes []*node
	pipes map[[2]int][]any // Report, Decision or Loss
}

func newNetwork(seed uint64, v world.View, least int) *network {
	n := &network{rng: rand.New(rand.NewPCG(seed, 1)), pipes: map[[2]int][]any{}}
	for r := range v.Started() {
		x := &node{Machine: New(r, least, v, nil), net: n, running: true, stored: slices.Repeat([]int{-1}, v.Parts)}
		n.nodes = append(n.nodes, x)
	}
	for part := range v.Parts {
		n.nodes[v.Rank(part)].stored[part] = 5
		if s := n.nodes[v.Rank(part)].Shadow(); s >= 0 {
			n.nodes[s].stored[part] = 5
		}
	}
	return n
}

func (x *node) states() (list []State) {
	for part, epoch := range x.stored {
		if epoch >= 0 {
			list = append(list, State{part, epoch}, State{part, epoch - 1})
		}
	}
	return list
}

func (x *node) send(message any) {
	for _, r := range x.Live() {
		if r != x.rank {
			key := [2]int{x.rank, r}
			x.net.pipes[key] = append(x.net.pipes[key], message)
		}
	}
}

func (x *node) endView() {
	if x.running && !x.done {
		x.running = false
		x.send(x.Report(false, Proposal{}, x.states()))
		x.decide()
	}
}

func (x *node) decide() {
	if x.running {
		return
	}
	if d := x.Decide(); d != nil {
		x.apply(*d)
	}
}

func (x *node) apply(d Decision) {
	if x.running || d.View.Number <= x.View().Number {
		return
	}
	x.send(d)
	x.Apply(d)
	x.applied = append(x.applied, d)
	for part, from := range d.From {
		if from >= 0 && d.View.Rank(part) == x.rank {
			x.stored[part] = d.Epoch
		}
	}
	x.running, x.done = true, d.Done
	if x.Interrupted() >= 0 {
		x.endView()
	}
}

func (x *node) lose(lost []int) {
	if len(lost) == 0 || x.done {
		return
	}
	if x.out = x.Excluded(); x.out {
		x.net.kill(x.rank)
		return
	}
	switch {
	case !x.running:
		x.send(x.Report(false, Proposal{}, x.states()))
		x.decide()
	case x.Interrupted() >= 0:
		x.endView()
	}
}

func (x *node) receive(from int, message any) {
	switch m := message.(type) {
	case Report:
		x.lose(x.Receive(from, m))
		if !x.dead {
			x.decide()
		}
	case Decision:
		x.apply(m)
	case Loss:
		x.lose(x.Lose(m))
	}
}

// kill ends a process. The others see that after all that it has sent.
func (n *network) kill(rank int) {
	if n.nodes[rank].dead {
		return
	}
	n.nodes[rank].dead = true
	for r := range n.nodes {
		key := [2]int{rank, r}
		if cut := len(n.pipes[key]); cut > 0 && !n.nodes[rank].out { // its last messages are lost
			n.pipes[key] = n.pipes[key][:n.rng.IntN(cut+1)]
		}
		n.pipes[key] = append(n.pipes[key], Loss{rank, true})
	}
}

// step delivers one message, and reports whether there was one.
func (n *network) step() bool {
	var ready [][2]int
	for key, list := range n.pipes {
		if len(list) > 0 && !n.nodes[key[1]].dead {
			ready = append(ready, key)
		}
	}
	if len(ready) == 0 {
		return false
	}
	slices.SortFunc(ready, func(a, b [2]int) int { return a[0]*1000 + a[1] - b[0]*1000 - b[1] })
	key := ready[n.rng.IntN(len(ready))]
	message := n.pipes[key][0]
	n.pipes[key] = n.pipes[key][1:]
	if x := n.nodes[key[1]]; !x.Lost(key[0]) || !isMessage(message) {
		x.receive(key[0], message)
	}
	// Views end everywhere after some time if a member's rank is lost: a rank that has not noticed
	// receives the last packets of the others.
	for _, x := range n.nodes {
		interrupted := slices.ContainsFunc(n.nodes, func(y *node) bool { return !y.dead && !y.running && y.View().Number == x.View().Number })
		if !x.dead && x.running && interrupted && n.rng.IntN(4) == 0 {
			x.endView()
		}
	}
	return true
}

func isMessage(m any) bool { _, loss := m.(Loss); return !loss }

// However ranks end, at any time and in any order, the others agree on one view, in which no lost
// rank carries a member, and all parts continue from one epoch.
func TestSurvivorsAgree(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		v := world.View{Parts: 4 + rng.IntN(4), Ranks: 2 + rng.IntN(3), Servers: rng.IntN(2), Spares: rng.IntN(3)}
		n := newNetwork(seed, v, 1)
		victims := rng.Perm(v.Started())[:1+rng.IntN(v.Started()-1)]
		for steps := 0; ; steps++ {
			if steps > 100000 {
				t.Fatalf("seed %d: the ranks do not agree", seed)
			}
			if len(victims) > 0 && rng.IntN(12) == 0 {
				n.kill(victims[0])
				victims = victims[1:]
			}
			if !n.step() && len(victims) == 0 {
				break
			}
		}
		var first *node
		for _, x := range n.nodes {
			if x.dead {
				continue
			}
			if first == nil {
				first = x
			}
			if !x.running || x.Interrupted() >= 0 {
				t.Fatalf("seed %d: rank %d has not begun a view without lost ranks: %+v", seed, x.rank, x.View())
			}
			if a, b := fmt.Sprint(x.View()), fmt.Sprint(first.View()); a != b {
				t.Fatalf("seed %d: rank %d is in the view %s, and rank %d in %s", seed, x.rank, a, first.rank, b)
			}
			if !slices.EqualFunc(x.applied, first.applied, func(a, b Decision) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
				t.Fatalf("seed %d: ranks %d and %d have other decisions", seed, x.rank, first.rank)
			}
		}
		if first == nil {
			continue
		}
		for _, d := range first.applied {
			for part, from := range d.From {
				if from >= 0 && slices.Contains(ranks(d.Lost), from) || (from < 0) != d.Lack {
					t.Fatalf("seed %d: part %d continues from rank %d in %+v", seed, part, from, d)
				}
			}
		}
	}
}

// report ends the view on all live ranks of a world, as seen by the first of them, and returns its
// decision.
func decision(t *testing.T, m *Machine, proposals map[int]Proposal, states map[int][]State) Decision {
	t.Helper()
	for _, r := range m.Live() {
		p := Report{Number: m.View().Number, Lost: sorted(m.lost), Proposal: proposals[r], States: states[r]}
		if r == m.rank {
			m.Report(false, p.Proposal, p.States)
		} else {
			m.Receive(r, p)
		}
	}
	d := m.Decide()
	if d == nil {
		t.Fatal("no decision")
	}
	return *d
}

// Lost ranks are replaced by idle ones first. Then their members are dealt to the ranks with the fewest.
func TestMembersMove(t *testing.T) {
	v := world.View{Parts: 6, Ranks: 3, Servers: 1, Spares: 1}
	m := New(0, 1, v, nil)
	m.Lose(Loss{1, true})
	d := decision(t, m, nil, nil)
	if got, want := fmt.Sprint(d.View.Carrier), "[0 0 4 4 2 2 3]"; got != want {
		t.Errorf("a spare: %s, want %s", got, want)
	}
	m.Apply(d)
	m.Lose(Loss{4, true}, Loss{3, true})
	d = decision(t, m, nil, nil)
	if got, want := fmt.Sprint(d.View.Carrier), "[0 0 2 0 2 2 0]"; got != want {
		t.Errorf("none: %s, want %s", got, want)
	}
	m.Apply(d)
	d = decision(t, m, map[int]Proposal{2: {Leaves: true}}, nil)
	if got, want := fmt.Sprint(d.View.Carrier), "[0 0 0 0 0 0 0]"; got != want || d.Done {
		t.Errorf("rank 2 leaves: %s, want %s", got, want)
	}
}

// The run stops if too few ranks are left to carry members, and ends if nothing has changed.
func TestFewRanks(t *testing.T) {
	v := world.View{Parts: 3, Ranks: 3}
	m := New(0, 2, v, nil)
	m.Lose(Loss{1, true})
	if d := decision(t, m, nil, nil); d.Few || d.Done {
		t.Errorf("two of two: %+v", d)
	}
	m = New(0, 2, v, nil)
	m.Lose(Loss{1, true})
	if d := decision(t, m, map[int]Proposal{2: {Leaves: true}}, nil); !d.Few {
		t.Errorf("one of two: %+v", d)
	}
	if d := decision(t, New(0, 1, v, nil), nil, nil); !d.Done {
		t.Errorf("nothing has changed: %+v", d)
	}
}

// Parts continue from the newest epoch of which each has a state on a live rank, on its own rank if
// possible.
func TestNewestCommonEpoch(t *testing.T) {
	v := world.View{Parts: 3, Ranks: 3}
	m := New(0, 1, v, nil)
	m.Lose(Loss{2, true})
	states := map[int][]State{0: {{0, 7}, {0, 6}}, 1: {{1, 7}, {1, 6}, {2, 6}, {2, 5}, {0, 6}}}
	d := decision(t, m, nil, states)
	if d.Epoch != 6 || d.Lack || fmt.Sprint(d.From) != "[0 1 1]" {
		t.Errorf("%+v", d)
	}
	m = New(0, 1, v, nil)
	m.Lose(Loss{2, true})
	delete(states, 1)
	if d := decision(t, m, nil, states); !d.Lack || d.Epoch != -1 {
		t.Errorf("no state of two parts: %+v", d)
	}
}

// Of ranks that are cut off from one another only the larger group continues, or the one with
// the lowest rank. Ranks whose processes have ended do not count.
func TestExcluded(t *testing.T) {
	v := world.View{Parts: 4, Ranks: 4}
	for _, tc := range []struct {
		rank int
		lost []Loss
		want bool
	}{
		{0, []Loss{{3, false}}, false},
		{3, []Loss{{0, false}, {1, false}, {2, false}}, true},
		{0, []Loss{{2, false}, {3, false}}, false},
		{2, []Loss{{0, false}, {1, false}}, true},
		{3, []Loss{{0, true}, {1, true}, {2, true}}, false},
		{3, []Loss{{0, true}, {1, true}, {2, false}}, true},
		{1, []Loss{{1, false}}, true},
	} {
		m := New(tc.rank, 1, v, nil)
		m.Lose(tc.lost...)
		if got := m.Excluded(); got != tc.want {
			t.Errorf("rank %d without %v: %t", tc.rank, tc.lost, got)
		}
	}
	m := New(0, 1, v, nil) // after a decision, earlier losses do not count
	m.Lose(Loss{3, false})
	m.Apply(decision(t, m, nil, nil))
	m.Lose(Loss{2, false})
	if m.Excluded() {
		t.Error("two of three live ranks are excluded")
	}
}

// Copies are in another zone where there is one.
func TestShadow(t *testing.T) {
	v := world.View{Parts: 4, Ranks: 4}
	m := New(2, 1, v, []int{0, 1, 1, 0})
	for _, step := range []struct{ lose, want int }{{-1, 0}, {0, 3}, {3, 1}, {1, -1}} {
		if step.lose >= 0 {
			m.Lose(Loss{step.lose, true})
		}
		if got := m.Shadow(); got != step.want {
			t.Errorf("without %d: rank %d, want %d", step.lose, got, step.want)
		}
	}
}

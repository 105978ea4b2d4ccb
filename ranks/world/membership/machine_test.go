package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/ranks/world"
)

// node is a process of a simulated world: a rank, or a guest as long as Machine is nil. It acts as the
// caller of a Machine must: it reports when its view has ended, and again after each loss; it sends a
// decision on before it acts.
type node struct {
	*Machine
	net       *network
	address   int     // number of the process
	addresses []int   // of ranks
	guests    []Guest // connected to it; ID is the address
	proposal  Proposal
	running   bool  // its view has not ended here
	dead      bool  // its process has ended
	out       bool  // it has ended alone
	stored    []int // epochs by part, -1: none
	applied   []Decision
	heard     map[int]Decision // on a guest: the newest by address
	followed  int              // number of the newest decision of which the guest knows all ranks
	ended     []int            // addresses of ended processes that are no ranks yet
	done      bool
}

// network carries messages, in order for each pair of processes. A process sees the loss of another after
// the messages that it had sent.
type network struct {
	rng   *rand.Rand
	nodes []*node // by address
	pipes map[[2]int][]any
}

// Messages other than Report and Decision.
type (
	ended int      // address of a process
	ask   struct{} // of a guest that is connected to all ranks
)

func newNetwork(seed uint64, v world.View, least int) *network {
	n := &network{rng: rand.New(rand.NewPCG(seed, 1)), pipes: map[[2]int][]any{}}
	for r := range v.Started() {
		n.add(&node{Machine: New(r, least, v, nil, nil), addresses: world.All(v.Started()), running: true}, v.Parts)
	}
	for part := range v.Parts {
		n.nodes[v.Rank(part)].stored[part] = 5
		if s := n.nodes[v.Rank(part)].Shadow(); s >= 0 {
			n.nodes[s].stored[part] = 5
		}
	}
	return n
}

func (n *network) add(x *node, parts int) {
	x.heard = map[int]Decision{}
	x.net, x.address, x.stored = n, len(n.nodes), slices.Repeat([]int{-1}, parts)
	n.nodes = append(n.nodes, x)
}

// arrive connects a guest to the ranks that a live rank knows. It returns false without one.
func (n *network) arrive() bool {
	for _, x := range n.nodes {
		if x.Machine == nil || x.dead || x.done {
			continue
		}
		guest := &node{addresses: slices.Clone(x.addresses)}
		n.add(guest, x.View().Parts)
		for _, a := range guest.addresses {
			guest.visit(a)
		}
		guest.askAll()
		return true
	}
	return false
}

// visit connects a guest to a rank.
func (x *node) visit(address int) {
	if y := x.net.nodes[address]; !y.dead {
		y.guests = append(y.guests, Guest{ID: uint64(x.address)})
		if k := len(y.applied); k > 0 {
			y.post(x.address, y.applied[k-1])
		}
	} else {
		x.ended = append(x.ended, address)
	}
}

func (x *node) askAll() {
	for _, a := range x.addresses {
		x.post(a, ask{})
	}
}

func (x *node) post(address int, message any) {
	key := [2]int{x.address, address}
	x.net.pipes[key] = append(x.net.pipes[key], message)
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
			x.post(x.addresses[r], message)
		}
	}
}

func (x *node) report() {
	x.send(x.Report(false, x.proposal, x.states(), slices.Clone(x.guests)))
	x.decide()
}

func (x *node) endView() {
	if x.running && !x.done {
		x.running = false
		x.report()
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
	for _, g := range x.guests {
		x.post(int(g.ID), d)
	}
	before := len(x.joined)
	x.Apply(d)
	for _, g := range d.Joined[before:] {
		x.addresses = append(x.addresses, int(g.ID))
		x.guests = slices.DeleteFunc(x.guests, func(other Guest) bool { return other.ID == g.ID })
	}
	x.begin(d)
}

func (x *node) begin(d Decision) {
	x.applied = append(x.applied, d)
	for part, from := range d.From {
		if from >= 0 && d.View.Rank(part) == x.rank {
			x.stored[part] = d.Epoch
		}
	}
	x.running, x.done, x.proposal = true, d.Done, Proposal{}
	if x.Interrupted() >= 0 {
		x.endView()
	}
	for _, a := range x.ended { // among them the rank that has joined, if it ended before
		if rank := slices.Index(x.addresses, a); rank >= 0 && !x.dead {
			x.lose(x.Lose(Loss{rank, true}))
		}
	}
}

// follow acts on the newest decision of all live ranks that a guest is connected to.
func (x *node) follow() {
	newest := -1
	var d Decision
	for _, a := range x.addresses {
		if slices.Contains(x.ended, a) {
			continue
		}
		if newest >= 0 && x.heard[a].View.Number != newest {
			return
		}
		d, newest = x.heard[a], x.heard[a].View.Number
	}
	if newest <= x.followed {
		return
	}
	x.followed = newest
	for _, g := range d.Joined[len(x.addresses)+len(d.Joined)-d.View.Started():] {
		x.addresses = append(x.addresses, int(g.ID))
		if int(g.ID) == x.address {
			x.Machine = Join(1, d, nil, nil)
			x.send(d)
			for _, g := range x.guests {
				x.post(int(g.ID), d)
			}
			x.begin(d)
			return
		}
		x.visit(int(g.ID))
	}
	x.askAll()
}

func (x *node) lose(lost []int) {
	if len(lost) == 0 || x.done {
		return
	}
	if x.out = x.Excluded(); x.out {
		x.net.kill(x.address)
		return
	}
	switch {
	case !x.running:
		x.report()
	case x.Interrupted() >= 0:
		x.endView()
	}
}

func (x *node) receive(from int, message any) {
	if x.Machine == nil {
		switch m := message.(type) {
		case ended:
			x.ended = append(x.ended, int(m))
		case Decision:
			x.heard[from] = m
		}
		x.follow()
		return
	}
	rank := slices.Index(x.addresses, from)
	switch m := message.(type) {
	case Report:
		x.lose(x.Receive(rank, m))
		if !x.dead {
			x.decide()
		}
	case Decision:
		x.apply(m)
	case ask:
		if x.running && rank < 0 {
			x.proposal.Admits = true
			x.endView()
		}
	case ended:
		x.guests = slices.DeleteFunc(x.guests, func(g Guest) bool { return int(g.ID) == from })
		if rank >= 0 {
			x.lose(x.Lose(Loss{rank, true}))
		} else {
			x.ended = append(x.ended, from)
		}
	}
}

// kill ends a process. The others see that after all that it has sent.
func (n *network) kill(address int) {
	if n.nodes[address].dead {
		return
	}
	n.nodes[address].dead = true
	for a := range n.nodes {
		key := [2]int{address, a}
		if cut := len(n.pipes[key]); cut > 0 && !n.nodes[address].out { // its last messages are lost
			n.pipes[key] = n.pipes[key][:n.rng.IntN(cut+1)]
		}
		n.pipes[key] = append(n.pipes[key], ended(address))
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
		return n.endViews(1)
	}
	slices.SortFunc(ready, func(a, b [2]int) int { return a[0]*1000 + a[1] - b[0]*1000 - b[1] })
	key := ready[n.rng.IntN(len(ready))]
	message := n.pipes[key][0]
	n.pipes[key] = n.pipes[key][1:]
	x := n.nodes[key[1]]
	if rank := slices.Index(x.addresses, key[0]); x.Machine == nil || rank < 0 || !x.Lost(rank) || !isMessage(message) {
		x.receive(key[0], message)
	}
	n.endViews(4)
	return true
}

// endViews ends a view on some of its ranks, one of oneOf on average, if it has ended on one of them. A rank that
// has not noticed a loss receives the last packets of the others, or has agreed with them to end the view
// for a guest.
func (n *network) endViews(oneOf int) (ended bool) {
	for _, x := range n.nodes {
		interrupted := x.Machine != nil && slices.ContainsFunc(n.nodes, func(y *node) bool {
			return y.Machine != nil && !y.dead && !y.running && y.View().Number == x.View().Number
		})
		if interrupted && !x.dead && x.running && n.rng.IntN(oneOf) == 0 {
			x.endView()
			ended = true
		}
	}
	return ended
}

func isMessage(m any) bool { _, loss := m.(ended); return !loss }

// However ranks end and guests arrive, at any time and in any order, the live ranks agree on one view, in
// which no lost rank carries a member, and all parts continue from one epoch. All live guests have joined.
func TestRanksAgree(t *testing.T) {
	joined := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		v := world.View{Parts: 4 + rng.IntN(4), Ranks: 2 + rng.IntN(3), Servers: rng.IntN(2), Spares: rng.IntN(3)}
		n := newNetwork(seed, v, 1)
		arrivals := rng.IntN(4)
		victims := rng.Perm(v.Started() + arrivals)[:1+rng.IntN(v.Started()+arrivals-1)]
		for steps := 0; ; steps++ {
			if steps > 100000 {
				t.Fatalf("seed %d: the ranks do not agree", seed)
			}
			if arrivals > 0 && rng.IntN(12) == 0 {
				arrivals--
				n.arrive()
			}
			if len(victims) > 0 && rng.IntN(12) == 0 {
				if victims[0] < len(n.nodes) {
					n.kill(victims[0])
				}
				victims = victims[1:]
			}
			if !n.step() && len(victims) == 0 && arrivals == 0 {
				break
			}
		}
		joined += checkAgreement(t, seed, n, v)
	}
	if joined < 1000 {
		t.Errorf("only %d guests have joined", joined)
	}
}

// checkAgreement checks the views of all live ranks. It returns the number of live ranks that have joined.
func checkAgreement(t *testing.T, seed uint64, n *network, v world.View) (joined int) {
	t.Helper()
	var first *node
	for _, x := range n.nodes {
		if x.dead || x.Machine == nil {
			continue
		}
		if x.address >= v.Started() {
			joined++
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
		both := min(len(x.applied), len(first.applied)) // a rank that joined has no earlier ones
		if a, b := x.applied[len(x.applied)-both:], first.applied[len(first.applied)-both:]; fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("seed %d: ranks %d and %d have other decisions", seed, x.rank, first.rank)
		}
	}
	if first == nil {
		return 0
	}
	for _, x := range n.nodes {
		if x.Machine == nil && !x.dead {
			t.Fatalf("seed %d: the guest %d has not joined", seed, x.address)
		}
	}
	for _, d := range first.applied {
		for part, from := range d.From {
			if from >= 0 && slices.Contains(ranks(d.Lost), from) || (from < 0) != d.Lack {
				t.Fatalf("seed %d: part %d continues from rank %d in %+v", seed, part, from, d)
			}
		}
	}
	return joined
}

// report ends the view on all live ranks of a world, as seen by the first of them, and returns its
// decision.
func decision(t *testing.T, m *Machine, proposals map[int]Proposal, states map[int][]State) Decision {
	t.Helper()
	for _, r := range m.Live() {
		p := Report{Number: m.View().Number, Lost: sorted(m.lost), Proposal: proposals[r], States: states[r]}
		if r == m.rank {
			m.Report(false, p.Proposal, p.States, nil)
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
	m := New(0, 1, v, nil, nil)
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

// A rank that joins a run without losses stays idle. Otherwise it first takes the members of a lost rank,
// and then others, until all carry the same number. It takes the members of a rank that is lost at the
// same time.
func TestMembersMoveToJoined(t *testing.T) {
	v := world.View{Parts: 8, Ranks: 4}
	for _, tc := range []struct {
		before, now []int // lost ranks
		want        string
	}{
		{nil, nil, "[0 0 1 1 2 2 3 3]"},
		{[]int{2}, nil, "[0 0 1 1 4 4 3 3]"},
		{[]int{1, 2, 3}, nil, "[0 0 4 4 0 0 4 4]"},
		{nil, []int{3}, "[0 0 1 1 2 2 4 4]"},
		{[]int{1}, []int{2}, "[0 0 0 4 4 4 3 3]"},
	} {
		m := New(0, 1, v, nil, nil)
		for _, r := range tc.before {
			m.Lose(Loss{r, true})
			m.Apply(decision(t, m, nil, nil))
		}
		for _, r := range tc.now {
			m.Lose(Loss{r, true})
		}
		guest := []Guest{{ID: 7}}
		for _, r := range m.Live() {
			m.Receive(r, Report{Number: m.View().Number, Lost: sorted(m.lost), Proposal: Proposal{Admits: true}, Guests: guest})
		}
		d := m.Decide()
		if d == nil || d.Done || len(d.Joined) != 1 || d.View.Started() != 5 || fmt.Sprint(d.View.Carrier) != tc.want {
			t.Errorf("after the loss of %v and %v: %+v", tc.before, tc.now, d)
			continue
		}
		if got := Join(1, *d, nil, nil); got.rank != 4 || fmt.Sprint(got.Live()) == fmt.Sprint(m.Live()) || len(got.lost) != got.settled {
			t.Errorf("%+v", got)
		}
	}
}

// A guest that one live rank cannot reach does not join, and the run continues without it.
func TestUnreachableGuest(t *testing.T) {
	m := New(0, 1, world.View{Parts: 2, Ranks: 2}, nil, nil)
	m.Receive(0, Report{Proposal: Proposal{Admits: true}, Guests: []Guest{{ID: 7}}})
	m.Receive(1, Report{})
	if d := m.Decide(); d == nil || d.Done || len(d.Joined) > 0 || d.View.Started() != 2 {
		t.Errorf("%+v", d)
	}
}

// All ranks of a host leave together, also idle ones, and carry nothing in later views. If no other host has ranks, the
// run stops.
func TestHostLeaves(t *testing.T) {
	v := world.View{Parts: 4, Ranks: 2, Spares: 2}
	m := New(0, 1, v, nil, []string{"a", "b", "a", "b"})
	d := decision(t, m, map[int]Proposal{0: {Leaves: true, Host: true}}, nil)
	if got := fmt.Sprint(d.View.Carrier, d.Left, d.Few); got != "[3 3 1 1] [0 2] false" {
		t.Errorf("host a leaves: %s", got)
	}
	alone := New(0, 1, v, nil, []string{"a", "b", "a", "b"})
	if d := decision(t, alone, map[int]Proposal{0: {Leaves: true}}, nil); fmt.Sprint(d.View.Carrier, d.Left) != "[2 2 1 1] [0]" {
		t.Errorf("only rank 0 leaves: %v, %v", d.View.Carrier, d.Left)
	}
	m.Apply(d)
	m.Lose(Loss{3, true})
	d = decision(t, m, nil, nil)
	if got := fmt.Sprint(d.View.Carrier, d.Left, d.Few); got != "[1 1 1 1] [0 2] false" {
		t.Errorf("then rank 3 is lost: %s", got)
	}
	m.Apply(d)
	if d = decision(t, m, map[int]Proposal{1: {Leaves: true, Host: true}}, nil); !d.Few || d.Done {
		t.Errorf("both hosts leave: %+v", d)
	}
	if j := Join(1, d, nil, nil); !slices.Equal(j.left, d.Left) {
		t.Errorf("a rank that joins knows %v, want %v", j.left, d.Left)
	}
}

// The run stops if too few ranks are left to carry members, and ends if nothing has changed.
func TestFewRanks(t *testing.T) {
	v := world.View{Parts: 3, Ranks: 3}
	m := New(0, 2, v, nil, nil)
	m.Lose(Loss{1, true})
	if d := decision(t, m, nil, nil); d.Few || d.Done {
		t.Errorf("two of two: %+v", d)
	}
	m = New(0, 2, v, nil, nil)
	m.Lose(Loss{1, true})
	if d := decision(t, m, map[int]Proposal{2: {Leaves: true}}, nil); !d.Few {
		t.Errorf("one of two: %+v", d)
	}
	if d := decision(t, New(0, 1, v, nil, nil), nil, nil); !d.Done {
		t.Errorf("nothing has changed: %+v", d)
	}
}

// Parts continue from the newest epoch of which each has a state on a live rank, on its own rank if
// possible.
func TestNewestCommonEpoch(t *testing.T) {
	v := world.View{Parts: 3, Ranks: 3}
	m := New(0, 1, v, nil, nil)
	m.Lose(Loss{2, true})
	states := map[int][]State{0: {{0, 7}, {0, 6}}, 1: {{1, 7}, {1, 6}, {2, 6}, {2, 5}, {0, 6}}}
	d := decision(t, m, nil, states)
	if d.Epoch != 6 || d.Lack || fmt.Sprint(d.From) != "[0 1 1]" {
		t.Errorf("%+v", d)
	}
	m = New(0, 1, v, nil, nil)
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
		m := New(tc.rank, 1, v, nil, nil)
		m.Lose(tc.lost...)
		if got := m.Excluded(); got != tc.want {
			t.Errorf("rank %d without %v: %t", tc.rank, tc.lost, got)
		}
	}
	m := New(0, 1, v, nil, nil) // after a decision, earlier losses do not count
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
	m := New(2, 1, v, []string{"a", "b", "b", "a"}, nil)
	for _, step := range []struct{ lose, want int }{{-1, 0}, {0, 3}, {3, 1}, {1, -1}} {
		if step.lose >= 0 {
			m.Lose(Loss{step.lose, true})
		}
		if got := m.Shadow(); got != step.want {
			t.Errorf("without %d: rank %d, want %d", step.lose, got, step.want)
		}
	}
}

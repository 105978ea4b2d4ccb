package protocol

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"siafu/internal/wire"
)

// "its launching GS picks the PS with the lightest load […] the GS remembers
// this choice for the interval" (Dorylus, OSDI'21, §5.1).
func TestLightestLoadIsRemembered(t *testing.T) {
	h := NewChooser(Setting{Intervals: []int{4}, Servers: 3, Staleness: 9}, 0, 1, 0)
	fetch := func(interval, epoch, want int) {
		t.Helper()
		if m := h.Fetch(interval, epoch, 0)[0]; m.To != 1+want {
			t.Fatalf("interval %d, epoch %d: server %d, want %d; loads %v and %v", interval, epoch, m.To-1, want, h.own, h.others)
		}
	}
	told := func(interval, epoch, load int) {
		t.Helper()
		m := Message{Type: wire.Weights, From: 1 + h.choices[interval].server, Epoch: epoch, Interval: interval, Version: 1, Load: load}
		if err := h.Take(m); err != nil {
			t.Fatal(err)
		}
	}
	fetch(0, 1, 0) // ties: by index
	fetch(1, 1, 1)
	fetch(2, 1, 2)
	told(0, 1, 5) // four of others
	told(1, 1, 3) // two of others
	told(2, 1, 9)
	fetch(3, 1, 1)
	told(3, 1, 2) // others have left server 1
	for _, i := range []int{1, 3} {
		if a, b := h.FetchStash(i, 1, 0), h.Gradient(i, 1, 0, nil); a.To != 2 || b.To != 2 {
			t.Fatalf("interval %d goes to ranks %d and %d after its choice of 2", i, a.To, b.To)
		}
	}
	fetch(1, 2, 1) // all its intervals have finished
	fetch(3, 2, 1)
	told(1, 2, 2)
	h.Gradient(0, 1, 0, nil)
	fetch(0, 2, 0) // two of others there, three on server 1
	// Half of server 0's four after an epoch. Server 1 told of two before it
	// knew of this rank's second: one is another's.
	if h.others[0] != 2 || h.others[1] != 1 {
		t.Fatalf("others' intervals on servers: %v, want 2 and 1", h.others)
	}
}

// Ranks that know nothing of each other do not all choose the same server, and
// with many epochs none of the servers is left out.
func TestServersShareTheLoad(t *testing.T) {
	for name, c := range map[string]Setting{
		"one interval each":  {Intervals: []int{1, 1, 1, 1}, Servers: 4, Staleness: 1},
		"more than servers":  {Intervals: []int{8, 8, 8}, Servers: 3, Staleness: 1},
		"uneven":             {Intervals: []int{1, 12}, Servers: 2},
		"one rank, one left": {Intervals: []int{3}, Servers: 2, Staleness: 2},
	} {
		t.Run(name, func(t *testing.T) {
			const epochs = 20
			w := newCluster(t, c, twoLayers, epochs, 3, func() Updater { return none{} })
			w.grad = whole
			got := make([]int, c.Servers)
			w.taken = func(m Message) { got[m.From-c.Graph()]++ }
			if !w.run() {
				t.Fatal("deadlock")
			}
			if mean := epochs * w.total() / c.Servers; slices.Min(got) < mean/2 {
				t.Fatalf("servers have had %v intervals", got)
			}
		})
	}
}

// "a fast-moving vertex interval is allowed to be at most S epochs away from
// the slowest-moving interval" (§5.2): MayStart uses the epochs that all intervals of all ranks
// have finished, by the messages that the rank has received. The rank receives all of them.
func TestBoundOnFastIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawSetting(t)
		var all []*Progress
		var epochs [][]int // by rank and interval: finished
		for r, n := range c.Intervals {
			all = append(all, NewProgress(c, r))
			epochs = append(epochs, slices.Repeat([]int{c.Trained}, n))
		}
		slowest := func() int {
			least := math.MaxInt
			for _, e := range epochs {
				least = min(least, slices.Min(e))
			}
			return least
		}
		var late []Message
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			r := rapid.IntRange(0, c.Graph()-1).Draw(t, "rank")
			i := rapid.IntRange(0, c.Intervals[r]-1).Draw(t, "interval")
			next := epochs[r][i] + 1
			if all[r].MayStart(next) {
				if slowest() < next-1-c.Staleness {
					t.Fatalf("rank %d starts epoch %d, the slowest has finished %d", r, next, slowest())
				}
				epochs[r][i] = next
				late = append(late, all[r].Finish(i, next)...)
			}
			for len(late) > 0 && rapid.Bool().Draw(t, "delivered") {
				if err := all[late[0].To].Step(late[0]); err != nil {
					t.Fatalf("%v", err)
				}
				late = late[1:]
			}
		}
		for _, m := range late {
			if err := all[m.To].Step(m); err != nil {
				t.Fatalf("%v", err)
			}
		}
		for r, p := range all {
			if p.Slowest() != slowest() || !p.MayStart(slowest()+1+c.Staleness) || p.MayStart(slowest()+2+c.Staleness) {
				t.Fatalf("rank %d thinks that the slowest has finished %d, not %d", r, p.Slowest(), slowest())
			}
		}
	})
}

func TestGraphRankRefuses(t *testing.T) {
	take := func(m Message) error {
		h := NewChooser(small, 0, 2, 5)
		h.Fetch(0, 1, 0)
		return h.Take(m)
	}
	step := func(m Message) error { return NewProgress(small, 0).Step(m) }
	for name, tc := range map[string]struct {
		to   func(Message) error
		m    Message
		says string
	}{
		"weights from another":   {take, Message{Type: wire.Weights, From: 3, Epoch: 1, Version: 1}, "nothing was requested"},
		"weights of an epoch":    {take, Message{Type: wire.Weights, From: 2, Epoch: 2, Version: 1}, "nothing was requested"},
		"weights of no interval": {take, Message{Type: wire.Weights, From: 2, Epoch: 1, Interval: 2}, "2 intervals"},
		"weights not asked for":  {take, Message{Type: wire.Weights, From: 2, Interval: 1, Epoch: 1}, "nothing was requested"},
		"a pull not asked for":   {take, Message{Type: wire.Weights, From: 2, Version: 1}, "nothing was requested"},
		"too few weights": {take,
			Message{Type: wire.Weights, From: 2, Epoch: 1, Version: 1, Values: values(4)}, "4 weights, want 5"},
		"no weights":            {take, Message{Type: wire.Weights, From: 2, Epoch: 1, Version: 1}, "0 weights, want 5"},
		"weights of the future": {take, Message{Type: wire.Weights, From: 2, Epoch: 1, Version: 2}, "version 2"},
		"weights of the past": {take, Message{Type: wire.Weights, From: 2, Epoch: 1},
			"version 0 is older than the oldest usable version 1"},
		"a gradient":              {take, Message{Type: wire.Gradient, From: 2, Epoch: 1}, "takes weights"},
		"progress of a server":    {step, Message{Type: wire.Finished, From: 2, Epoch: 1}, "not the progress of another graph rank"},
		"progress of oneself":     {step, Message{Type: wire.Finished, From: 0, Epoch: 1}, "not the progress of another graph rank"},
		"progress that skips one": {step, Message{Type: wire.Finished, From: 1, Epoch: 2}, "the last epoch that the rank finished is 0"},
		"progress of a fetch":     {step, Message{Type: wire.Fetch, From: 1, Epoch: 1}, "not the progress of another graph rank"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.to(tc.m); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%v does not say %q", err, tc.says)
			}
		})
	}
}

package protocol

import (
	"strings"
	"testing"

	"siafu/internal/wire"
)

// Two ranks with two intervals and one, two servers; the first one is tested.
var small = Setting{Intervals: []int{2, 1}, Servers: 2, Staleness: 1}

func values(n int) []float32 { return make([]float32, n) }

// chosen is the first server after rank 0 chose it for interval 0.
var chosen = []Message{{Type: wire.Fetch, Epoch: 1}}

// finished is the same after that interval's last gradient.
var finished = append(chosen[:1:1],
	Message{Type: wire.Gradient, Epoch: 1, Layer: 1, Values: values(3)},
	Message{Type: wire.Gradient, Epoch: 1, Layer: 0, Values: values(2)})

func TestBrokenProtocol(t *testing.T) {
	for name, tc := range map[string]struct {
		before []Message
		m      Message
		says   string
	}{
		"fetch of epoch 0":        {nil, Message{Type: wire.Fetch}, "has closed epoch 0"},
		"fetch beyond the bound":  {nil, Message{Type: wire.Fetch, Epoch: 3}, "staleness bound is 1"},
		"fetch of unknown":        {nil, Message{Type: wire.Fetch, From: 1, Interval: 1, Epoch: 1}, "rank 1: fetch, interval 1"},
		"fetch by a server":       {nil, Message{Type: wire.Fetch, From: 3, Epoch: 1}, "2 graph ranks"},
		"second fetch":            {chosen, Message{Type: wire.Fetch, Epoch: 1}, "has not finished epoch 1"},
		"fetch while in an epoch": {chosen, Message{Type: wire.Fetch, Epoch: 2}, "has not finished epoch 1"},
		"fetch of a finished one": {finished, Message{Type: wire.Fetch, Epoch: 1}, "has already finished this epoch"},
		"fetch after closing":     {[]Message{{Type: wire.Close, Epoch: 1}}, Message{Type: wire.Fetch, Epoch: 1}, "has closed epoch 1"},
		"stash never made":        {nil, Message{Type: wire.FetchStash, Epoch: 1}, "no weights are stashed"},
		"stash of epoch 0":        {nil, Message{Type: wire.FetchStash}, "no weights are stashed"},
		"stash of another epoch":  {chosen, Message{Type: wire.FetchStash, Epoch: 2}, "no weights are stashed"},
		"stash of another":        {chosen, Message{Type: wire.FetchStash, Interval: 1, Epoch: 1}, "no weights are stashed"},
		"stash released":          {finished, Message{Type: wire.FetchStash, Epoch: 1}, "no weights are stashed"},
		"gradient without stash":  {nil, Message{Type: wire.Gradient, Epoch: 1, Values: values(2)}, "no weights are stashed"},
		"gradient twice":          {finished[:2], finished[1], "duplicate gradient"},
		"gradient after the last": {finished, finished[2], "no weights are stashed"},
		"gradient of no layer":    {chosen, Message{Type: wire.Gradient, Epoch: 1, Layer: 2, Values: values(2)}, "2 layers"},
		"gradient too short":      {chosen, Message{Type: wire.Gradient, Epoch: 1, Values: values(1)}, "1 values, want 2"},
		"close out of turn":       {nil, Message{Type: wire.Close, Epoch: 2}, "the last epoch that the rank closed is 0"},
		"close twice":             {[]Message{{Type: wire.Close, Epoch: 1}}, Message{Type: wire.Close, Epoch: 1}, "closed is 1"},
		"close that miscounts": {chosen, Message{Type: wire.Close, Epoch: 1, Count: 2},
			"1 intervals have chosen this server, but the rank counts 2"},
		"sum of a graph rank":      {nil, Message{Type: wire.Sum, From: 1, Epoch: 1}, "not another server"},
		"sum of oneself":           {nil, Message{Type: wire.Sum, From: 2, Epoch: 1}, "not another server"},
		"sum of nobody with value": {nil, Message{Type: wire.Sum, From: 3, Epoch: 1, Values: values(2)}, "2 values, want 0"},
		"sum without value":        {nil, Message{Type: wire.Sum, From: 3, Epoch: 1, Count: 1}, "0 values, want 2"},
		"sum twice": {[]Message{{Type: wire.Sum, From: 3, Epoch: 1}},
			Message{Type: wire.Sum, From: 3, Epoch: 1}, "was of epoch 1"},
		"sums of too many": {append(finished[:3:3], Message{Type: wire.Sum, From: 3, Epoch: 1, Count: 3, Values: values(2)},
			Message{Type: wire.Close, From: 1, Epoch: 1}),
			Message{Type: wire.Close, Epoch: 1, Count: 1}, "gradients of 4 intervals, want 3; rank 2: 1 rank 3: 3"},
		"leave in an epoch":   {chosen, Message{Type: wire.Leave}, "interval 0 has not finished epoch 1"},
		"leave while waiting": {[]Message{{Type: wire.Pull, Version: 9}}, Message{Type: wire.Leave}, "is waiting for weights"},
		"after leaving":       {[]Message{{Type: wire.Leave}}, Message{Type: wire.Fetch, Epoch: 1}, "has left"},
		"weights":             {nil, Message{Type: wire.Weights}, "does not accept this type"},
		"finished":            {nil, Message{Type: wire.Finished, Epoch: 1}, "does not accept this type"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(small, 0, twoLayers, values(5), &sgd{})
			for _, m := range tc.before {
				if _, err := s.Step(m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Step(tc.m); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%v does not say %q", err, tc.says)
			}
		})
	}
}

// A Fetch of an epoch whose bound the weights do not keep yet waits for them.
func TestFetchWaitsForTheBound(t *testing.T) {
	s := New(Setting{Intervals: []int{1}, Servers: 1}, 0, twoLayers, values(5), &sgd{})
	step := func(m Message) []Message {
		t.Helper()
		out, err := s.Step(m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	step(Message{Type: wire.Fetch, Epoch: 1})
	step(Message{Type: wire.Pull, Version: 2})
	step(finished[1])
	if out := step(finished[2]); len(out) != 0 {
		t.Fatalf("%v before the epoch is closed", out)
	}
	if out := step(Message{Type: wire.Close, Epoch: 1, Count: 1}); len(out) != 1 || out[0].Version != 2 {
		t.Fatalf("a pull of version 2 is answered by %v", out)
	}
	if out := step(Message{Type: wire.Fetch, Epoch: 2, Version: 2}); len(out) != 1 || out[0].Values != nil || out[0].Load != 1 {
		t.Fatalf("%v for a rank that holds version 2", out)
	}
}

// Servers with late messages may be several versions behind. Then a Fetch waits for the
// required version, and a server for the last sum of finished epochs.
func TestServerFarBehind(t *testing.T) {
	c := small
	c.Staleness = 0
	s := New(c, 0, twoLayers, values(5), &sgd{})
	step := func(m Message) []Message {
		t.Helper()
		out, err := s.Step(m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for epoch := 1; epoch <= 2; epoch++ {
		for rank := range 2 {
			step(Message{Type: wire.Close, From: rank, Epoch: epoch})
		}
	}
	step(Message{Type: wire.Leave, From: 1})
	step(Message{Type: wire.Fetch, Epoch: 3})
	for epoch := 1; epoch <= 2; epoch++ {
		step(Message{Type: wire.Sum, From: 3, Epoch: epoch, Layer: 1, Count: 3, Values: values(3)})
		out := step(Message{Type: wire.Sum, From: 3, Epoch: epoch, Layer: 0, Count: 3, Values: values(2)})
		if want := epoch - 1; len(out) != want || want == 1 && out[0].Version != 3 {
			t.Fatalf("a fetch of epoch 3 is answered by %v at version %d", out, s.Version())
		}
	}
	t.Run("done", func(t *testing.T) {
		s := New(c, 0, twoLayers, values(5), &sgd{})
		for rank := range 2 {
			for _, m := range []Message{{Type: wire.Close, From: rank, Epoch: 1}, {Type: wire.Leave, From: rank}} {
				if _, err := s.Step(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		if s.Done() {
			t.Fatal("done before the other server's sums")
		}
	})
}

// In a steady state an epoch allocates nothing on a server.
func TestServerAllocatesNothing(t *testing.T) {
	c := Setting{Intervals: []int{2, 1}, Servers: 2, Staleness: 1}
	s := New(c, 0, twoLayers, values(5), none{})
	epoch := 0
	var err error
	step := func(m Message) {
		if _, e := s.Step(m); e != nil {
			err = e
		}
	}
	two, three := values(2), values(3)
	run := func() {
		epoch++
		step(Message{Type: wire.Fetch, Epoch: epoch})
		step(Message{Type: wire.Fetch, Interval: 1, Epoch: epoch})
		step(Message{Type: wire.FetchStash, Epoch: epoch})
		step(Message{Type: wire.Gradient, Interval: 1, Epoch: epoch, Layer: 1, Values: three})
		step(Message{Type: wire.Gradient, Epoch: epoch, Layer: 1, Values: three})
		step(Message{Type: wire.Gradient, Epoch: epoch, Layer: 0, Values: two})
		step(Message{Type: wire.Close, Epoch: epoch, Count: 2})
		step(Message{Type: wire.Close, From: 1, Epoch: epoch})
		step(Message{Type: wire.Sum, From: 3, Epoch: epoch, Layer: 1, Count: 1, Values: three})
		step(Message{Type: wire.Sum, From: 3, Epoch: epoch, Layer: 0, Count: 1, Values: two})
		step(Message{Type: wire.Gradient, Interval: 1, Epoch: epoch, Layer: 0, Values: two})
	}
	for range 5 {
		run()
	}
	if n := testing.AllocsPerRun(20, run); n != 0 || err != nil {
		t.Fatalf("%v allocations an epoch, %v", n, err)
	}
	if s.Version() != epoch+1 {
		t.Fatalf("version %d after epoch %d", s.Version(), epoch)
	}
}

// none leaves weights as they are.
type none struct{}

func (none) Update(int, int, []float32, []float32) {}

func (none) State() [][]float32 { return nil }

var _ Updater = none{}

package protocol_test

import (
	"slices"
	"testing"

	"siafu/internal/wire"
	"siafu/ranks/params/protocol"
)

// A waiting server names the ranks whose intervals have received weights and not sent
// gradients; if there are none, the ranks without a request.
func TestOwing(t *testing.T) {
	setting := protocol.Setting{Intervals: []int{1, 2}, Servers: 1}
	s := protocol.New(setting, 0, []protocol.Range{{Lo: 0, Hi: 2}}, make([]float32, 2), descent{})
	owe := func(want ...int) {
		t.Helper()
		if got := s.AwaitedRanks(); !slices.Equal(got, want) {
			t.Errorf("%v owe, want %v", got, want)
		}
	}
	step := func(ms ...protocol.Message) {
		t.Helper()
		for _, m := range ms {
			if _, err := s.Step(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	owe(0, 1)
	step(protocol.Message{Type: wire.Fetch, From: 1, To: 2, Epoch: 1, Interval: 1})
	owe(1)
	step(protocol.Message{Type: wire.Fetch, From: 0, To: 2, Epoch: 1})
	owe(0, 1)
	step(protocol.Message{Type: wire.Gradient, From: 1, To: 2, Epoch: 1, Interval: 1, Values: make([]float32, 2)})
	owe(0)
}

// If all graph ranks have sent their gradients and wait for the next version, the server waits
// for another server's sum.
func TestOwingServer(t *testing.T) {
	setting := protocol.Setting{Intervals: []int{1}, Servers: 2}
	s := protocol.New(setting, 0, []protocol.Range{{Lo: 0, Hi: 2}}, make([]float32, 2), descent{})
	for _, m := range []protocol.Message{
		{Type: wire.Fetch, Epoch: 1}, {Type: wire.Close, Epoch: 1, Count: 1},
		{Type: wire.Gradient, Epoch: 1, Values: make([]float32, 2)}, {Type: wire.Fetch, Epoch: 2},
	} {
		m.To = setting.Server(0)
		if _, err := s.Step(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.AwaitedRanks(); !slices.Equal(got, []int{setting.Server(1)}) {
		t.Errorf("%v owe", got)
	}
}

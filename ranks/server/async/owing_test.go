package async_test

import (
	"slices"
	"testing"

	"siafu/ranks/server"
	"siafu/ranks/server/async"
)

// A server that waits names the ranks whose intervals have taken weights and
// not given gradients; where nobody has, those that are still there.
func TestOwing(t *testing.T) {
	setting := async.Setting{Intervals: []int{1, 2}, Servers: 1}
	s := async.New(setting, 0, []server.Range{{Lo: 0, Hi: 2}}, make([]float32, 2), descent{})
	owe := func(want ...int) {
		t.Helper()
		if got := s.Owing(); !slices.Equal(got, want) {
			t.Errorf("%v owe, want %v", got, want)
		}
	}
	step := func(ms ...async.Message) {
		t.Helper()
		for _, m := range ms {
			if _, err := s.Step(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	owe(0, 1)
	step(async.Message{Type: async.Fetch, From: 1, To: 2, Epoch: 1, Interval: 1})
	owe(1)
	step(async.Message{Type: async.Fetch, From: 0, To: 2, Epoch: 1})
	owe(0, 1)
	step(async.Message{Type: async.Gradient, From: 1, To: 2, Epoch: 1, Interval: 1, Values: make([]float32, 2)})
	owe(0)
}

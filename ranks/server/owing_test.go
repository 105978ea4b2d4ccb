package server

import (
	"slices"
	"testing"
)

// A server that waits names the ranks that it waits for, and no others.
func TestOwing(t *testing.T) {
	s := New(Topology{Graph: 3, Servers: 2}, 0, twoLayers, make([]float32, 5), &sgd{})
	owe := func(want ...int) {
		t.Helper()
		if got := s.Owing(); !slices.Equal(got, want) {
			t.Errorf("%v owe, want %v", got, want)
		}
	}
	push := func(kind Type, from, layer int) {
		t.Helper()
		values := make([]float32, twoLayers[layer].Hi-twoLayers[layer].Lo)
		if _, err := s.Step(Message{Type: kind, From: from, To: 3, Epoch: 1, Layer: layer, Values: values}); err != nil {
			t.Fatal(err)
		}
	}
	owe(0, 2)
	push(Push, 0, 1)
	owe(0, 2)
	push(Push, 0, 0)
	owe(2)
	push(Push, 2, 1)
	push(Push, 2, 0)
	owe(4) // the other server's sum
	push(Partial, 4, 0)
	push(Partial, 4, 1)
	owe(0, 2) // of the next epoch
}

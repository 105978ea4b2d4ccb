package protocol

import (
	"slices"
	"testing"

	"siafu/internal/wire"
)

// Behind returns exactly the ranks that have finished fewer epochs than this rank.
func TestBehind(t *testing.T) {
	c := Setting{Intervals: []int{1, 1, 2}, Servers: 1, Staleness: 1}
	p := NewProgress(c, 0)
	if got := p.Behind(); got != nil {
		t.Errorf("at the beginning %v are behind", got)
	}
	p.Finish(0, 1)
	if got := p.Behind(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("%v are behind", got)
	}
	if err := p.Step(Message{Type: wire.Finished, From: 2, To: 0, Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	if got := p.Behind(); !slices.Equal(got, []int{1}) {
		t.Errorf("%v are behind", got)
	}
}

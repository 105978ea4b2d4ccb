package refresh_test

import (
	"testing"

	"siafu/halo/refresh"
)

// A policy's stale rows, from their ages in each epoch of a period: with every:4 of ages 0, 1, 2, 3.
func TestStaleRows(t *testing.T) {
	for policy, want := range map[string][2]float64{
		"every:4": {0.75, 0.75}, "every:4,1": {1, 1}, "previous:none": {1, 1}, "delay:3": {3, 1},
		"drift:0.1,4": {3, 0.75}, "age:4,0.9": {0.75, 0.75},
	} {
		p, err := refresh.Parse(policy)
		if err != nil {
			t.Fatal(err)
		}
		if epochs, rows := p.Timing().Stale(); epochs != want[0] || rows != want[1] {
			t.Errorf("%s: rows of %v epochs, %v of all; want %v", policy, epochs, rows, want)
		}
	}
}

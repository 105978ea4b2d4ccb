package ranks

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// networks returns all models in their orders, with ÂX of the first layer gathered again in
// each pass, and cached.
func networks(t testing.TB) map[string]Config {
	all := map[string]Config{}
	for _, n := range []struct{ model, orders string }{
		{"gcn", "gather-first apply-first kept"}, {"sage", "gather-first apply-first kept"},
		{"gin", "gather-first apply-first kept"}, {"gat", "auto"}, {"mlp", "auto"}, {"gcnii", "auto"}, {"sage-pool", "auto"},
	} {
		for _, order := range bytes.Fields([]byte(n.orders)) {
			c := quick(t)
			c.Model, c.Order, c.Layers, c.Hidden, c.Heads = n.model, string(order), 3, 8, 2
			c.Epochs, c.Threads, c.CheckpointEvery, c.CacheInput = 3, 2, "off", "off"
			if c.Order == "kept" {
				c.Order, c.CacheInput, c.InputDropout = "gather-first", "on", 0
			}
			all[n.model+" "+string(order)] = c
		}
	}
	return all
}

// Overlap changes no bit, for any order of the workers: with many intervals on one rank, in
// three layers and in two of increasing width, in every repetition.
func TestOverlapChangesNothing(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	all := networks(t)
	for k, name := range slices.Sorted(maps.Keys(all)) {
		for i, shape := range []struct{ layers, hidden int }{{3, 16}, {2, 3}} {
			if !hosttest.Sampled(2, k, i) {
				continue
			}
			c := all[name]
			t.Run(fmt.Sprint(name, " ", shape), func(t *testing.T) {
				c.Layers, c.Hidden, c.Ranks, c.Intervals, c.Threads, c.Epochs = shape.layers, shape.hidden, 1, 10, 4, 6
				c.Mode = "nopipe"
				want := train(t, c, data)
				c.Mode = "pipe"
				for range 2 {
					if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
						t.Fatal("model.safetensors differs")
					}
				}
			})
		}
	}
}

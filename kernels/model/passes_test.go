package model

import (
	"reflect"
	"testing"
)

// The passes of networks, derived by hand from their formulas.
func TestPasses(t *testing.T) {
	of := func(kind, order, cache string, drop float64, memory Memory, dims ...int) (epoch, evaluation Passes) {
		s := Spec{Kind: kind, Dims: dims, Dropout: drop, Streams: true}
		s.compose()
		s.Choose(Load{CacheFits: true}, Choices{Order: order, CacheInput: cache})
		return New(s, false).Passes(memory)
	}
	for name, tc := range map[string]struct {
		kind, order, cache string
		dims               []int
		memory             Memory
		epoch, evaluation  Passes
	}{
		// ÂX W1 in the first sequence, (ÂH)W2 and its gradient in the second, the gradient of W1 in the
		// third. Only H and the gradient of ÂH have a row per vertex, and gathers read them.
		"gcn of two layers": {"gcn", "gather-first", "on", []int{48, 32, 16}, InStep | InChain,
			Passes{Gathers: []int{1}, GathersBackward: []int{1}, Cached: 2, Vertices: 3},
			Passes{Gathers: []int{1}, Cached: 1, Vertices: 2}},
		// The second layer's ÂH is read again for the gradient of its weights.
		"gcn of three layers": {"gcn", "gather-first", "on", []int{48, 32, 32, 16}, InStep | InChain,
			Passes{Gathers: []int{1, 2}, GathersBackward: []int{2, 1}, Cached: 2, Vertices: 5, Fetched: 64, Written: 32},
			Passes{Gathers: []int{1, 2}, Cached: 1, Vertices: 3, Fetched: 32, Written: 32}},
		// XW1 is gathered: the features are read for it and for the gradient of W1.
		"products first": {"gcn", "apply-first", "off", []int{48, 32, 16}, InStep | InChain,
			Passes{Gathers: []int{0, 1}, GathersBackward: []int{1, 0}, Features: 2, Vertices: 5, Fetched: 64, Written: 32},
			Passes{Gathers: []int{0, 1}, Features: 1, Vertices: 3, Fetched: 32, Written: 32}},
		// The gather reads X itself, and ÂX is stored for the gradient of W1.
		"rows of features": {"gcn", "gather-first", "off", []int{48, 32, 16}, InStep | InChain,
			Passes{Gathers: []int{0, 1}, GathersBackward: []int{1}, Features: 1, Vertices: 4, Fetched: 96, Written: 48, Random: true},
			Passes{Gathers: []int{0, 1}, Features: 1, Vertices: 3, Fetched: 48, Written: 48, Random: true}},
		// Values have a row per vertex, although one sequence of tasks writes and reads them.
		"perceptron": {"mlp", "auto", "off", []int{48, 32, 16}, InStep | InChain,
			Passes{Features: 1, Vertices: 1, Fetched: 96, Written: 96}, Passes{Features: 1, Vertices: 1, Fetched: 64, Written: 64}},
	} {
		t.Run(name, func(t *testing.T) {
			epoch, evaluation := of(tc.kind, tc.order, tc.cache, 0.5, tc.memory, tc.dims...)
			if !reflect.DeepEqual(epoch, tc.epoch) || !reflect.DeepEqual(evaluation, tc.evaluation) {
				t.Errorf("an epoch %+v, want %+v\nan evaluation %+v, want %+v", epoch, tc.epoch, evaluation, tc.evaluation)
			}
		})
	}
}

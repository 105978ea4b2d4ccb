package graphwork

import (
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// The last layer's edges by source have the bits of training vertices if its backward gather masks plain columns.
// Other layers share the edges without these bits.
func TestEdgeMasks(t *testing.T) {
	ops := kernels.NewTeam(1)
	defer ops.Close()
	const own = 200
	for _, c := range []struct {
		kind    string
		trained int // of ten vertices
		coded   bool
		masks   bool
	}{
		{kind: "gcn", trained: 6, masks: true}, {kind: "gat", trained: 6, masks: true},
		{kind: "gcn", trained: 6, coded: true}, {kind: "gatv2", trained: 6}, {kind: "sage-max", trained: 6},
		{kind: "gcn", trained: 4}, {kind: "gcn", trained: 9},
	} {
		a, s := mapped.NewArena(), ringShard(own)
		defer a.Free()
		for v := range own {
			s.Split[v] = graph.SplitTest
			if v%10 < c.trained {
				s.Split[v] = graph.SplitTrain
			}
		}
		spec := model.Spec{Kind: c.kind, Dims: []int{64, 32, 16, 8}, Heads: 2, OutputHeads: 1}
		spec.Choose(model.Load{FeatureNNZ: 1}, model.Choices{Order: "apply-first", CacheInput: "off"})
		o := Options{Targets: true}
		if c.coded {
			o.Codes = NewCodes(ops, a, 0)
		}
		w := New(model.NewStore(model.New(spec, false), model.Place(ops, a, s.Features, s.Own, s.Own), model.InStep, ops, a), s, o, ops, a)
		last := w.Layer(2)
		want := kernels.EdgeMask(nil)
		if c.masks {
			want = kernels.NewEdgeMask(a, last.edges.own.Cols, last.vertexMask)
		}
		if got := last.maskSources(last.edges.own).EdgeMask; !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%+v: the bits of edges are %x, want %x", c, got, want)
		}
		if w.Layer(1).edges.own.EdgeMask != nil {
			t.Errorf("%+v: another layer has the bits", c)
		}
	}
}

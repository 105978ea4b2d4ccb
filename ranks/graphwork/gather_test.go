package graphwork

import (
	"fmt"
	"testing"

	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// A layer has the gather of its network, and sums have the forms of the options. A Work that gathers from
// the vertices of another one reads what that one has published, and a layer maps only plain ghost rows.
func TestGathers(t *testing.T) {
	ops, a := kernels.NewTeam(1), mapped.NewArena()
	defer ops.Close()
	defer a.Free()
	const own = 40
	ghosts := ringShard(own)
	ghosts.Ghosts, ghosts.GhostStart[1], ghosts.OutDegree = make([]uint32, own), own, append(ghosts.OutDegree, ghosts.OutDegree...)
	work := func(kind string, s *shard.Shard, o Options) *Work {
		spec := model.Spec{Kind: kind, Dims: []int{64, 32, 8}, Heads: 2, OutputHeads: 1}
		spec.Choose(model.Load{FeatureNNZ: 1, CacheFits: true}, model.Choices{Order: "apply-first", CacheInput: "off"})
		return New(model.NewStore(model.New(spec, false), model.Place(ops, a, s.Features, s.Own, s.Own),
			model.InStep, ops, a), s, o, ops, a)
	}
	for _, c := range []struct {
		kind         string
		half         bool
		gather, form string
		maps         bool
	}{
		{kind: "gcn", gather: "*graphwork.sums", form: "graphwork.plain", maps: true},
		{kind: "gcn", half: true, gather: "*graphwork.sums", form: "*graphwork.half"},
		{kind: "gat", gather: "*graphwork.attention"},
		{kind: "gatv2", gather: "*graphwork.attention"},
		{kind: "sage-max", gather: "*graphwork.maxima"},
	} {
		first := work(c.kind, ringShard(own), Options{Half: c.half})
		second := work(c.kind, ghosts, Options{Half: c.half, Linked: first})
		at, linked := first.Layer(0), second.Layer(0)
		if got := fmt.Sprintf("%T", at.Gather); got != c.gather {
			t.Errorf("%s: the gather is %s, want %s", c.kind, got, c.gather)
		}
		switch g := at.Gather.(type) {
		case *sums:
			if own, grads := fmt.Sprintf("%T", g.own), fmt.Sprintf("%T", g.grads); own != c.form || grads != c.form {
				t.Errorf("%s, half %t: the forms are %s and %s, want %s", c.kind, c.half, own, grads, c.form)
			}
			if linked.Gather.(*sums).ghosts != g.own {
				t.Errorf("%s, half %t: ghosts are not the published rows", c.kind, c.half)
			}
		case *attention:
			if other := linked.Gather.(*attention); other.ghostScores != g.scores || other.backwardGhosts != &at.Recomputed {
				t.Errorf("%s: ghosts do not have the published scores", c.kind)
			}
		}
		if got := second.MapGhosts(0, true) != nil; got != c.maps {
			t.Errorf("%s, half %t: the layer maps ghost rows: %t", c.kind, c.half, got)
		}
	}
}

package graphwork

import (
	"slices"
	"sort"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Work is a shard prepared for gathering.
type Work struct {
	Plan *halo.Plan

	store *model.Store
	shard *shard.Shard
	halo  *halo.Reduction
	coef  model.Coefficients // of own vertices and the ghosts of Plan
	half  bool               // rows are rounded to bfloat16 where they are gathered
	ops   kernels.Ops        // of whoever makes rooms
	arena *mapped.Arena
	placed
	layers []*Layer // nil for one that does not gather
}

// Options say how to gather.
type Options struct {
	// Half rounds rows to bfloat16 before they are gathered; sums are float32.
	Half bool
	// Reduction is what ranks send each other, nil: every ghost's row. Attention,
	// which weighs each edge anew, takes no notice of it.
	Reduction *halo.Reduction
	// Alone leaves out the edges from ghosts, as if they were not there: degrees
	// are those among own vertices.
	Alone bool
	// Forward leaves out what only the way back needs.
	Forward bool
}

// New prepares the layers of a network whose values lie in a store. All memory
// lives as long as a.
func New(store *model.Store, s *shard.Shard, o Options, ops kernels.Ops, a *mapped.Arena) *Work {
	net := store.Network
	r, in, out := o.Reduction, s.InDegree, s.OutDegree
	switch {
	case o.Alone:
		r = halo.Alone(s)
		in, out = s.OwnDegrees()
	case r == nil || slices.ContainsFunc(net.Layers, attended):
		r = halo.Plain(s)
	}
	w := &Work{
		Plan: r.Plan, store: store, shard: s, halo: r, half: o.Half, ops: ops, arena: a,
		coef:   net.Spec.Coefficients(in, out, s.NumOwn(), a),
		layers: make([]*Layer, len(net.Layers)),
	}
	w.coef.Col = r.Scale(w.coef.Col, a)
	w.place()
	for l := range net.Layers {
		if net.Gathers(l) {
			w.layers[l] = w.newLayer(l)
		}
	}
	if !o.Forward {
		w.prepareBackward()
	}
	return w
}

// SumPieces are the bounds of pieces of the sums for other ranks that have
// similar numbers of edges, about so many.
func (w *Work) SumPieces(edges int) []int {
	bounds, next := []int{0}, int64(edges)
	for k, end := range w.halo.Sums.Offsets[1:] {
		if end >= next || k == w.Plan.Sums-1 {
			bounds, next = append(bounds, k+1), end+int64(edges)
		}
	}
	return bounds
}

func attended(layer model.Layer) bool {
	_, ok := layer.(model.Attended)
	return ok
}

// Layer is layer l, nil for one that does not gather.
func (w *Work) Layer(l int) *Layer { return w.layers[l] }

// MaxWidth is the width of the widest rows.
func (w *Work) MaxWidth() int {
	width := 0
	for _, l := range w.layers {
		if l != nil {
			width = max(width, l.Width)
		}
	}
	return width
}

// prepareBackward makes what the way back through the layers needs. Edges into
// training vertices, the only ones with a gradient in the last layer, get
// arrays of their own where those replace the arrays of all edges or are less
// than half of them.
func (w *Work) prepareBackward() {
	last, s := len(w.layers)-1, w.shard
	wanted := func(l *Layer) bool { return l != nil && l.needed }
	others, few := slices.ContainsFunc(w.layers[:last], wanted), 2*s.EdgesInto(graph.SplitTrain) < int64(len(s.In.Cols))
	var all, trained *transposed
	if wanted(w.layers[last]) && (few || s.Directed && !others) {
		trained = w.placeTransposed(s.TransposeInto(w.arena, w.halo.In, graph.SplitTrain))
	}
	if others || wanted(w.layers[last]) && trained == nil {
		all = w.placeTransposed(s.Transpose(w.arena, w.halo.In))
	}
	for l, at := range w.layers {
		if !wanted(at) {
			continue
		}
		at.edges = all
		if l == last && trained != nil {
			at.edges = trained
		}
	}
}

// Boundary is the part of the ascending list of own rows that lies in [lo, hi).
func Boundary(list []uint32, lo, hi int) (from, to int) {
	at := func(v int) int {
		return sort.Search(len(list), func(k int) bool { return int(list[k]) >= v })
	}
	return at(lo), at(hi)
}

package graphwork

import (
	"slices"

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

// Purposes of arrays.
const (
	Coefficients = "coefficients of edges"
	Reversed     = "reverse edges"
	Trained      = "reverse edges of training vertices"
	Scores       = "scores of attention"
	Halves       = "rows in bfloat16"
)

// Options say how to gather.
type Options struct {
	// Half rounds rows to bfloat16 before they are gathered; sums are float32.
	Half bool
	// Apart leaves Layer.Ghosts to the caller, for intervals that
	// go their own ways.
	Apart bool
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
		coef:   net.Spec.Coefficients(in, out, s.NumOwn(), a.For(Coefficients)),
		layers: make([]*Layer, len(net.Layers)),
	}
	w.coef.Col = r.Scale(w.coef.Col, a.For(Coefficients))
	w.place()
	for l := range net.Layers {
		if net.Gathers(l) {
			w.layers[l] = w.newLayer(l, o)
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

// Shapes are the layers that gather.
func (w *Work) Shapes() []halo.Shape {
	var list []halo.Shape
	for l, at := range w.layers {
		if at != nil {
			list = append(list, halo.Shape{Layer: l, Width: at.Width, Backward: at.needed, Scores: at.heads})
		}
	}
	return list
}

// Reverse tells which edges by source the way back goes along, given which layers
// of a network it goes through by edges: all, and in the last layer those into
// training vertices, the only ones with a gradient there. They get arrays of their
// own where those replace the arrays of all edges or are less than half of them.
func Reverse(back []bool, directed bool, trained, edges int64) (all, apart bool) {
	last := len(back) - 1
	others := slices.Contains(back[:last], true)
	apart = back[last] && (2*trained < edges || directed && !others)
	return others || back[last] && !apart, apart
}

// prepareBackward makes what the way back through the layers needs.
func (w *Work) prepareBackward() {
	s, back := w.shard, make([]bool, len(w.layers))
	for l, at := range w.layers {
		back[l] = at != nil && at.needed
	}
	every, apart := Reverse(back, s.Directed, s.EdgesInto(graph.SplitTrain), int64(len(s.In.Cols)))
	var all, trained *transposed
	if apart {
		trained = w.placeTransposed(s.TransposeInto(w.arena.For(Trained), w.halo.In, graph.SplitTrain))
	}
	if every {
		all = w.placeTransposed(s.Transpose(w.arena.For(Reversed), w.halo.In))
	}
	for l, at := range w.layers {
		if !back[l] {
			continue
		}
		at.edges = all
		if l == len(back)-1 && apart {
			at.edges = trained
		}
	}
}

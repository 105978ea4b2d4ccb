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
	Gathered     = "gathered rows"
	Returning    = "gradients of gathered rows"
	Halves       = "rows in bfloat16"
)

// Options say how to gather.
type Options struct {
	// Half rounds rows to bfloat16 before they are gathered; sums are float32.
	Half bool
	// Apart gives every layer memory of its own for the gradients of emitted
	// rows, and leaves Layer.Ghosts to the caller. Without, two layers share it in
	// turn: they must be gone through one after another by all intervals together.
	Apart bool
	// Reduction is what ranks send each other, nil: every ghost's row. Attention,
	// which weighs each edge anew, takes no notice of it.
	Reduction *halo.Reduction
	// Skip leaves out the first layer, which has been gathered for good.
	Skip bool
	// Alone leaves out the edges from ghosts, as if they were not there: degrees
	// are those among own vertices.
	Alone bool
	// Forward leaves out what only the way back needs.
	Forward bool
}

// New prepares the layers of a network, which compute where ops does. All memory
// lives as long as a.
func New(net model.Spec, layers []model.Layer, s *shard.Shard, o Options, ops kernels.Ops, a *mapped.Arena) *Work {
	r, in, out := o.Reduction, s.InDegree, s.OutDegree
	switch {
	case o.Alone:
		r = halo.Alone(s)
		in, out = s.OwnDegrees()
	case r == nil || slices.ContainsFunc(layers, attended):
		r = halo.Plain(s)
	}
	w := &Work{
		Plan: r.Plan, shard: s, halo: r, half: o.Half, ops: ops, arena: a,
		coef:   net.Coefficients(in, out, s.NumOwn(), a.For(Coefficients)),
		layers: make([]*Layer, len(layers)),
	}
	w.coef.Col = r.Scale(w.coef.Col, a.For(Coefficients))
	w.place()
	for l, layer := range layers {
		if layer.GatherWidth() > 0 && !(o.Skip && l == 0) {
			w.layers[l] = w.newLayer(layer, o)
		}
	}
	if !o.Forward {
		w.prepareBackward(o)
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
func (w *Work) prepareBackward(o Options) {
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
	var shared [2]kernels.Mat
	for l, at := range w.layers {
		if !back[l] {
			continue
		}
		at.edges = all
		if l == len(back)-1 && apart {
			at.edges = trained
		}
		at.backward = w.backwardRoom(at, &shared[l%2], o.Apart)
	}
}

// backwardRoom is where the gradients of a layer's emitted rows go.
func (w *Work) backwardRoom(at *Layer, shared *kernels.Mat, apart bool) kernels.Mat {
	own := w.shard.NumOwn()
	if apart {
		return w.room(Returning, own, at.Width)
	}
	if shared.Cols < at.Width {
		*shared = w.room(Returning, own, at.Width)
	}
	return shared.Reshape(own, at.Width)
}

// Boundary is the part of the ascending list of own rows that lies in [lo, hi).
func Boundary(list []uint32, lo, hi int) (from, to int) {
	at := func(v int) int {
		return sort.Search(len(list), func(k int) bool { return int(list[k]) >= v })
	}
	return at(lo), at(hi)
}

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
	// Apart gives every layer memory of its own for the gradients of emitted
	// rows. Without, two layers share it in turn: they must be gone through one
	// after another by all intervals together.
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
		coef:   net.Coefficients(in, out, s.NumOwn(), a),
		layers: make([]*Layer, len(layers)),
	}
	w.coef.Col = r.Scale(w.coef.Col, a)
	w.place()
	for l, layer := range layers {
		if layer.GatherWidth() > 0 && !(o.Skip && l == 0) {
			w.layers[l] = w.newLayer(layer)
		}
	}
	if !o.Forward {
		w.prepareBackward(layers, o)
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
			list = append(list, halo.Shape{Layer: l, Width: at.Width, Backward: at.needed})
		}
	}
	return list
}

// prepareBackward makes what the way back through the layers needs. Edges into
// training vertices, the only ones with a gradient in the last layer, get
// arrays of their own where those replace the arrays of all edges or are less
// than half of them.
func (w *Work) prepareBackward(layers []model.Layer, o Options) {
	last, s := len(layers)-1, w.shard
	back := func(l int) bool { return w.layers[l] != nil && layers[l].GathersBackward() }
	others := slices.ContainsFunc(w.layers[:last], func(l *Layer) bool { return l != nil && l.needed })
	few := 2*s.EdgesInto(graph.SplitTrain) < int64(len(s.In.Cols))
	var all, trained *transposed
	if back(last) && (few || s.Directed && !others) {
		trained = w.placeTransposed(s.TransposeInto(w.arena, w.halo.In, graph.SplitTrain))
	}
	if others || back(last) && trained == nil {
		all = w.placeTransposed(s.Transpose(w.arena, w.halo.In))
	}
	var shared [2]kernels.Mat
	for l, at := range w.layers {
		if at == nil || !at.needed {
			continue
		}
		at.edges = all
		if l == last && trained != nil {
			at.edges = trained
		}
		at.backward = w.backwardRoom(at, &shared[l%2], o.Apart)
	}
}

// backwardRoom is where the gradients of a layer's emitted rows go.
func (w *Work) backwardRoom(at *Layer, shared *kernels.Mat, apart bool) kernels.Mat {
	own := w.shard.NumOwn()
	if apart {
		return w.room(own, at.Width)
	}
	if shared.Cols < at.Width {
		*shared = w.room(own, at.Width)
	}
	return shared.Reshape(own, at.Width)
}

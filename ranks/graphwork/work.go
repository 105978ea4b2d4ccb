package graphwork

import (
	"slices"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Work is a shard prepared for gathering, or one for each layer (NewBlocks).
type Work struct {
	*mesh // of all layers; with blocks, of the last one

	store    *model.Store
	apart    bool        // no gathers share halves
	half     bool        // whether gathers round rows to bfloat16
	ops      kernels.Ops // allocates memory
	arena    *mapped.Arena
	uploaded map[array]any // results of place
	layers   []*Layer      // nil if the layer does not gather
	halves   map[halfKey]kernels.Mat
	slices   *sliceMemory // nil until a layer needs it
	added    kernels.Mat  // of AddGhostGrads, unless gradients are sums
	codes    *Codes       // of columns; nil: they are plain
}

// mesh is a shard and the arrays that gathers along its edges read.
type mesh struct {
	Plan *halo.Plan

	shard *shard.Shard
	halo  *halo.Reduction
	kind  string             // of the layers with these coefficients
	coef  model.Coefficients // of own vertices and the ghosts of Plan
	// others are the meshes with the coefficients of other kinds of layers. They share all other arrays.
	others map[string]*mesh
	deviceGraph
	byRelation *relationEdges // nil until a relational layer needs it
}

// Purposes of arrays.
const (
	Coefficients = "coefficients of edges"
	Reversed     = "reverse edges"
	Trained      = "reverse edges of training vertices"
	EdgeMasks    = "bits of edges into training vertices"
	Scores       = "scores of attention"
	Maxima       = "sources of maxima"
	Halves       = "rows in bfloat16"
	Window       = "slice of rows that gathers read"
	SliceSums    = "sums of slices"
	PackedRows   = "bits of rows without zeros"
	Added        = "gradients of ghosts to add"
)

// Options are the options of New and NewBlocks.
type Options struct {
	// Half rounds rows to bfloat16 before they are gathered. Sums are float32.
	Half bool
	// Asynchronous is for intervals of asynchronous modes. The caller sets Layer.Ghosts.
	Asynchronous bool
	// Provided reports whether the caller sets Layer.Ghosts of a layer, and keeps them until the backward pass.
	// nil: TakeGhosts sets them.
	Provided func(layer int) bool
	// Reduction has the sums that ranks send each other; nil: they send the row of every ghost.
	// Attention and maxima ignore it, because they need each edge's row.
	Reduction *halo.Reduction
	// Alone omits the edges from ghosts. Degrees count only own vertices.
	Alone bool
	// Forward omits everything that only the backward pass needs.
	Forward bool
	// Factor [own] scales the edges into a vertex, because the edges of a sample represent
	// more neighbours. Self loops are then ordinary edges. nil: no scaling.
	Factor []float32
	// OneWay omits everything that only the gradients of ghosts need. Gradients then do not
	// return to other ranks.
	OneWay bool
	// First has, by layer, the number of own vertices for which the layer gathers: the layer
	// gathers for vertices 0..First[l]-1. Layers without a number do not gather. nil: all layers
	// gather for all vertices.
	First map[int]int
	// Linked is the Work whose own vertices are the ghosts: gathers read the rows that it publishes, and
	// no memory is allocated for them. The caller sets Layer.Ghosts. AddGhostGrads requires it. nil: the
	// ghosts are vertices of other ranks.
	Linked *Work
	// Targets restricts the gradient of the logits to the shard's training vertices: the last
	// layer then uses only edges into those, on the forward pass too if the pass needs no
	// other logits.
	Targets bool
	// Codes makes gathers of sums use coded columns; nil: columns are plain.
	Codes *Codes
}

// New prepares the layers of a network with the values in a store. All memory lives as long as
// a.
func New(store *model.Store, s *shard.Shard, o Options, ops kernels.Ops, a *mapped.Arena) *Work {
	w := newWork(store, o, ops, a)
	first, ghosts := o, store.Network.Spec.GhostLayer()
	if ghosts >= 0 { // its layers need rows, not sums
		first.Reduction = nil
	}
	w.mesh = w.newMesh(s, first)
	for l := range w.layers {
		if _, ok := o.First[l]; store.Network.Gathers(l) && (ok || o.First == nil) {
			w.layers[l] = w.newLayer(l, o)
		}
		if l == ghosts && o.Reduction != nil {
			w.mesh = w.newMesh(s, o)
		}
	}
	if last := w.layers[len(w.layers)-1]; last != nil && o.Targets {
		last.choose(s, w.arena)
	}
	if !o.Forward {
		w.prepareBackward(o)
	}
	if o.Linked != nil && !o.Forward && !store.Network.Spec.Adds() {
		w.added = w.newZeros(Added, w.Plan.Ghosts, w.MaxWidth())
	}
	return w
}

// Block has the edges between rows of a mini-batch that a layer gathers, scaled by
// Options.Factor.
type Block struct {
	Shard  *shard.Shard
	Factor []float32
}

// NewBlocks prepares a mini-batch, which has its own edges in each layer. The edges connect
// the first rows of the store. There is one block per layer, which may equal the block of the
// previous layer, and no ghosts. Only layers of the store's section gather.
func NewBlocks(store *model.Store, blocks []Block, o Options, ops kernels.Ops, a *mapped.Arena) *Work {
	w := newWork(store, o, ops, a)
	var back *transposed
	for l, b := range blocks {
		if w.mesh == nil || w.mesh.shard != b.Shard {
			o.Factor = b.Factor
			w.mesh, back = w.newMesh(b.Shard, o), nil
		}
		if !store.Network.Gathers(l) || !store.Section.Has(l) {
			continue
		}
		w.layers[l] = w.newLayer(l, o)
		if w.layers[l].shape.Backward && back == nil {
			back = w.placeTransposed(b.Shard.Transpose(a.For(Reversed), shard.Edges{}))
		}
		w.layers[l].edges = back
	}
	return w
}

func newWork(store *model.Store, o Options, ops kernels.Ops, a *mapped.Arena) *Work {
	return &Work{store: store, half: o.Half, apart: o.Asynchronous || o.First != nil, ops: ops, arena: a, uploaded: map[array]any{},
		halves: map[halfKey]kernels.Mat{}, layers: make([]*Layer, len(store.Network.Layers)), codes: o.Codes}
}

// newMesh prepares a shard.
func (w *Work) newMesh(s *shard.Shard, o Options) *mesh {
	r := o.Reduction
	switch {
	case o.Alone:
		r = halo.Alone(s)
	case r == nil || !w.store.Network.Spec.Adds():
		r = halo.Plain(s)
	}
	m := &mesh{Plan: r.Plan, shard: s, halo: r, others: map[string]*mesh{}}
	w.setCoefficients(m, 0, o)
	w.placeMesh(m)
	return m
}

// layerMesh returns the current mesh with the coefficients of a layer.
func (w *Work) layerMesh(layer int, o Options) *mesh {
	kind, _ := w.store.Network.Spec.LayerCoefficients(layer)
	if kind == w.mesh.kind {
		return w.mesh
	}
	if w.mesh.others[kind] == nil {
		m := *w.mesh
		w.setCoefficients(&m, layer, o)
		w.placeCoefficients(&m)
		w.mesh.others[kind] = &m
	}
	return w.mesh.others[kind]
}

// setCoefficients computes the coefficients of a mesh for a layer.
func (w *Work) setCoefficients(m *mesh, layer int, o Options) {
	kind, compute := w.store.Network.Spec.LayerCoefficients(layer)
	s, degrees := m.shard, Degrees(m.shard)
	if o.Alone {
		degrees.In, degrees.Out = s.OwnDegrees()
		degrees.InStrength, degrees.OutStrength = s.OwnStrengths()
	}
	m.kind, m.coef = kind, compute(degrees, s.NumOwn(), w.arena.For(Coefficients))
	if o.Factor != nil {
		m.coef.SelfLoops = false
		if m.coef.Row == nil {
			m.coef.Row = slices.Repeat([]float32{1}, s.NumOwn())
		}
		for v, f := range o.Factor {
			m.coef.Row[v] *= f
		}
	}
	m.coef.Col = m.halo.Scale(m.coef.Col, w.arena.For(Coefficients))
}

// Degrees returns the degrees of a shard's vertices in the whole graph.
func Degrees(s *shard.Shard) model.Degrees {
	return model.Degrees{In: s.InDegree, Out: s.OutDegree, InStrength: s.InStrength, OutStrength: s.OutStrength}
}

// SumPieces returns the bounds of pieces of the sums for other ranks, with about the given
// number of edges each.
func (w *Work) SumPieces(edges int) []int {
	bounds, next := []int{0}, int64(edges)
	for k, end := range w.halo.Sums.Offsets[1:] {
		if end >= next || k == w.Plan.Sums-1 {
			bounds, next = append(bounds, k+1), end+int64(edges)
		}
	}
	return bounds
}

// Begin begins a pass of all layers, before the first Publish.
func (w *Work) Begin(p model.Pass, weights kernels.Mat) {
	for _, l := range w.layers {
		if l != nil {
			l.Begin(p, weights)
		}
	}
}

// Layer returns layer l, nil if it does not gather.
func (w *Work) Layer(l int) *Layer { return w.layers[l] }

// MaxWidth returns the width of the widest rows.
func (w *Work) MaxWidth() int {
	width := 0
	for _, l := range w.layers {
		if l != nil {
			width = max(width, l.Width)
		}
	}
	return width
}

// Shapes returns the layers that gather.
func (w *Work) Shapes() []halo.Shape {
	var list []halo.Shape
	for _, at := range w.layers {
		if at != nil {
			list = append(list, at.shape)
		}
	}
	return list
}

// Reverse reports which edges by source the backward pass needs. back reports for each layer whether
// gradients follow the edges of the layer. all is set if the arrays of all edges are needed.
// trainingOnly is set if the last layer has its own arrays with only the edges into training
// vertices, because only their logits have a gradient. These arrays replace the arrays of all edges,
// or have less than half as many edges.
func Reverse(back []bool, directed bool, trained, edges int64) (all, trainingOnly bool) {
	last := len(back) - 1
	others := slices.Contains(back[:last], true)
	trainingOnly = back[last] && (2*trained < edges || directed && !others)
	return others || back[last] && !trainingOnly, trainingOnly
}

// prepareBackward makes the reverse edges of the layers. Layers with the same edges share them.
func (w *Work) prepareBackward(o Options) {
	s, back := w.shard, make([]bool, len(w.layers))
	plain := w.store.Network.Spec.Design.EdgeDim == 0
	if plain {
		s = s.WithoutEdgeFeatures()
	}
	for l, at := range w.layers {
		back[l] = at != nil && at.shape.Backward && !w.store.Network.Gathering(l).Relational
	}
	_, trainingOnly := Reverse(back, s.Directed, s.EdgesInto(graph.SplitTrain), int64(len(s.In.Cols)))
	all := map[*halo.Reduction]*transposed{}
	for l, at := range w.layers {
		if !back[l] {
			continue
		}
		ghosts := at.mesh.halo.In
		if o.OneWay {
			ghosts = shard.Edges{}
		}
		if plain {
			ghosts.Featured = false
		}
		if l == len(back)-1 && trainingOnly {
			at.edges, at.trainingOnly = w.transpose(Trained,
				func(a *mapped.Arena) *shard.Transposed { return s.TransposeInto(a, ghosts, graph.SplitTrain) }), true
			continue
		}
		if n, ok := o.First[l]; ok && n < s.NumOwn() {
			at.edges = w.transpose(Reversed, func(a *mapped.Arena) *shard.Transposed { return s.TransposeFirst(a, ghosts, n) })
			continue
		}
		if all[at.mesh.halo] == nil {
			all[at.mesh.halo] = w.transpose(Reversed, func(a *mapped.Arena) *shard.Transposed { return s.Transpose(a, ghosts) })
		}
		at.edges = all[at.mesh.halo]
	}
	if last := len(back) - 1; back[last] {
		w.maskEdges(w.layers[last])
	}
}

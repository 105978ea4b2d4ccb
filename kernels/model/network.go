package model

import (
	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/kernels"
)

// Pass is one forward pass through a network and the way back.
type Pass struct {
	Epoch int
	Train bool // dropout is drawn
}

// Mask is d as pass p draws it: nil where d is nil or nothing is dropped.
func (p Pass) Mask(d *kernels.Dropout) *kernels.Dropout {
	if !p.Train || d == nil {
		return nil
	}
	d.Epoch = p.Epoch
	return d
}

// Layer is one layer on the own vertices of a rank, n of them. The methods are
// called in the order Emit, Apply, and on the way back ApplyGrad, EmitGrad.
//
// Intervals of the same vertices have layers of their own, which run side by
// side, and what one returns others gather from: its rows while it is in Apply
// or further on, its gradients while it is in EmitGrad or further back. So what a
// method returns must stand until the same method of the same layer is called
// again: no other method of the layer may write to it. That a method returns an
// argument which it may overwrite, below, changes nothing for it.
//
// Arguments are the caller's, and stand as long as their method says.
type Layer interface {
	// GatherWidth is the width of the rows that neighbours gather, 0 for a
	// layer without the graph.
	GatherWidth() int
	// Emit turns the layer's input h [n x in] (none for the first layer, which
	// knows its features) into the rows [n x GatherWidth] to be gathered. It may
	// return h and must not write to it; h stands until EmitGrad has returned.
	Emit(h kernels.Mat, p Pass) kernels.Mat
	// Apply turns what was gathered [n x GatherWidth] into the layer's output
	// [n x out]. It may overwrite gathered, but for an Attended layer, and return
	// it; it stands until the layer gathers again. It is not read in a first layer
	// that keeps ÂX.
	Apply(gathered kernels.Mat, p Pass) kernels.Mat
	// GathersBackward tells whether the gradient of what was gathered is needed. It
	// is not in a first layer that gathers its constant input.
	GathersBackward() bool
	// ApplyGrad turns the output's gradient [n x out], which it may overwrite and
	// return, into that of what was gathered, none for constant rows, and writes
	// those weight gradients that it knows. grad stands until EmitGrad of all
	// intervals has returned.
	ApplyGrad(grad kernels.Mat, p Pass) kernels.Mat
	// EmitGrad turns the gradient of the emitted rows, which it may overwrite and
	// return, into that of the input, none in the first layer, and writes the
	// remaining weight gradients. grad stands until EmitGrad of the layer before
	// has returned in all intervals.
	EmitGrad(grad kernels.Mat, p Pass) kernels.Mat
}

// Network is a spec bound to the vertices of one rank, with room for its
// activations.
type Network struct {
	Spec   Spec
	Layers []Layer
	input  *input
	cached *cachedInput // nil where ÂX is not kept
	// Weights and Grad are flat vectors [weights x 1] in the layout of Spec.Params.
	Weights, Grad kernels.Mat
	layerGrads    []kernels.Mat
}

// Input is what a network needs of a rank's partition.
type Input struct {
	Features Features               // of the own vertices
	IDs      kernels.Vector[uint32] // dataset ids of the own vertices: the counters of dropout
	LocalIDs kernels.Vector[uint32] // and of all local vertices, ghosts too: those of attention
}

// Features are graph.Features where an Ops computes.
type Features struct {
	Rows, Dim int
	Dense     kernels.Mat     // none where they are sparse
	Sparse    *kernels.Sparse // nil where they are dense
}

// Place puts what a network needs of a partition where o computes. What it has to
// copy for that lives as long as a.
func Place(o kernels.Ops, a *mapped.Arena, f graph.Features, ids, localIDs []uint32) Input {
	in := Input{Features: Features{Rows: f.Rows, Dim: f.Dim}, IDs: kernels.Place(o, a, ids), LocalIDs: kernels.Place(o, a, localIDs)}
	if f.Sparse != nil {
		s := kernels.PlaceSparse(o, a, *f.Sparse)
		in.Features.Sparse = &s
	} else {
		in.Features.Dense = kernels.PlaceMat(o, a, f.Rows, f.Dim, f.Dense)
	}
	return in
}

// New binds a spec to the vertices of one rank. All memory comes from a.
func New(s Spec, in Input, ops kernels.Ops, a *mapped.Arena) *Network {
	rows := &rooms{ops: ops, arena: a, rows: in.Features.Rows}
	return bind(s, in, ops, kernels.NewMat(ops, a, s.NumWeights(), 1), rows.of(0, rows.rows))
}

// Divide binds a spec to consecutive intervals of the vertices of one rank:
// network k to those from bounds[k] up to bounds[k+1], on ops[k]. Their
// matrices lie one behind another: of what a method of network 0's layers returns
// Whole are the rows of all. With one vector of weights all networks share it,
// with none each has its own. All memory comes from a.
func Divide(s Spec, in Input, bounds []int, ops []kernels.Ops, weights kernels.Mat, a *mapped.Arena) []*Network {
	rows := &rooms{ops: ops[0], arena: a, rows: in.Features.Rows}
	var list []*Network
	for k, o := range ops {
		part, own := in.rows(bounds[k], bounds[k+1]), weights
		if own.IsNil() {
			own = kernels.NewMat(o, a, s.NumWeights(), 1)
		}
		list = append(list, bind(s, part, o, own, rows.of(bounds[k], bounds[k+1])))
	}
	return list
}

// bind makes a network of what it needs.
func bind(s Spec, in Input, ops kernels.Ops, weights kernels.Mat, room *room) *Network {
	n := &Network{Spec: s, Weights: weights, Grad: kernels.NewMat(ops, room.arena, s.NumWeights(), 1)}
	b := newBuilder(n, in, ops, room)
	n.input = b.in
	if s.CacheInput {
		n.cached = new(cachedInput)
	}
	for l, r := range s.LayerRanges() {
		n.Layers = append(n.Layers, s.kind().Layer(b, l))
		n.layerGrads = append(n.layerGrads, n.Grad.Part(r.Lo, r.Hi))
	}
	return n
}

// rows is the part of in that belongs to the own vertices [lo, hi).
func (in Input) rows(lo, hi int) Input {
	f := in.Features
	cut := Features{Rows: hi - lo, Dim: f.Dim}
	if f.Sparse != nil {
		part := f.Sparse.Part(lo, hi)
		cut.Sparse = &part
	} else {
		cut.Dense = f.Dense.Part(lo, hi)
	}
	return Input{Features: cut, IDs: in.IDs.Part(lo, hi), LocalIDs: in.LocalIDs}
}

// LayerGrad is the part [· x 1] of Grad that belongs to layer l.
func (n *Network) LayerGrad(l int) kernels.Mat { return n.layerGrads[l] }

// Coefficients are the weights of Â's entries: Â[v,u] = Row[v]·Col[u] for an
// edge u→v and, with SelfLoops, for v = u. nil is all ones.
type Coefficients struct {
	Row []float32 // [own]
	Col []float32 // [own + ghosts]

	SelfLoops bool
}

// Coefficients are those of the network's kind, from the degrees of own
// vertices and then ghosts, without self loops.
func (s Spec) Coefficients(inDegree, outDegree []uint32, own int, a *mapped.Arena) Coefficients {
	return s.kind().Coefficients(inDegree, outDegree, own, a)
}

// InputRows is X as a dense matrix [n x in] without dropout; where X is sparse
// its memory comes from a.
func (n *Network) InputRows(a *mapped.Arena) kernels.Mat {
	x := *n.input
	x.arena, x.scratch, x.drawn = a, kernels.Mat{}, false
	return x.rows(Pass{})
}

// InputColumns sets dst [n x w] to columns [from, from+w) of X, without dropout.
func (n *Network) InputColumns(dst kernels.Mat, from int) {
	x, f := n.input, n.input.Features
	if f.Sparse != nil {
		x.ops.SpreadColumns(dst, from, *f.Sparse)
		return
	}
	x.ops.CopyColumns(dst, f.Dense, from)
}

// CacheInput makes room for ÂX, in bfloat16 if half, which the first layer then
// applies to instead of what is gathered. Spec.CacheInput must be set.
func (n *Network) CacheInput(half bool, a *mapped.Arena) {
	f := n.input.Features
	if half {
		n.cached.rows = kernels.NewHalf(n.input.ops, a, f.Rows, f.Dim, 0)
	} else {
		n.cached.rows = kernels.NewMat(n.input.ops, a, f.Rows, f.Dim)
	}
}

// PutCachedInput sets columns [from, from+w) of what is kept to gathered [n x w].
func (n *Network) PutCachedInput(from int, gathered kernels.Mat) {
	n.input.ops.PutColumns(n.cached.rows, from, gathered)
}

// InputCached tells whether the first layer needs no gathering.
func (n *Network) InputCached() bool { return n.cached != nil }

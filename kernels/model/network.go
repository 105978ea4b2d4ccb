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
	// Emit turns the layer's input h [n x in] (nil for the first layer, which
	// knows its features) into the rows [n x GatherWidth] to be gathered. It may
	// return h and must not write to it; h stands until EmitGrad has returned.
	Emit(h []float32, p Pass) []float32
	// Apply turns what was gathered [n x GatherWidth] into the layer's output
	// [n x out]. It may overwrite gathered, but for an Attended layer, and return
	// it; it stands until the layer gathers again. It is not read in a first layer
	// that keeps ÂX.
	Apply(gathered []float32, p Pass) []float32
	// GathersBackward tells whether the gradient of what was gathered is needed. It
	// is not in a first layer that gathers its constant input.
	GathersBackward() bool
	// ApplyGrad turns the output's gradient [n x out], which it may overwrite and
	// return, into that of what was gathered, nil for constant rows, and writes
	// those weight gradients that it knows. grad stands until EmitGrad of all
	// intervals has returned.
	ApplyGrad(grad []float32, p Pass) []float32
	// EmitGrad turns the gradient of the emitted rows, which it may overwrite and
	// return, into that of the input, nil in the first layer, and writes the
	// remaining weight gradients. grad stands until EmitGrad of the layer before
	// has returned in all intervals.
	EmitGrad(grad []float32, p Pass) []float32
}

// Network is a spec bound to the vertices of one rank, with room for its
// activations.
type Network struct {
	Spec   Spec
	Layers []Layer
	input  *input
	cached *cachedInput // nil where ÂX is not kept
	// Weights and Grad are flat vectors in the layout of Spec.Params.
	Weights, Grad []float32
	layerGrads    [][]float32
}

// Input is what a network needs of a rank's partition.
type Input struct {
	Features graph.Features // of the own vertices
	IDs      []uint32       // dataset ids of the own vertices: the counters of dropout
	LocalIDs []uint32       // and of all local vertices, ghosts too: those of attention
}

// New binds a spec to the vertices of one rank. All memory comes from a.
func New(s Spec, in Input, team *kernels.Team, a *mapped.Arena) *Network {
	rows := &rooms{arena: a, rows: in.Features.Rows}
	return bind(s, in, team, mapped.Make[float32](a, s.NumWeights()), rows.of(0, rows.rows))
}

// Divide binds a spec to consecutive intervals of the vertices of one rank:
// network k to those from bounds[k] up to bounds[k+1], on teams[k]. Their
// matrices lie one behind another: what a method of network 0's layers returns
// can be resliced to the rows of all. With one vector of weights all networks
// share it, else each has its own. All memory comes from a.
func Divide(s Spec, in Input, bounds []int, teams []*kernels.Team, weights []float32, a *mapped.Arena) []*Network {
	rows := &rooms{arena: a, rows: in.Features.Rows}
	var list []*Network
	for k, team := range teams {
		part, own := in.rows(bounds[k], bounds[k+1]), weights
		if own == nil {
			own = mapped.Make[float32](a, s.NumWeights())
		}
		list = append(list, bind(s, part, team, own, rows.of(bounds[k], bounds[k+1])))
	}
	return list
}

// bind makes a network of what it needs.
func bind(s Spec, in Input, team *kernels.Team, weights []float32, room *room) *Network {
	n := &Network{Spec: s, Weights: weights, Grad: mapped.Make[float32](room.arena, s.NumWeights())}
	b := newBuilder(n, in, team, room)
	n.input = b.in
	if s.CacheInput {
		n.cached = &cachedInput{team: team, rows: in.Features.Rows, cols: in.Features.Dim}
	}
	for l, r := range s.LayerRanges() {
		n.Layers = append(n.Layers, s.kind().Layer(b, l))
		n.layerGrads = append(n.layerGrads, n.Grad[r.Lo:r.Hi])
	}
	return n
}

// rows is the part of in that belongs to the own vertices [lo, hi).
func (in Input) rows(lo, hi int) Input {
	f := in.Features
	cut := graph.Features{Rows: hi - lo, Dim: f.Dim}
	if f.Sparse != nil {
		cut.Sparse = &graph.SparseRows{Offsets: f.Sparse.Offsets[lo : hi+1], Cols: f.Sparse.Cols, Vals: f.Sparse.Vals}
	} else {
		cut.Dense = f.Dense[lo*f.Dim : hi*f.Dim : f.Rows*f.Dim]
	}
	return Input{Features: cut, IDs: in.IDs[lo:hi], LocalIDs: in.LocalIDs}
}

// LayerGrad is the part of Grad that belongs to layer l.
func (n *Network) LayerGrad(l int) []float32 { return n.layerGrads[l] }

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
func (n *Network) InputRows(a *mapped.Arena) []float32 {
	x := *n.input
	x.arena, x.scratch, x.drawn = a, nil, false
	return x.rows(Pass{})
}

// InputColumns sets dst [n x to-from] to columns [from, to) of X, without
// dropout.
func (n *Network) InputColumns(dst []float32, from, to int) {
	x, f := n.input, n.input.Features
	if f.Sparse != nil {
		kernels.SpreadColumns(x.team, dst, from, to, *f.Sparse)
		return
	}
	kernels.CopyColumns(x.team, dst, f.Rows, from, to, f.Dim, f.Dense)
}

// CacheInput makes room for ÂX, in bfloat16 if half, which the first layer then
// applies to instead of what is gathered. Spec.CacheInput must be set.
func (n *Network) CacheInput(half bool, a *mapped.Arena) {
	k := n.cached
	if half {
		k.half = mapped.Make[kernels.BF16](a, k.rows*k.cols)
	} else {
		k.full = mapped.Make[float32](a, k.rows*k.cols)
	}
}

// PutCachedInput sets columns [from, to) of what is kept to gathered [n x to-from].
func (n *Network) PutCachedInput(from, to int, gathered []float32) { n.cached.put(from, to, gathered) }

// InputCached tells whether the first layer needs no gathering.
func (n *Network) InputCached() bool { return n.cached != nil }

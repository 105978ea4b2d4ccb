package graphwork

import (
	"unsafe"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// deviceGraph has the arrays of a shard that gathers read, in the memory of the rank's Ops. It
// shares one copy of equal arrays.
type deviceGraph struct {
	own, ghost   kernels.Edges           // into own vertices, from own vertices and from ghosts
	sums, sumsOf csr                     // the sums for other ranks, and the transpose
	row, col     kernels.Vector[float32] // coefficients; none: all are 1
}

// array identifies an array of the host.
type array struct {
	at unsafe.Pointer
	n  int
}

// csr is a sparse matrix whose values are edge weights, if there are any.
type csr struct {
	offsets           kernels.Vector[int64]
	cols              kernels.Vector[uint32]
	weights, features kernels.Vector[float32]
	at                kernels.Vector[int64]
	coded             *kernels.CodedColumns // instead of cols; nil: cols is used
	mask              kernels.EdgeMask      // bits of a column mask; nil: none
}

// edges returns the rows [lo, hi) as edges.
func (c *csr) edges(lo, hi int) kernels.Edges {
	if lo == hi {
		return kernels.Edges{}
	}
	return kernels.Edges{Begin: c.offsets.Part(lo, hi), End: c.offsets.Part(lo+1, hi+1), Cols: c.cols, Weights: c.weights,
		Features: c.features, At: c.at, Coded: c.coded, CodedFirst: lo, EdgeMask: c.mask}
}

// transposed is a shard.Transposed in the memory of the rank's Ops.
type transposed struct {
	own   kernels.Edges
	ghost csr
}

// placeMesh copies a mesh's arrays to the memory of the Ops.
func (w *Work) placeMesh(m *mesh) {
	m.own, m.ghost = w.placeEdges(m.shard, m.shard.OwnEdges()), w.placeEdges(m.shard, m.halo.In)
	m.sums, m.sumsOf = w.placeRows(m.halo.Sums, nil), w.placeRows(m.halo.SumsOf, nil)
	w.placeCoefficients(m)
}

func (w *Work) placeCoefficients(m *mesh) {
	m.row, m.col = place(w, m.coef.Row), place(w, m.coef.Col)
}

func (w *Work) placeEdges(s *shard.Shard, e shard.Edges) kernels.Edges {
	m := kernels.Edges{Begin: place(w, e.Begin), End: place(w, e.End), Cols: place(w, e.Cols),
		Weights: w.placeWeights(e.Weights), Base: uint32(e.Base)}
	m.Features = w.features(s, m.Weights)
	w.codeEdges(s, e, &m)
	return m
}

func (w *Work) placeRows(c graph.CSR, weights []float32) csr {
	return csr{offsets: place(w, c.Offsets), cols: place(w, c.Cols), weights: w.placeWeights(weights)}
}

// placeWeights places edge weights, if the network uses them.
func (w *Work) placeWeights(weights []float32) kernels.Vector[float32] {
	if !w.store.Network.Spec.Weighs() {
		return kernels.Vector[float32]{}
	}
	return place(w, weights)
}

func (w *Work) placeTransposed(t *shard.Transposed) *transposed {
	to := &transposed{
		own: kernels.Edges{Begin: place(w, t.OwnBegin), End: place(w, t.OwnEnd), Cols: place(w, t.OwnCols),
			Weights: w.placeWeights(t.OwnWeights)},
		ghost: w.placeRows(t.Ghost, t.GhostWeights),
	}
	to.own.Features, to.ghost.features = w.features(w.shard, to.own.Weights), w.features(w.shard, to.ghost.weights)
	if w.store.Network.Spec.Design.EdgeDim > 0 {
		to.own.At, to.ghost.at = place(w, t.OwnAt), place(w, t.GhostAt)
	}
	return to
}

// features returns the features of edges with these weights: the shard's features, the weights,
// or none, as the network requires.
func (w *Work) features(s *shard.Shard, weights kernels.Vector[float32]) kernels.Vector[float32] {
	switch d := w.store.Network.Spec.Design; {
	case d.EdgeDim > 0:
		return place(w, s.EdgeFeatures)
	case d.EdgeFeatures:
		return weights
	}
	return kernels.Vector[float32]{}
}

// place returns x in the memory of the Ops. It copies each array once.
func place[T mapped.Elem](w *Work, x []T) kernels.Vector[T] {
	if !w.ops.Remote() || len(x) == 0 {
		return kernels.HostVector(x)
	}
	name := array{unsafe.Pointer(unsafe.SliceData(x)), len(x)}
	if v, ok := w.uploaded[name].(kernels.Vector[T]); ok {
		return v
	}
	v := kernels.Place(w.ops, w.arena, x)
	w.uploaded[name] = v
	return v
}

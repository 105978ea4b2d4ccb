package graph

import (
	"math"
	"slices"
)

func (l *loader) edges() {
	p := l.open(csrFile, csrKind)
	l.In = p.csr("offsets", "cols")
	if l.Out = l.In; l.Meta.Directed {
		l.Out = p.csr("out_offsets", "out_cols")
	}
}

func (l *loader) weights() {
	if !l.Meta.Weighted {
		return
	}
	p := l.open(weightFile, weightKind)
	l.Weights = array[float32](p, "weights", l.Meta.Edges)
	if i := BadWeight(l.Weights); i >= 0 {
		p.bad("edge %d has the weight %v", i, l.Weights[i])
	}
}

func (l *loader) edgeFeatures() {
	if l.Meta.EdgeDim == 0 {
		return
	}
	p, dim := l.open(edgeFile, edgeKind), l.Meta.EdgeDim
	l.EdgeFeatures = array[float32](p, "features", l.Meta.Edges*int64(dim))
	if i := slices.IndexFunc(l.EdgeFeatures, NotFinite); i >= 0 {
		p.bad("feature %d of edge %d is %v", i%dim, i/dim, l.EdgeFeatures[i])
	}
}

// BadWeight returns the index of the first weight that is not finite or not above 0, or -1 if
// all weights are valid.
func BadWeight(weights []float32) int {
	return slices.IndexFunc(weights, func(w float32) bool { return !goodWeight(w) })
}

func goodWeight(w float32) bool { return w > 0 && w <= math.MaxFloat32 }

func (p part) csr(offsets, cols string) CSR {
	c := CSR{
		Offsets: array[int64](p, offsets, p.Meta.Vertices+1),
		Cols:    array[uint32](p, cols, p.Meta.Edges),
	}
	p.ascend(offsets, c.Offsets, p.Meta.Edges)
	for i, u := range c.Cols {
		if int64(u) >= p.Meta.Vertices {
			p.bad("edge %d names vertex %d of %d", i, u, p.Meta.Vertices)
			break
		}
	}
	return c
}

package graph

import (
	"fmt"
	"math"
)

// JoinFeatures sets the feature columns of each kind, and returns the features of all vertices: kinds[k] are the
// features of kind k, or none if their Dim is 0. A kind with features gets one more column, which is 1: its
// weights are the bias of the kind. A kind without features gets one-hot ids, a column for each vertex, if it has
// at most maxIDs vertices, and else a single column, which is 1. With normalize, the features of a vertex are divided
// by the sum of their absolute values; the additional column is not.
func (r *Relations) JoinFeatures(kinds []Features, maxIDs int64, normalize bool) Features {
	columns := 0
	for k := range r.Kinds {
		kind := &r.Kinds[k]
		kind.FirstFeature, kind.Features = columns, kinds[k].Dim+1
		if kinds[k].Dim == 0 && kind.Vertices <= maxIDs {
			kind.Features = int(kind.Vertices)
		}
		columns += kind.Features
	}
	joined := Features{Rows: int(r.First(len(r.Kinds))), Dim: columns}
	of := append([]VertexKind(nil), r.Kinds...)
	joined.NonZeros = func(v int, yield func(col uint32, x float32)) {
		k := 0
		for ; v >= int(of[k].Vertices); k++ {
			v -= int(of[k].Vertices)
		}
		first, last := uint32(of[k].FirstFeature), uint32(of[k].FirstFeature+of[k].Features-1)
		if kinds[k].Dim == 0 {
			if of[k].Features > 1 {
				last = first + uint32(v)
			}
		} else {
			sum := 0.0
			if normalize {
				kinds[k].row(v, func(_ uint32, x float32) { sum += math.Abs(float64(x)) })
			}
			if sum == 0 {
				sum = 1
			}
			kinds[k].row(v, func(col uint32, x float32) { yield(first+col, float32(float64(x)/sum)) })
		}
		yield(last, 1)
	}
	return joined
}

// FeatureText describes the features that JoinFeatures gives to a kind, with dim features of its own.
func (k *VertexKind) FeatureText(dim int) string {
	switch {
	case dim > 0:
		return fmt.Sprintf("%d features and a constant column", dim)
	case k.Features > 1:
		return "one-hot ids"
	}
	return "a constant column"
}

// LocalIDs returns the ids 0, 1, … of the vertices of each kind.
func (r *Relations) LocalIDs() *IDs {
	ids := &IDs{Ints: make([]int64, 0, r.First(len(r.Kinds)))}
	for _, k := range r.Kinds {
		for i := range k.Vertices {
			ids.Ints = append(ids.Ints, i)
		}
	}
	return ids
}

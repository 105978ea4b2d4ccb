package graph

// EdgePairs is an EdgeSource in memory: src0, dst0, src1, dst1, …
type EdgePairs []uint32

// Each implements EdgeSource.
func (p EdgePairs) Each(yield func(src, dst uint32) error) error {
	for i := 0; i+1 < len(p); i += 2 {
		if err := yield(p[i], p[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// EachWeight is WeightedSource.EachWeight. It implements WeightedSource.
type EachWeight func(yield func(src, dst uint32, weight float32) error) error

// Each implements EdgeSource.
func (e EachWeight) Each(yield func(src, dst uint32) error) error {
	return e(func(src, dst uint32, _ float32) error { return yield(src, dst) })
}

// EachWeight implements WeightedSource.
func (e EachWeight) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	return e(yield)
}

// EachRelation is RelatedSource.EachRelation. It implements RelatedSource.
type EachRelation func(yield func(src, dst uint32, relation uint16) error) error

// Each implements EdgeSource.
func (e EachRelation) Each(yield func(src, dst uint32) error) error {
	return e(func(src, dst uint32, _ uint16) error { return yield(src, dst) })
}

// EachRelation implements RelatedSource.
func (e EachRelation) EachRelation(yield func(src, dst uint32, relation uint16) error) error {
	return e(yield)
}

// EachFeatures is FeaturedSource.EachFeatures.
type EachFeatures = func(yield func(src, dst uint32, weight float32, features []float32) error) error

// WithFeatures returns a source that yields edges with dim features per edge. each must yield
// the edges in the order of edges. The result is a WeightedSource if edges is one.
func WithFeatures(edges EdgeSource, dim int, each EachFeatures) EdgeSource {
	f := featured{edges, dim, each}
	if w, ok := edges.(WeightedSource); ok {
		return weightedFeatured{f, w}
	}
	return f
}

type featured struct {
	EdgeSource
	dim  int
	each EachFeatures
}

// EdgeDim implements FeaturedSource.
func (f featured) EdgeDim() int { return f.dim }

// EachFeatures implements FeaturedSource.
func (f featured) EachFeatures(yield func(src, dst uint32, weight float32, features []float32) error) error {
	return f.each(yield)
}

// weightedFeatured is a source of edges with weights and features.
type weightedFeatured struct {
	featured
	weights WeightedSource
}

// EachWeight implements WeightedSource.
func (w weightedFeatured) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	return w.weights.EachWeight(yield)
}

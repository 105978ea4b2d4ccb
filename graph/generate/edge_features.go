package generate

import "math"

// edgeFeatures samples edge features: a centroid of normal numbers plus noise, scaled to
// variance 1. Edges within a community have one centroid, edges between communities another.
// The features of u→v and v→u are equal.
type edgeFeatures struct {
	dim       int
	edges     *edges
	centroids [2][]float32 // between communities, and within a community; scaled
	spread    float32      // standard deviation of the noise
	around    stream
}

func newEdgeFeatures(o Options, e *edges) *edgeFeatures {
	sigma := o.Noise * math.Sqrt(float64(o.EdgeFeatures)/2)
	total := math.Sqrt(1 + sigma*sigma)
	f := &edgeFeatures{dim: o.EdgeFeatures, edges: e, spread: float32(sigma / total), around: newStream(o.Seed, purposeEdgeFeatures)}
	middle := newStream(o.Seed, purposeEdgeCentroids)
	for i := range f.centroids {
		f.centroids[i] = make([]float32, f.dim)
		for j := range f.centroids[i] {
			f.centroids[i][j] = float32(1/total) * normal(middle.at(uint64(i*f.dim+j)))
		}
	}
	return f
}

// each implements graph.EachFeatures.
func (f *edgeFeatures) each(yield func(src, dst uint32, weight float32, features []float32) error) error {
	row := make([]float32, f.dim)
	return f.edges.Each(func(u, v uint32) error {
		f.draw(row, u, v)
		return yield(u, v, 1, row)
	})
}

// draw sets row to the features of the edge between two vertices.
func (f *edgeFeatures) draw(row []float32, u, v uint32) {
	within := 0
	if f.edges.block(uint64(u)) == f.edges.block(uint64(v)) {
		within = 1
	}
	first := mix(uint64(min(u, v))<<32 | uint64(max(u, v)))
	for j, centre := range f.centroids[within] {
		// The conversion prevents a fused multiply-add, as in features.
		row[j] = centre + float32(f.spread*normal(f.around.at(first+uint64(j))))
	}
}

package generate

import (
	"math"
	"runtime"

	"siafu/graph"
	"siafu/internal/elementary"
	"siafu/internal/workers"
)

// block is the number of vertices that a worker takes at a time.
const block = 1 << 8

// mixture samples rows of features: a centroid of normal numbers plus noise, scaled to variance 1.
//
// The distance between two centroids is √(2·dim), so the unit of noise is √(dim/2).
type mixture struct {
	dim       int
	centroids []float32 // [number x dim], scaled
	spread    float32   // standard deviation of the noise
	around    stream
}

// newMixture returns a mixture with the given number of centroids, which are numbers of middle.
func newMixture(noise float64, dim, number int, middle, around stream) *mixture {
	sigma := noise * math.Sqrt(float64(dim)/2)
	total := math.Sqrt(1 + float64(sigma*sigma))
	m := &mixture{dim: dim, centroids: make([]float32, number*dim), spread: float32(sigma / total), around: around}
	for i := range m.centroids {
		m.centroids[i] = float32(1/total) * normal(middle.at(uint64(i)))
	}
	return m
}

// draw sets row to a centroid plus the noise numbers from first on.
func (m *mixture) draw(row []float32, centroid int, first uint64) {
	for j, centre := range m.centroids[centroid*m.dim:][:m.dim] {
		// The conversion prevents a fused multiply-add, which only some processors have.
		row[j] = centre + float32(m.spread*normal(m.around.at(first+uint64(j))))
	}
}

// vertexFeatures returns a function that fills x with the features of vertices first, first+1, …
// Each community has a centroid.
func vertexFeatures(o Options, e *edges) func(x []float32, first int) {
	m := newMixture(o.Noise, o.Features, o.blocks(), newStream(o.Seed, purposeCentroids), newStream(o.Seed, purposeNoise))
	return func(x []float32, first int) {
		workers.Blocks(runtime.GOMAXPROCS(0), len(x)/m.dim, block, func(_, from, to int) {
			for r := from; r < to; r++ {
				v := first + r
				m.draw(x[r*m.dim:(r+1)*m.dim], int(e.block(uint64(v))), uint64(v*m.dim))
			}
		})
	}
}

// edgeFeatures samples the features of edges. Edges between communities have the centroid 0,
// edges within a community the centroid 1. The features of u→v and v→u are equal.
func edgeFeatures(o Options, e *edges) graph.EachFeatures {
	m := newMixture(o.Noise, o.EdgeFeatures, 2, newStream(o.Seed, purposeEdgeCentroids), newStream(o.Seed, purposeEdgeFeatures))
	return func(yield func(src, dst uint32, weight float32, features []float32) error) error {
		row := make([]float32, m.dim)
		return e.Each(func(u, v uint32) error {
			within := 0
			if e.block(uint64(u)) == e.block(uint64(v)) {
				within = 1
			}
			m.draw(row, within, elementary.Mix(uint64(min(u, v))<<32|uint64(max(u, v))))
			return yield(u, v, 1, row)
		})
	}
}

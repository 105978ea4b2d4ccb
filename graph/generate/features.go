package generate

import (
	"math"
	"runtime"

	"siafu/internal/splitmix"
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
	total := math.Sqrt(1 + sigma*sigma)
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

// features samples the features of vertices. Each community has a centroid.
type features struct {
	*mixture
	edges *edges // gives the community of a vertex
}

func newFeatures(o Options, e *edges) features {
	return features{newMixture(o.Noise, o.Features, o.blocks(), newStream(o.Seed, purposeCentroids), newStream(o.Seed, purposeNoise)), e}
}

// draw fills x with the rows of vertices first, first+1, …
func (f features) draw(x []float32, first int) {
	workers.Blocks(runtime.GOMAXPROCS(0), len(x)/f.dim, block, func(_, from, to int) {
		for r := from; r < to; r++ {
			v := first + r
			f.mixture.draw(x[r*f.dim:(r+1)*f.dim], int(f.edges.block(uint64(v))), uint64(v*f.dim))
		}
	})
}

// edgeFeatures samples the features of edges. Edges between communities have the centroid 0,
// edges within a community the centroid 1. The features of u→v and v→u are equal.
type edgeFeatures struct{ features }

func newEdgeFeatures(o Options, e *edges) edgeFeatures {
	m := newMixture(o.Noise, o.EdgeFeatures, 2, newStream(o.Seed, purposeEdgeCentroids), newStream(o.Seed, purposeEdgeFeatures))
	return edgeFeatures{features{m, e}}
}

// each implements graph.EachFeatures.
func (f edgeFeatures) each(yield func(src, dst uint32, weight float32, features []float32) error) error {
	row := make([]float32, f.dim)
	return f.edges.Each(func(u, v uint32) error {
		f.draw(row, u, v)
		return yield(u, v, 1, row)
	})
}

// draw sets row to the features of the edge between two vertices.
func (f edgeFeatures) draw(row []float32, u, v uint32) {
	within := 0
	if f.edges.block(uint64(u)) == f.edges.block(uint64(v)) {
		within = 1
	}
	f.mixture.draw(row, within, splitmix.Mix(uint64(min(u, v))<<32|uint64(max(u, v))))
}

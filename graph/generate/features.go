package generate

import (
	"math"
	"runtime"

	"siafu/internal/workers"
)

// block is the number of vertices that a worker takes at a time.
const block = 1 << 8

// features samples feature rows: the community's centroid of normal numbers, plus noise, scaled
// to variance 1.
//
// The distance between two centroids is √(2·dim), so the unit of noise is √(dim/2).
type features struct {
	dim       int
	edges     *edges    // gives the community of a vertex
	centroids []float32 // [blocks x dim], scaled
	spread    float32   // standard deviation of the noise
	around    stream
}

func newFeatures(o Options, e *edges) *features {
	sigma := o.Noise * math.Sqrt(float64(o.Features)/2)
	total := math.Sqrt(1 + sigma*sigma)
	signal := float32(1 / total)
	f := &features{
		dim:       o.Features,
		edges:     e,
		centroids: make([]float32, o.blocks()*o.Features),
		spread:    float32(sigma / total),
		around:    newStream(o.Seed, purposeNoise),
	}
	middle := newStream(o.Seed, purposeCentroids)
	for i := range f.centroids {
		f.centroids[i] = signal * normal(middle.at(uint64(i)))
	}
	return f
}

// draw fills x with the rows of vertices first, first+1, …
func (f *features) draw(x []float32, first int) {
	workers.Blocks(runtime.GOMAXPROCS(0), len(x)/f.dim, block, func(_, from, to int) {
		for r := from; r < to; r++ {
			v, row := first+r, x[r*f.dim:(r+1)*f.dim]
			centre := f.centroids[int(f.edges.block(uint64(v)))*f.dim:][:f.dim]
			for j := range row {
				// The conversion prevents a fused multiply-add, which only some processors
				// have.
				row[j] = centre[j] + float32(f.spread*normal(f.around.at(uint64(v*f.dim+j))))
			}
		}
	})
}

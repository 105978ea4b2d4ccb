package generate

import (
	"math"
	"runtime"

	"siafu/graph/workers"
)

// block is how many vertices a worker takes at a time.
const block = 1 << 10

// features fills x [len(labels) x dim]: the centroid of the class, of normal
// numbers, plus noise, scaled to variance 1.
//
// Two centroids lie √(2·dim) apart, so noise is in units of √(dim/2).
func features(x []float32, dim int, labels []int32, classes int, noise float64, seed uint64) {
	sigma := noise * math.Sqrt(float64(dim)/2)
	total := math.Sqrt(1 + sigma*sigma)
	signal, spread := float32(1/total), float32(sigma/total)
	centroids := make([]float32, classes*dim)
	middle := newStream(seed, purposeCentroids)
	for i := range centroids {
		centroids[i] = signal * normal(middle.at(uint64(i)))
	}
	around := newStream(seed, purposeNoise)
	workers.Blocks(runtime.GOMAXPROCS(0), len(labels), block, func(_, from, to int) {
		for v := from; v < to; v++ {
			row := x[v*dim : (v+1)*dim]
			centre := centroids[int(labels[v])*dim:][:dim]
			for j := range row {
				// The conversion forbids a fused multiply-add, which some
				// processors have and some have not.
				row[j] = centre[j] + float32(spread*normal(around.at(uint64(v*dim+j))))
			}
		}
	})
}

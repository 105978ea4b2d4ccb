package config

import (
	"slices"

	"siafu/internal/size"
	"siafu/kernels"
	"siafu/kernels/model"
)

// An interval has IntervalRows vertices, so that its rows are still in the second-level cache when
// the next task works on them. A small graph has smaller intervals, down to leastRows, until there
// are someIntervals. This is enough for workers to end at about the same time.
//
// Each interval has its own gradients of the weights. If all of these are larger than twice the
// activations, there are only fewIntervals. A graph whose epochs take about a millisecond has half of them, and an even
// number, because two workers would wait for an odd one. Networks of relations have a matrix per relation and the
// columns of all kinds of vertices: their limit is a quarter of the activations. Bounded asynchrony has fewer intervals, because each of
// them fetches weights from a server and sends its own rows. If sources are gathered block by block,
// each interval reads all blocks. Intervals are then as large as the cache permits.
const (
	IntervalRows  = 2048
	leastRows     = 256
	someIntervals = 8
	fewIntervals  = 4
	tinyGraph     = 4096
	MostIntervals = 256

	mostAsyncIntervals = 8
)

// IntervalsOf returns the number of intervals for n vertices with the given number of
// incoming edges. It depends only on shapes, so that sums of gradients are the same on any
// number of processors.
func (c *Config) IntervalsOf(s model.Spec, n int, edges int64) int {
	if c.Intervals > 0 {
		return max(1, min(c.Intervals, n))
	}
	if c.Mode == "async" {
		return max(1, min(mostAsyncIntervals, n/IntervalRows))
	}
	columns := size.Sum(s.Dims[1:]...)
	activations := size.Product(2, n, columns)
	if s.Custom == nil && model.KindOf(s.Kind).Relational {
		activations /= 8
	}
	affordable, few := activations/max(s.NumWeights(), 1), fewIntervals
	if n < tinyGraph {
		affordable, few = affordable&^1, few/2
	}
	affordable = max(affordable, few)
	most := MostIntervals
	if width := slices.Max(s.Dims[1:]); kernels.InBlocks(n, width, edges) {
		most = max(size.Product(4, n, width)/kernels.BlockBytes, someIntervals)
	}
	return max(1, min(most, affordable, max(n/IntervalRows, min(someIntervals, n/leastRows))))
}

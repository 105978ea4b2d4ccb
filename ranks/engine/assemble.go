package engine

import (
	"siafu/kernels/model"
	"siafu/ranks/config"
)

// lockstep returns a lockstep over intervals, without routes.
func (e *Engine) lockstep(store *model.Store, intervals []*interval) *lockstep {
	return &lockstep{store: store, intervals: intervals, resources: e.resources(e.Peers.Rank()), stale: &staleness{}}
}

// resources returns the resources of the tasks of a part.
func (e *Engine) resources(part int) resources {
	return resources{
		workers: e.workers, tensor: e.Tensor, announces: e.Tensor.RequestOptions().Ahead, part: part, adder: e.workers.newOps(),
		files: e.fileReader(nil), delay: noDelay,
	}
}

// pieceEdges is the approximate number of edges in a piece of the sums for other ranks.
const pieceEdges = 32 << 10

// ghostPieces returns the bounds of the pieces of ghosts; each piece is one task.
func ghostPieces(n int) []int {
	return evenly(n, max(1, min(config.MostIntervals, n/config.IntervalRows)))
}

// evenly returns the bounds of equal parts of n.
func evenly(n, parts int) []int {
	bounds := make([]int, parts+1)
	for k := range parts {
		bounds[k+1] = (k + 1) * n / parts
	}
	return bounds
}

package engine

import (
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
)

// lockstep returns a lockstep over intervals. prepare completes it.
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

// prepare builds the graph work of the intervals' layers, the row exchange with other ranks
// through a codec, and the exact passes. All memory comes from a.
func (s *lockstep) prepare(e *Engine, o graphwork.Options, rows codec.Codec, a *mapped.Arena) {
	newRoute := &route{}
	s.route, s.training, s.exact = newRoute, newRoute, newRoute
	if s.store.Network.GathersAny() {
		newRoute.graph = graphwork.New(s.store, e.Shard, o, s.adder, a)
		if e.Peers.Size() > 1 {
			e.recordPlan(newRoute.graph.Plan)
			s.exchange = halo.NewExchange(e.Peers, newRoute.graph.Plan, rows, e.packers, e.workers.newOps(), a, newRoute.graph.MaxWidth())
			newRoute.localGhosts = s.newLocalGhosts(e, newRoute.graph, o, rows, a)
			always := halo.NewAlways(s.exchange, s.shapes(newRoute), e.Config.Seed)
			if k := &newRoute.localGhosts; k.mixes() {
				always = always.Through(k.mixed.exchange, k.layer, newRoute.graph.Layer(k.layer).Width, e.Config.Seed)
			}
			newRoute.ghosts = always
			newRoute.sumPieces = newRoute.graph.SumPieces(pieceEdges)
			newRoute.pieces = ghostPieces(newRoute.graph.Plan.Ghosts)
		}
	}
	if e.fetches() && newRoute.aggregates() {
		a.Fill(newRoute.graph.ReadInOrder)
	}
	a.Fill(func() { s.build(newRoute, e.Config.Mode == "nopipe") })
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

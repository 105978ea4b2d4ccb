package ranks

import (
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
)

// trainer puts a graph rank together.
func (r *run) trainer(source params.Source) *trainer {
	t := &trainer{
		cfg: r.cfg, comm: r.peers, shard: r.shard, weights: source, net: r.net, arena: r.arena,
		flat: mapped.Make[float32](r.arena, r.net.NumWeights()), grad: mapped.Make[float32](r.arena, r.net.NumWeights()),
	}
	n, ops := r.net.NumWeights(), r.crew.team()
	t.shared, t.sum = kernels.PlaceMat(ops, r.arena, n, 1, t.flat), kernels.PlaceMat(ops, r.arena, n, 1, t.grad)
	t.lockstep = r.lockstep(newIntervals(r.cfg, r.net, r.shard, r.localIDs(r.arena), r.crew, t.shared, r.arena))
	t.judges, t.update, t.sums = true, t.push, make([]float64, scoreSums)
	for _, layer := range params.Layers(r.net) {
		t.layers = append(t.layers, layer)
	}
	o := graphwork.Options{Half: r.cfg.Gather == "bf16", Skip: r.net.CacheInput, Forward: r.cfg.Refresh == config.Never && r.Graph > 1}
	t.prepare(r, o, r.codecs[0], r.arena)
	t.refresh(r, o, r.arena)
	t.delay = newDelay(r.cfg, r.rank)
	return t
}

// lockstep is what goes through the layers of intervals; prepare completes it.
func (r *run) lockstep(intervals []*interval) *lockstep {
	return &lockstep{
		crew: r.crew, tensor: r.tensor, seed: r.cfg.Seed, intervals: intervals, own: r.shard.NumOwn(), adder: r.crew.team(),
	}
}

// prepare makes what the intervals' layers need of the graph, and the exact
// passes.
func (s *lockstep) prepare(r *run, o graphwork.Options, rows codec.Codec, a *mapped.Arena) {
	way := &route{}
	s.route, s.training, s.exact = way, way, way
	if r.net.Propagates() {
		o.Reduction = r.rows
		way.graph = graphwork.New(r.net, s.intervals[0].net.Layers, r.shard, o, s.adder, a)
		if r.Graph > 1 {
			s.exchange = halo.NewExchange(r.peers, way.graph.Plan, rows, r.packers, r.crew.team(), a, way.graph.MaxWidth())
			way.source = halo.Always{Exchange: s.exchange}
			way.sumPieces = way.graph.SumPieces(pieceEdges)
			way.pieces = evenly(way.graph.Plan.Ghosts, max(1, min(config.MostIntervals, way.graph.Plan.Ghosts/config.IntervalRows)))
		}
	}
	s.build(way, r.cfg.Mode == "nopipe")
}

// pieceEdges is about how many edges are in a piece of the sums for other ranks.
const pieceEdges = 32 << 10

// evenly are the bounds of parts of n.
func evenly(n, parts int) []int {
	bounds := make([]int, parts+1)
	for k := range parts {
		bounds[k+1] = (k + 1) * n / parts
	}
	return bounds
}

package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo/history"
	"siafu/halo/sample"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
)

// variates samples the steps of an epoch with sampled neighbours and control variates (VR-GCN,
// ICML'18). A step consists of some own training vertices, of neighbours sampled among the
// rank's vertices, and of their samples. Each step is a separate shard, whose edges are the
// samples. The history's contribution to a vertex's sum is the row of one ghost
// (history.Variates).
type variates struct {
	sampledSteps
	source    *history.Variates
	samples   int // samples per vertex
	layers    int // layers that gather
	targets   []uint32
	refreshed [][]uint32 // refreshedRows

	input      kernels.Mat // ÂX of own vertices if cached
	places     []int32     // by own vertex: its position in the field; -1: none
	field      history.Field
	candidates []neighbour
}

// neighbour is an own vertex, or its position in a field, and the weight of its edge.
type neighbour struct {
	row    uint32
	weight float32
}

// newVariates allocates the steps of a trainer. Collective over the graph ranks.
func (e *Engine) newVariates(b *batches) (trainingOf, error) {
	v := &variates{samples: e.Config.Samples(), layers: len(e.Network.GatherLayers()), targets: e.trainVertices()}
	if e.Network.CacheInput {
		v.input = b.t.store.Forward(0, model.Gathered)
	}
	var err error
	if v.refreshed, err = e.refreshedRows(v.layers); err != nil {
		return nil, err
	}
	more := make([]int, len(v.refreshed))
	for depth, list := range v.refreshed {
		more[depth] = len(list)
	}
	rows, inner := e.maxFieldSize(len(v.targets), more)
	v.places = slices.Repeat([]int32{-1}, e.Shard.NumOwn())
	v.sampledSteps = b.sampledSteps(e.variatesNetwork(), []int{rows})
	col := e.Network.Coefficients(graphwork.Degrees(e.Shard), e.Shard.NumOwn(), e.Arena.For(graphwork.Coefficients)).Col
	stored := e.newHistoryStore(e.Arena)
	v.source, err = history.NewVariates(stored, e.Shard, col, inner, e.packers, e.Arena)
	if err != nil {
		return nil, err
	}
	b.predictVariates(e, v.source, len(v.targets))
	b.stored, b.source = stored, v.source
	b.next = func(epoch, _ int, pieces []int) (*lockstep, error) { return v.step(epoch, pieces[0]), nil }
	return b.shareOf(v.targets), nil
}

// variatesNetwork returns the network of steps with sampled neighbours. Their rows of features are dense.
func (e *Engine) variatesNetwork() *model.Network { return model.New(e.network().Spec, false) }

func (e *Engine) trainVertices() (list []uint32) {
	for i, split := range e.Shard.Split {
		if split == graph.SplitTrain {
			list = append(list, uint32(i))
		}
	}
	return list
}

// maxFieldSize returns the maximal number of vertices in a step, and of those with samples, for the
// given number of training vertices on the rank and, by depth, of refreshedRows.
func (e *Engine) maxFieldSize(training int, refreshed []int) (rows, inner int) {
	steps := e.Config.Batches()
	rows = (training + steps - 1) / steps
	for k := range e.Network.GatherLayers() {
		inner, rows = rows, min(e.Shard.NumOwn(), rows*(1+e.Config.Samples())+(refreshed[k+1]+steps-1)/steps)
	}
	return rows, inner
}

// step makes the lockstep of the k-th step of an epoch.
func (v *variates) step(epoch, k int) *lockstep {
	e := v.e
	draws := rand.New(rand.NewPCG(e.Config.Seed+1, uint64(epoch*e.Config.Batches()+k)<<24|uint64(e.Peers.Rank())))
	more := make([][]uint32, len(v.refreshed))
	for depth, list := range v.refreshed {
		more[depth] = e.shuffledShare(list, epoch, k)
	}
	v.sample(e.shuffledShare(v.targets, epoch, k), more, draws)
	v.loadInputs()
	v.scratch.Free()
	o := graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true, Factor: v.field.Factor}
	work := graphwork.New(v.template.store, v.fieldShard(), o, v.template.adder, v.scratch)
	v.source.Begin(epoch, v.field)
	if v.source.Observe = nil; v.template.stale.measuresStep(epoch) {
		v.source.Observe = v.template.stale.observe
	}
	stepRoute := &route{graph: work, ghosts: v.source, rows: v.template.ghostRows(true, false)}
	return v.stepBuffers.buildStep(stepRoute, []int{len(v.field.Rows)})
}

// shuffledShare returns the k-th step's part of a list, which is shuffled again in each epoch.
func (e *Engine) shuffledShare(list []uint32, epoch, k int) []uint32 {
	rng := rand.New(rand.NewPCG(e.Config.Seed, uint64(epoch)<<32|uint64(e.Peers.Rank())))
	order, count := rng.Perm(len(list)), e.Config.Batches()
	var share []uint32
	for _, i := range order[k*len(order)/count : (k+1)*len(order)/count] {
		share = append(share, list[i])
	}
	return share
}

// sample samples the field of the given target numbers. more are vertices that the field has in addition,
// by depth.
func (v *variates) sample(targets []uint32, more [][]uint32, rng *rand.Rand) {
	f := &v.field
	for _, u := range f.Rows {
		v.places[u] = -1
	}
	*f = history.Field{Rows: f.Rows[:0], Ends: f.Ends[:0], Offsets: append(f.Offsets[:0], 0), Samples: f.Samples[:0],
		Weights: f.Weights[:0], Factor: f.Factor[:0]}
	for _, t := range targets {
		v.fieldPlace(t)
	}
	f.Ends = append(f.Ends, len(f.Rows))
	for k := range v.layers {
		for len(f.Offsets) <= f.Ends[len(f.Ends)-1] {
			v.sampleNeighbours(f.Rows[len(f.Offsets)-1], rng)
		}
		for _, u := range more[k+1] {
			v.fieldPlace(u)
		}
		f.Ends = append(f.Ends, len(f.Rows))
	}
	for len(f.Offsets) <= len(f.Rows) { // outermost vertices gather nothing
		f.Offsets, f.Factor = append(f.Offsets, int64(len(f.Samples))), append(f.Factor, 1)
	}
}

// fieldPlace returns the position of an own vertex in the field, and adds it if missing.
func (v *variates) fieldPlace(u uint32) uint32 {
	if v.places[u] < 0 {
		v.places[u] = int32(len(v.field.Rows))
		v.field.Rows = append(v.field.Rows, u)
	}
	return uint32(v.places[u])
}

// sampleNeighbours samples, without replacement, among an own vertex and its neighbours on
// this rank: Kipf's Â has a self loop.
func (v *variates) sampleNeighbours(u uint32, rng *rand.Rand) {
	s, f := v.e.Shard, &v.field
	v.candidates = v.candidates[:0]
	for k := s.In.Offsets[u]; k < s.InOwnEnd[u]; k++ {
		one := neighbour{s.In.Cols[k], 1}
		if s.Weighted {
			one.weight = s.Weights[k]
		}
		v.candidates = append(v.candidates, one)
	}
	v.candidates = append(v.candidates, neighbour{u, 1})
	n := min(v.samples, len(v.candidates))
	for i := range n {
		if n < len(v.candidates) {
			k := i + rng.IntN(len(v.candidates)-i)
			v.candidates[i], v.candidates[k] = v.candidates[k], v.candidates[i]
		}
		v.candidates[i].row = v.fieldPlace(v.candidates[i].row)
	}
	slices.SortFunc(v.candidates[:n], func(a, b neighbour) int { return cmp.Compare(a.row, b.row) })
	for _, one := range v.candidates[:n] {
		if f.Samples = append(f.Samples, one.row); s.Weighted {
			f.Weights = append(f.Weights, one.weight)
		}
	}
	f.Offsets, f.Factor = append(f.Offsets, int64(len(f.Samples))), append(f.Factor, float32(len(v.candidates))/float32(n))
}

// fieldShard returns the shard of the field. Its edges are the samples and, for each vertex
// with samples, one edge with coefficient 1 from its own ghost.
func (v *variates) fieldShard() *shard.Shard {
	s, f := v.e.Shard, &v.field
	n, inner := len(f.Rows), f.Ends[len(f.Ends)-2]
	in := graph.CSR{Offsets: make([]int64, n+1), Cols: make([]uint32, 0, len(f.Samples)+inner)}
	own, degrees := make([]int64, n), [2][]uint32{make([]uint32, n+inner), make([]uint32, n+inner)}
	var weights []float32
	for i, u := range f.Rows {
		degrees[0][i], degrees[1][i] = s.InDegree[u], s.OutDegree[u]
		if s.Weighted {
			weights = append(weights, f.Weights[f.Offsets[i]:f.Offsets[i+1]]...)
		}
		in.Cols = append(in.Cols, f.Samples[f.Offsets[i]:f.Offsets[i+1]]...)
		own[i] = int64(len(in.Cols))
		if i < inner {
			if in.Cols = append(in.Cols, uint32(n+i)); s.Weighted {
				weights = append(weights, 1)
			}
		}
		in.Offsets[i+1] = int64(len(in.Cols))
	}
	part := sampledShard(in, own, v.ids, degrees[0], degrees[1], inner)
	part.Split = v.split[:n]
	if part.Weighted, part.Weights = s.Weighted, weights; s.Weighted {
		part.InStrength, part.OutStrength = make([]float32, n+inner), make([]float32, n+inner)
		for i, u := range f.Rows {
			part.InStrength[i], part.OutStrength[i] = s.InStrength[u], s.OutStrength[u]
		}
	}
	return part
}

// loadInputs copies the step's vertex data to its buffers. Only the targets have a loss.
func (v *variates) loadInputs() {
	s, rows := v.e.Shard, v.field.Rows
	for i, u := range rows {
		split := uint8(graph.SplitNone)
		if i < v.field.Ends[0] {
			split = graph.SplitTrain
		}
		v.setRow(i, s.Own[u], u, split)
	}
	if v.cached {
		v.e.workers.teams[0].PackRows(v.packed.Part(0, len(rows)), kernels.HostVector(rows), v.input, kernels.Mat{})
		return
	}
	sample.ExpandRows(v.packed, &s.Features, rows, v.e.packers)
}

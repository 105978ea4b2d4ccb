package engine

import (
	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// turns has the buffers that successive sampled steps reuse: intervals and
// values of the largest step, and what is copied there of its vertices.
//
// Rows of a step come in stretches: all layers but the last k gather for those of the
// k-th. Each stretch has intervals of its own, so that no work is done in layers that do
// not need a row (interval.outer).
type turns struct {
	e         *Engine
	like      *lockstep
	stretches []int         // intervals of each
	scratch   *mapped.Arena // of the step
	packed    kernels.Mat   // features of its vertices, or ÂX
	cached    bool          // ÂX
	ids       []uint32
	labels    []int32
	split     []uint8
	aim       task.Aim // its Values are those of the rows
}

// newTurns makes room for steps that go through a network, each stretch with so many rows
// at most.
func (e *Engine) newTurns(t *trainer, net *model.Network, most []int, steps int, update func(layer int) error) *turns {
	r := e.turnsOf(net, most, e.Arena)
	store := model.NewStore(net, r.vertices(r.packed.Rows), kept(e.Config), e.workers.teams[0], e.Arena.For(Activations))
	e.values = Values{Bytes: store.Bytes(), KeptBytes: store.Bytes()}
	r.like = e.lockstep(store, nil)
	r.like.endsInLoss, r.like.steps, r.like.update, r.like.delay = true, steps, update, t.delay
	for outer, count := range r.stretches {
		for range count {
			i := &interval{index: len(r.like.intervals), outer: outer, ops: e.workers.team()}
			i.frame = store.Batch(r.vertices(r.packed.Rows), 0, 0, 0, r.kept(), i.ops, t.shared, nil)
			r.like.intervals = append(r.like.intervals, i)
		}
	}
	return r
}

// turnsOf is without the values of a network and intervals.
func (e *Engine) turnsOf(net *model.Network, most []int, a *mapped.Arena) *turns {
	r, rows := &turns{e: e, scratch: mapped.NewArena(), cached: net.Spec.CacheInput}, 0
	for _, n := range most {
		r.stretches = append(r.stretches, e.workers.intervals(&e.Config, net.Spec, n, 0))
		rows += n
	}
	a = a.For(Activations)
	r.packed = kernels.NewMat(e.workers.teams[0], a, rows, net.Spec.Dims[0])
	r.ids, r.labels, r.split = mapped.Make[uint32](a, rows), mapped.Make[int32](a, rows), mapped.Make[uint8](a, rows)
	if r.aim.Objective = e.aim.Objective; e.aim.Values != nil {
		r.aim.Values = mapped.Make[float32](a, rows*r.aim.Objective.Outputs)
	}
	return r
}

// vertices are the first of the step.
func (r *turns) vertices(rows int) model.Vertices {
	in := model.Vertices{
		Features: model.Features{Rows: rows, Dim: r.packed.Cols},
		IDs:      kernels.HostVector(r.ids[:rows]), LocalIDs: kernels.HostVector(r.ids),
	}
	if !r.cached {
		in.Features.Dense = r.packed.Part(0, rows)
	}
	return in
}

// kept is ÂX, none where steps begin with features.
func (r *turns) kept() kernels.Mat {
	if r.cached {
		return r.packed
	}
	return kernels.Mat{}
}

// set notes what the loss reads of a row: of an own vertex, with a split that the step
// chooses.
func (r *turns) set(row int, id, own uint32, split uint8) {
	r.ids[row], r.labels[row], r.split[row] = id, r.e.Shard.Labels[own], split
	if r.aim.Values != nil {
		width := r.aim.Objective.Outputs
		copy(r.aim.Values[row*width:(row+1)*width], r.e.aim.Values[int(own)*width:])
	}
}

// setOther notes a row of which there is no loss.
func (r *turns) setOther(row int, id uint32) {
	r.ids[row], r.labels[row], r.split[row] = id, 0, graph.SplitNone
}

// step is the lockstep of a step along a way. Stretch k ends in row ends[k].
func (r *turns) step(way *route, ends []int) *lockstep {
	s, at, lo := *r.like, 0, 0
	s.route, s.training, s.exact = way, way, way
	for k, count := range r.stretches {
		rows := ends[k] - lo
		for j := range count {
			i := s.intervals[at]
			i.lo, i.hi = lo+j*rows/count, lo+(j+1)*rows/count
			i.frame = s.store.Batch(r.vertices(ends[len(ends)-1]), i.lo, i.hi-i.lo, i.lo, r.kept(), i.ops, i.frame.Weights, i.frame)
			i.loss.Aim = part(r.aim, i.lo, i.hi)
			i.loss.Labels, i.loss.Split = kernels.HostVector(r.labels[i.lo:i.hi]), kernels.HostVector(r.split[i.lo:i.hi])
			at++
		}
		lo = ends[k]
	}
	s.build(way, r.e.Config.Mode == "nopipe")
	return &s
}

// sampledShard is a shard of a step's vertices: edges are between its own vertices or
// from ghosts behind them, and lead one way.
func sampledShard(in graph.CSR, own []int64, ids, inDegree, outDegree []uint32, ghosts int) *shard.Shard {
	n := len(in.Offsets) - 1
	return &shard.Shard{
		Parts: 1, Directed: true, Own: ids[:n], Ghosts: make([]uint32, ghosts), GhostStart: []int64{0, int64(ghosts)}, SendStart: []int64{0, 0},
		In: in, InOwnEnd: own, InDegree: inDegree, OutDegree: outDegree,
	}
}

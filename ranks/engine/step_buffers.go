package engine

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/config"
)

// stepBuffers has the buffers that successive sampled steps reuse: intervals and values of the
// largest step, and copied data of the step's vertices.
//
// Rows of a step are grouped in stretches: of the layers that gather, all except the last k gather for
// the rows of stretch k. Each stretch has its own intervals, so that layers skip rows that they do not
// need (interval.skippedLayers).
type stepBuffers struct {
	e              *Engine
	template       *lockstep
	intervalCounts []int         // intervals of each stretch
	scratch        *mapped.Arena // of the step
	rows, columns  int           // of the largest step, and of features
	packed         kernels.Mat   // rows of ÂX of the step's vertices if cached, otherwise features; empty if a section reads neither
	cached         bool          // whether packed has ÂX
	stepRows
}

// stepRows are copied data of a step's vertices.
type stepRows struct {
	ids         []uint32
	labels      []int32
	split       []uint8
	lossTargets task.Target
}

// newStepBuffers allocates steps of a network; most has the maximal number of rows of each
// stretch.
func (e *Engine) newStepBuffers(t *trainer, net *model.Network, most []int, steps int) *stepBuffers {
	return e.newSectionBuffers(t, net, net.Section(), most, steps, t.sumLayer, nil)
}

// newSectionBuffers allocates steps of a section of a network. Steps with the intervals like run at
// other times, and share the gradients of weights.
func (e *Engine) newSectionBuffers(t *trainer, net *model.Network, of model.Section, most []int, steps int,
	update func(s *lockstep, layer int, o kernels.Ops), like []*interval) *stepBuffers {
	r := e.allocStepBuffers(net, of, most, e.Arena)
	store := model.NewSectionStore(net, of, r.vertices(r.rows), passMemory(e.Config), e.workers.teams[0], e.Arena.For(Activations))
	e.values.Bytes, e.values.KeptBytes = e.values.Bytes+store.Bytes(), e.values.KeptBytes+store.Bytes()
	r.template = e.lockstep(store, nil)
	r.template.endsInLoss, r.template.passes, r.template.update, r.template.delay = true, steps, update, t.delay
	r.template.stale = t.stale
	gathers := net.Spec.GatherLayers()
	for outer, count := range r.intervalCounts {
		skipped := 0
		if outer > 0 {
			skipped = len(net.Layers) - gathers[len(gathers)-outer]
		}
		for range count {
			i := &interval{index: len(r.template.intervals), skippedLayers: skipped, ops: e.workers.newOps()}
			var frame *model.Frame
			if i.index < len(like) {
				frame = like[i.index].frame
			}
			i.frame = store.Batch(r.vertices(r.rows), 0, 0, 0, r.cachedInput(), i.ops, t.sharedWeights, frame)
			r.template.intervals = append(r.template.intervals, i)
		}
	}
	return r
}

// allocStepBuffers allocates the buffers of steps, without the values of a section of a network and
// intervals.
func (e *Engine) allocStepBuffers(net *model.Network, of model.Section, most []int, a *mapped.Arena) *stepBuffers {
	r := &stepBuffers{e: e, scratch: mapped.NewArena(), cached: net.Spec.CacheInput, columns: net.Spec.Dims[0]}
	for _, n := range most {
		r.intervalCounts = append(r.intervalCounts, e.workers.intervals(&e.Config, net.Spec, n, 0))
		r.rows += n
	}
	rows := r.rows
	a = a.For(Activations)
	if of.First == 0 {
		r.packed = kernels.NewMat(e.workers.teams[0], a, rows, r.columns)
	}
	r.ids, r.labels, r.split = mapped.Make[uint32](a, rows), mapped.Make[int32](a, rows), mapped.Make[uint8](a, rows)
	if r.lossTargets.Objective = e.targets.Objective; e.targets.Values != nil {
		r.lossTargets.Values = mapped.Make[float32](a, rows*r.lossTargets.Objective.Outputs)
	}
	if e.Config.Batching().Kind == config.Saint {
		r.lossTargets.Objective, r.lossTargets.RowWeights = e.objective(), mapped.Make[float32](a, rows)
	}
	return r
}

// vertices returns the first vertices of the step.
func (r *stepBuffers) vertices(rows int) model.Vertices {
	in := model.Vertices{
		Features: model.Features{Rows: rows, Dim: r.columns},
		IDs:      kernels.HostVector(r.ids[:rows]), LocalIDs: kernels.HostVector(r.ids),
	}
	if !r.cached && !r.packed.IsNil() {
		in.Features.Dense = r.packed.Part(0, rows)
	}
	return in
}

// cachedInput returns ÂX, empty if steps begin with features.
func (r *stepBuffers) cachedInput() kernels.Mat {
	if r.cached {
		return r.packed
	}
	return kernels.Mat{}
}

// setRow sets the loss input of a row: an own vertex, with a split that the step chooses.
func (r *stepBuffers) setRow(row int, id, own uint32, split uint8) {
	r.ids[row], r.labels[row], r.split[row] = id, r.e.Shard.Labels[own], split
	if r.lossTargets.Values != nil {
		width := r.lossTargets.Objective.Outputs
		copy(r.lossTargets.Values[row*width:(row+1)*width], r.e.targets.Values[int(own)*width:])
	}
}

// setUnlabelled sets a row without a loss.
func (r *stepBuffers) setUnlabelled(row int, id uint32) {
	r.ids[row], r.labels[row], r.split[row] = id, 0, graph.SplitNone
}

// buildStep returns the lockstep of a step along a route. Stretch k ends in row ends[k].
func (r *stepBuffers) buildStep(stepRoute *route, ends []int) *lockstep {
	s, at, lo := *r.template, 0, 0
	for k, count := range r.intervalCounts {
		rows := ends[k] - lo
		for j := range count {
			i := s.intervals[at]
			i.lo, i.hi = lo+j*rows/count, lo+(j+1)*rows/count
			i.frame = s.store.Batch(r.vertices(ends[len(ends)-1]), i.lo, i.hi-i.lo, i.lo, r.cachedInput(), i.ops, i.frame.Weights, i.frame)
			i.loss.Target = targetPart(r.lossTargets, i.lo, i.hi)
			i.loss.Labels, i.loss.Split = kernels.HostVector(r.labels[i.lo:i.hi]), kernels.HostVector(r.split[i.lo:i.hi])
			at++
		}
		lo = ends[k]
	}
	s.useOnly(stepRoute, r.e, r.e.Arena)
	return &s
}

// sampledShard returns a shard of a step's vertices. Its directed edges are between its own
// vertices, or from ghosts, which follow them.
func sampledShard(in graph.CSR, own []int64, ids, inDegree, outDegree []uint32, ghosts int) *shard.Shard {
	n := len(in.Offsets) - 1
	return &shard.Shard{
		Parts: 1, Directed: true, Own: ids[:n], Ghosts: make([]uint32, ghosts),
		GhostStart: []int64{0, int64(ghosts)}, SendStart: []int64{0, 0},
		In: in, InOwnEnd: own, InDegree: inDegree, OutDegree: outDegree,
	}
}

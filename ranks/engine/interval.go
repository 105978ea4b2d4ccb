package engine

import (
	"slices"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// interval is a range of own vertices on which a task works (Dorylus, OSDI'21, §4), with the
// state that one task leaves to the next.
type interval struct {
	index, lo, hi int // own vertices [lo, hi)
	skippedLayers int // number of skipped last layers; the first of them still emits its rows

	frame      *model.Frame  // these vertices' rows of all values
	ops        kernels.Ops   // of its tasks; borrows the workspace of the worker that runs one
	task       task.Task     // the last tensor task begun
	scheduled  schedule.Task // the same task in the schedule
	loss       task.Loss
	mask       kernels.Dropout // of attention, in graph work
	gradBuffer []float32       // the host's copy of a gradient in device memory

	*intervalState // in bounded asynchrony
}

// part returns the interval's rows of a matrix of all own vertices.
func (i *interval) part(x kernels.Mat) kernels.Mat {
	if x.IsNil() {
		return x
	}
	return x.Part(i.lo, i.hi)
}

// graphInterval returns the interval for graph work in layer l.
func (i *interval) graphInterval(l int) graphwork.Interval {
	return graphwork.Interval{Lo: i.lo, Hi: i.hi, Ops: i.ops, Layer: l, Frame: i.frame, Mask: &i.mask,
		Sources: !i.isNeeded(schedule.Apply, l)}
}

// graphIntervalOn is graphInterval with the worker's ops.
func (i *interval) graphIntervalOn(o kernels.Ops, l int) graphwork.Interval {
	g := i.graphInterval(l)
	g.Ops, g.Sources = o, false
	return g
}

// isNeeded reports whether the result of a stage of layer l is needed for the interval.
func (i *interval) isNeeded(s schedule.Stage, l int) bool {
	if i.skippedLayers == 0 {
		return true
	}
	switch s {
	case schedule.Emit, schedule.GatherBackward, schedule.EmitBackward:
		l--
	}
	return l < i.frame.Network.Spec.Layers()-i.skippedLayers
}

// skipStage runs in place of a stage that is not needed. It clears the gradients of outputs for later
// backward stages. Gradients of weights that no stage writes are zero since their allocation.
func (i *interval) skipStage(s schedule.Stage, l int) {
	at := model.Do{Layer: l, Stage: model.ApplyBackward}
	if s != schedule.ApplyBackward {
		return
	}
	i.frame.SkipBackward(l, i.ops)
	if !i.isNeeded(schedule.EmitBackward, l) {
		return
	}
	if grad := i.frame.At(at, model.OutputGrad); !grad.IsNil() {
		i.ops.Clear(grad)
	}
	i.frame.ClearSelfGrad(l, i.ops)
}

// skipUnlabelled omits the last layers of intervals without labels in a relational graph, where most kinds
// of vertices have none: their logits are not used. Such vertices still emit rows for the last gather. Only
// rgcn takes the gradients of all its vertices from OutputGrad, which skipStage clears.
func (e *Engine) skipUnlabelled(net *model.Network, list []*interval) {
	gathers := e.Network.GatherLayers()
	if e.Shard.Relations == nil || len(gathers) == 0 || e.Network.Sums() || e.Task == graph.Links {
		return
	}
	last := gathers[len(gathers)-1]
	if g := net.Gathering(last); !g.Relational || g.Heads > 0 {
		return
	}
	for _, i := range list {
		if !slices.ContainsFunc(e.Shard.Labels[i.lo:i.hi], func(label int32) bool { return label != graph.Unlabelled }) {
			i.skippedLayers = e.Network.Layers() - last
		}
	}
}

// tensorStages maps the schedule's stages to those of tensor tasks.
var tensorStages = map[schedule.Stage]model.Stage{
	schedule.Emit: model.Emit, schedule.Apply: model.Apply, schedule.Loss: model.Loss,
	schedule.ApplyBackward: model.ApplyBackward, schedule.EmitBackward: model.EmitBackward,
}

func nameOf(t schedule.Task, part int, p model.Pass) task.Name {
	return task.Name{Part: part, Interval: t.Interval, Epoch: p.Epoch, Layer: t.Layer, Stage: tensorStages[t.Stage], Train: p.Train}
}

func (i *interval) start(b tensor.Backend, t schedule.Task, part, version int, p model.Pass, work tensorWork) (done bool, err error) {
	i.scheduled = t
	i.task = task.Task{
		Name:    nameOf(t, part, p),
		Version: version, Do: work.do, Recompute: work.recompute, Frame: i.frame, Loss: &i.loss, Form: b.RequestOptions().Form,
	}
	return b.Start(i.ops, &i.task)
}

// Activations is the purpose of the memory for the values of layers.
const Activations = "activations and their gradients"

// store allocates the values of a network on the own vertices of a shard, and their
// replacements in the first layer. All memory comes from a.
func (e *Engine) store(net *model.Network, m model.Memory, a *mapped.Arena) *model.Store {
	ops, sh := e.workers.teams[0], e.Shard
	s := model.NewStore(net, model.Place(ops, a, sh.Features, sh.Own, e.localIDs(a)), m, ops, a.For(Activations))
	if m.Lifetime() != model.Forward {
		e.values = Values{Bytes: s.Bytes(), KeptBytes: s.Bytes()}
	}
	if m == model.Recompute {
		e.values.KeptBytes = 4 * int64(net.Columns(model.InStep)) * int64(s.Rows)
	}
	return s
}

// network returns the engine's network for its features, restricted to what its arithmetic and
// tensor backend support.
func (e *Engine) network() *model.Network {
	spec := e.Network
	_, here := e.Tensor.(tensor.CPU)
	ops := e.workers.teams[0]
	spec.InPlace = spec.InPlace && here && ops.Has(kernels.FusedInputGrad)
	spec.Listed = spec.Listed && here && ops.Has(kernels.ListedRows)
	return model.New(spec, e.Shard.Features.Sparse != nil)
}

// reserveBackend reserves memory for the tasks of intervals in a backend that stores values.
func (e *Engine) reserveBackend(store *model.Store, list []*interval, a *mapped.Arena) {
	if !e.Tensor.StoresValues() {
		return
	}
	var frames []*model.Frame
	var losses []*task.Loss
	for _, i := range list {
		frames, losses = append(frames, i.frame), append(losses, &i.loss)
	}
	e.Tensor.Reserve(store, frames, losses, a)
}

// newIntervals divides the own vertices of a shard into intervals of equal size along the
// shard's order, which has few edges between intervals. The intervals share the vector
// weights. If weights is empty, each interval has its own weights.
func (e *Engine) newIntervals(store *model.Store, weights kernels.Mat, a *mapped.Arena) []*interval {
	sh, ops := e.Shard, e.workers.teams[0]
	n, count := sh.NumOwn(), e.workers.intervals(&e.Config, e.Network, sh.NumOwn(), int64(len(sh.In.Cols)))
	labels, split := kernels.Place(ops, a, sh.Labels), kernels.Place(ops, a, sh.Split)
	largest := (n + count - 1) / max(count, 1)
	if e.slotRows > 0 {
		largest = min(largest, e.slotRows)
	}
	store.MakeSlots(len(e.workers.teams)+1, largest)
	var list []*interval
	for k := range count {
		i := &interval{index: k, lo: k * n / count, hi: (k + 1) * n / count, ops: e.workers.newOps()}
		i.frame = store.Frame(i.lo, i.hi, i.ops, weights)
		i.loss = task.Loss{
			Target: e.targetsOf(i.lo, i.hi), Labels: labels.Part(i.lo, i.hi), Split: split.Part(i.lo, i.hi),
			Scale: float32(float64(e.Config.LossShare(e.Peers.Size())) / float64(max(sh.TrainTotal, 1))),
		}
		list = append(list, i)
	}
	return list
}

package engine

import (
	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
	"siafu/ranks/schedule"
	"siafu/ranks/world"
)

// All transfer of rows in bounded asynchrony is in this file. Tasks copy an interval's rows to
// the buffer that other tasks read, and pass them to the source of ghosts. A received message
// is passed to the source, and a task is queued that stores its rows.

// Published is the purpose of the memory for rows and gradients that intervals exchange.
const Published = "published rows"

// prepare builds the graph work of the intervals' layers, and the exchange of rows.
func (f *asyncRank) prepare(e *Engine, store *model.Store, trained int, a *mapped.Arena) error {
	ops, rows := f.workers.teams[0], a.For(Published)
	f.graph = graphwork.New(store, e.Shard,
		graphwork.Options{Half: f.cfg.Gather == "bf16", Asynchronous: true, Targets: true}, e.workers.newOps(), a)
	e.recordPlan(f.graph.Plan)
	f.ghosts = refresh.NewBounded(refresh.BoundedOptions{
		Rank: e.Peers.Rank(), Shapes: f.graph.Shapes(), Plan: f.graph.Plan, Codec: e.Codecs[0], Seed: f.cfg.Seed,
		Staleness: f.setting.Staleness, After: trained, Outbox: f.outbox, Tag: params.TagAsync, Longest: world.EagerLimit(f.world),
	}, ops, a)
	for _, shape := range f.graph.Shapes() {
		l := shape.Layer
		layer := f.graph.Layer(l)
		view, err := f.ghosts.View(halo.Slot{Epoch: trained, Layer: l})
		if err != nil {
			return err
		}
		own := e.Shard.NumOwn()
		layer.Rows, layer.Grads = kernels.NewMat(ops, rows, own, layer.Width), kernels.NewMat(ops, rows, own, layer.GradWidth)
		layer.Recomputed, layer.Ghosts = layer.Rows, view.Rows
		f.layers[l] = layer
	}
	return nil
}

func slotOf(t schedule.Task) halo.Slot {
	backward := false
	switch t.Stage {
	case schedule.GatherBackward, schedule.GhostGrads, schedule.ReceiveBackward:
		backward = true
	}
	return halo.Slot{Epoch: t.Epoch, Layer: t.Layer, Backward: backward}
}

// sendForward publishes an interval's rows, and sends its boundary rows to the ranks that have
// them as ghosts.
func (f *asyncRank) sendForward(i *interval, t schedule.Task) error {
	p := f.layers[t.Layer]
	i.ops.Copy(i.part(p.Rows), i.frame.At(model.Do{Layer: t.Layer, Stage: model.Emit}, model.Emitted))
	p.Publish(i.graphInterval(t.Layer), i.part(p.Rows))
	return f.ghosts.Offer(slotOf(t), p.Rows, i.lo, i.hi)
}

// gather computes the interval's rows of Â times the newest stored rows.
func (f *asyncRank) gather(i *interval, t schedule.Task) error {
	if _, err := f.ghosts.View(slotOf(t)); err != nil {
		return err
	}
	l, part := f.layers[t.Layer], i.graphInterval(t.Layer)
	l.GatherOwn(part, i.pass())
	l.GatherGhosts(part, i.pass())
	return nil
}

// sendBackward publishes an interval's gradient with respect to its gathered rows.
func (f *asyncRank) sendBackward(i *interval, l int) {
	p := f.layers[l]
	i.ops.Copy(i.part(p.Grads), i.frame.At(model.Do{Layer: l, Stage: model.ApplyBackward}, model.GatheredGrad))
	p.PublishGrads(i.graphInterval(l), i.part(p.Grads))
}

// gatherBackward computes the interval's rows of Âᵀ times the newest stored gradients.
func (f *asyncRank) gatherBackward(i *interval, t schedule.Task) error {
	l := f.layers[t.Layer]
	l.GatherBackward(i.graphInterval(t.Layer), i.pass())
	return f.ghosts.Add(i.ops, slotOf(t), l.Backward(), i.lo, i.hi)
}

// runWhole runs a task that is not specific to an interval.
func (f *asyncRank) runWhole(worker int, t schedule.Task) error {
	ops, l, slot := f.workers.teams[worker], f.layers[t.Layer], slotOf(t)
	if t.Stage == schedule.GhostGrads {
		grads := f.ghosts.SendBuffer(slot)
		l.Begin(model.Pass{Epoch: t.Epoch, Train: true}, f.intervals[0].frame.Weights) // published, not read
		l.GhostGrads(ops, 0, grads)
		return f.ghosts.Offer(slot, grads, 0, grads.Rows)
	}
	lo, hi, err := f.ghosts.Take(slot)
	if err == nil && !slot.Backward {
		l.PublishGhosts(ops, lo, hi-lo)
	}
	return err
}

// handleRows passes a message to the source of ghosts, and queues the task that stores its
// rows.
func (f *asyncRank) handleRows(m world.Message) error {
	if !f.propagates {
		return wire.Unexpected("train", m.Source, wire.KindOf(m.Data)) // the network has no aggregation
	}
	slot, due, err := f.ghosts.Accept(m.Source, m.Data)
	if err != nil || !due {
		return err
	}
	f.QueueReceive(slot.Epoch, slot.Layer, slot.Backward)
	return nil
}

package engine

import (
	"siafu/kernels/model"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// An interval runs the stages of an epoch in one fixed order. Bounded asynchrony runs them one
// by one.

// successor returns an interval's task after a task, or after its last stage. It does not apply to
// EmitBackward, after which the gradients of weights are pushed first (afterPush).
func (o Outline) successor(t schedule.Task) schedule.Task {
	switch t.Stage {
	case schedule.Emit:
		t.Stage = schedule.Apply
		if o.Layers[t.Layer].Gathers {
			t.Stage = schedule.Send
		}
	case schedule.Send:
		t.Stage = schedule.GatherGhosts
	case schedule.GatherGhosts:
		t.Stage = schedule.Apply
	case schedule.Apply:
		t.Stage = schedule.Loss
		if t.Layer < len(o.Layers)-1 {
			t.Stage, t.Layer = schedule.Emit, t.Layer+1
		}
	case schedule.Loss:
		t.Stage = schedule.ApplyBackward
	case schedule.ApplyBackward:
		t.Stage = schedule.EmitBackward
		if o.Layers[t.Layer].GathersBackward {
			t.Stage = schedule.SendBackward
		}
	case schedule.SendBackward:
		t.Stage = schedule.GatherBackward
	case schedule.GatherBackward:
		t.Stage = schedule.EmitBackward
	}
	return t
}

// Sequence returns the tasks of an interval in an epoch of bounded asynchrony, in order.
func (o Outline) Sequence() (list []schedule.Task) {
	for t := o.firstTask(); ; {
		list = append(list, t)
		chain := o.FusedStages(t)
		switch t = chain[len(chain)-1]; {
		case t.Stage != schedule.EmitBackward:
			t = o.successor(t)
		case t.Layer == 0:
			return list
		default:
			t = afterPush(t)
		}
	}
}

// firstTask returns the first task of an interval's epoch.
func (o Outline) firstTask() (t schedule.Task) {
	t.Stage = schedule.Emit
	if o.InputCached {
		t.Stage = schedule.Apply
	}
	return t
}

// afterPush returns the task after EmitBackward of a layer above the first, after the layer's
// gradient has been pushed.
func afterPush(t schedule.Task) schedule.Task {
	t.Stage, t.Layer = schedule.ApplyBackward, t.Layer-1
	return t
}

// fusedSuccessor returns the next stage that the same tensor task runs, if there is one: no
// other work is between the two.
func (o Outline) fusedSuccessor(t schedule.Task) (schedule.Task, bool) {
	if !o.Fused || !Tensor(t.Stage) || t.Stage == schedule.EmitBackward {
		return t, false
	}
	next := o.successor(t)
	return next, Tensor(next.Stage)
}

// stageOf converts a stage of a tensor task to a stage of the schedule.
func stageOf(s model.Stage) schedule.Stage {
	for stage, other := range tensorStages {
		if other == s {
			return stage
		}
	}
	panic("engine: no tensor stage")
}

// fusedWork returns the stages of all tensor tasks of an epoch in bounded asynchrony, by layer
// and first stage, and fused: all stages with nothing else between them.
func (o Outline) fusedWork(store *model.Store, w tensor.RequestOptions) tensorWorkTable {
	all := make(tensorWorkTable, len(o.Layers))
	for l := range all {
		for stage, s := range tensorStages {
			if !store.Network.Has(model.Do{Layer: l, Stage: s}) {
				continue
			}
			for _, t := range o.FusedStages(schedule.Task{Layer: l, Stage: stage}) {
				all[l][stage].do = append(all[l][stage].do, store.Do(t.Layer, tensorStages[t.Stage])...)
			}
		}
	}
	all.setRecompute(store, w)
	return all
}

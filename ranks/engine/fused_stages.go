package engine

import (
	"siafu/kernels/model"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// An interval goes through an epoch along one chain of stages, which bounded
// asynchrony follows step by step.

// successor is what an interval does when a task, or the last stage of one, is done: but
// behind EmitBackward, where weights' gradients are handed over first.
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

// firstTask is the first task of an interval's epoch.
func (o Outline) firstTask() (t schedule.Task) {
	t.Stage = schedule.Emit
	if o.InputCached {
		t.Stage = schedule.Apply
	}
	return t
}

// afterPush is the task behind EmitBackward of a layer above the first, when the
// layer's gradient has been handed over.
func afterPush(t schedule.Task) schedule.Task {
	t.Stage, t.Layer = schedule.ApplyBackward, t.Layer-1
	return t
}

// fusedSuccessor is the stage behind one that the same tensor task continues with, if there is any:
// what nothing but tensor work follows.
func (o Outline) fusedSuccessor(t schedule.Task) (schedule.Task, bool) {
	if !o.Fused || !Tensor(t.Stage) || t.Stage == schedule.EmitBackward {
		return t, false
	}
	next := o.successor(t)
	return next, Tensor(next.Stage)
}

// stageOf is a stage of a tensor task as the schedule has it.
func stageOf(s model.Stage) schedule.Stage {
	for stage, other := range tensorStages {
		if other == s {
			return stage
		}
	}
	panic("engine: no tensor stage")
}

// fusedWork are the stages of all tensor tasks of an epoch in bounded asynchrony, by
// layer and first stage; fused, all stages between which nothing else happens.
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
	all.thin(store, w)
	return all
}

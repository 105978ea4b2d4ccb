package engine

import (
	"siafu/kernels/model"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// An interval goes through an epoch along one chain of stages, which bounded
// asynchrony follows step by step.

// after is what an interval does when a task, or the last stage of one, is done: but
// behind EmitBackward, where weights' gradients are handed over first.
func after(net *model.Network, t schedule.Task) schedule.Task {
	switch t.Stage {
	case schedule.Emit:
		t.Stage = schedule.Apply
		if net.Gathers(t.Layer) {
			t.Stage = schedule.Send
		}
	case schedule.Send:
		t.Stage = schedule.GatherGhosts
	case schedule.GatherGhosts:
		t.Stage = schedule.Apply
	case schedule.Apply:
		t.Stage = schedule.Loss
		if t.Layer < len(net.Layers)-1 {
			t.Stage, t.Layer = schedule.Emit, t.Layer+1
		}
	case schedule.Loss:
		t.Stage = schedule.ApplyBackward
	case schedule.ApplyBackward:
		t.Stage = schedule.EmitBackward
		if net.GathersBackward(t.Layer) {
			t.Stage = schedule.SendBackward
		}
	case schedule.SendBackward:
		t.Stage = schedule.GatherBackward
	case schedule.GatherBackward:
		t.Stage = schedule.EmitBackward
	}
	return t
}

// last is a task as its last stage.
func last(t schedule.Task, list []model.Do) schedule.Task {
	for _, d := range list {
		if !d.Again && d.Stage != model.Draw {
			t.Layer, t.Stage = d.Layer, stageOf(d.Stage)
		}
	}
	return t
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

// chains are the stages of all tensor tasks of an epoch in bounded asynchrony, by
// layer and first stage; fused, all stages between which nothing else happens.
func chains(store *model.Store, w tensor.Wishes) cuts {
	net := store.Network
	all := make(cuts, len(net.Layers))
	for l := range all {
		for stage, s := range tensorStages {
			if !net.Has(model.Do{Layer: l, Stage: s}) {
				continue
			}
			list, at := store.Do(l, s), schedule.Task{Layer: l, Stage: stage}
			for w.Fused && at.Stage != schedule.EmitBackward {
				at = after(net, at)
				next, ok := tensorStages[at.Stage]
				if !ok {
					break
				}
				list = append(list, store.Do(at.Layer, next)...)
			}
			all[l][stage].do = list
		}
	}
	all.thin(store, w)
	return all
}

package simulate

import (
	"siafu/ranks/engine"
	"siafu/ranks/schedule"
)

// recut returns the rank with other tasks. fused: stages without a gather between them are one
// task (Dorylus, §6). Each of the new intervals gets its fraction of the recorded interval at its
// position.
func (k *Rank) recut(fused bool, intervals int) *Rank {
	other := *k
	other.Outline.Fused, other.Outline.Intervals = fused || k.Outline.Fused, intervals
	other.made, other.asyncSeconds, other.Epochs = nil, nil, nil
	for n, e := range k.Epochs {
		if len(e.Tasks) == 0 { // in bounded asynchrony stages are fused at run time
			other.asyncSeconds = append(other.asyncSeconds, k.divided(k.asyncSeconds[n], intervals))
		} else {
			e.Tasks = other.tasks(k.divided(k.stages(&e), intervals))
		}
		other.Epochs = append(other.Epochs, e)
	}
	return &other
}

// stages returns the seconds of an epoch's tasks.
func (k *Rank) stages(e *Epoch) map[taskKey]float64 {
	times := map[taskKey]float64{}
	for _, track := range k.tracks() {
		for _, t := range track.Tasks() {
			times[taskKey{t.Stage, t.Layer, t.Interval}] = e.Tasks[track.place[t.Ref]]
		}
	}
	return times
}

// divided returns the seconds by stage for a number of intervals. Tasks without interval are
// unchanged.
func (k *Rank) divided(times map[taskKey]float64, intervals int) map[taskKey]float64 {
	was := k.Outline.Intervals
	if intervals == was {
		return times
	}
	list := map[taskKey]float64{}
	for at, takes := range times {
		if at.interval == schedule.Whole || engine.OfGhosts(at.stage) {
			list[at] = takes
			continue
		}
		for i := range intervals {
			lo, hi := float64(i)/float64(intervals), float64(i+1)/float64(intervals)
			common := min(hi, float64(at.interval+1)/float64(was)) - max(lo, float64(at.interval)/float64(was))
			if common > 0 {
				list[taskKey{at.stage, at.layer, i}] += takes * common * float64(was)
			}
		}
	}
	return list
}

// tasks returns the seconds of an epoch's tasks, as sums of their stages.
func (k *Rank) tasks(times map[taskKey]float64) (list []float64) {
	for _, track := range k.tracks() {
		for _, t := range track.Tasks() {
			sum := 0.0
			for _, t := range track.Stages(t) {
				sum += times[taskKey{t.Stage, t.Layer, t.Interval}]
			}
			list = append(list, sum)
		}
	}
	return list
}

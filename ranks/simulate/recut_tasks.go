package simulate

import (
	"siafu/ranks/engine"
	"siafu/ranks/schedule"
)

// recut returns the rank with tasks cut otherwise: stages between which nothing is gathered as
// one task (Dorylus, §6), where fused, and N intervals, each of which takes its
// share of the recorded interval that it lies in.
func (k *Rank) recut(fused bool, intervals int) *Rank {
	other := *k
	other.Outline.Fused, other.Outline.Intervals = fused || k.Outline.Fused, intervals
	other.made, other.pace, other.Epochs = nil, nil, nil
	for n, e := range k.Epochs {
		if len(e.Tasks) == 0 { // of bounded asynchrony, whose stages are put together when they run
			other.pace = append(other.pace, k.divided(k.pace[n], intervals))
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

// divided returns the same of N intervals. What is no interval's stays as it is.
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

// tasks returns an epoch's tasks of which the stages take so long.
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

package simulate

import (
	"fmt"
	"slices"
	"time"

	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// asyncRank derives a Rank from its ordered events in bounded asynchrony.
func (r *Recording) asyncRank(list []trace.Event) (*Rank, error) {
	k, workers := &Rank{}, map[int]bool{}
	for _, e := range list {
		workers[e.Worker] = true
	}
	k.Workers = len(workers)
	gap := medianGap(list)
	for n, epoch := range r.Epochs {
		s := newEpochLog(list, epoch)
		if n == 0 {
			k.Outline = s.asyncOutline(r.Fused)
		}
		times, err := s.asyncTimes(k.Outline, epoch)
		if err != nil {
			return nil, err
		}
		k.Epochs, k.asyncSeconds = append(k.Epochs, Epoch{Gap: gap}), append(k.asyncSeconds, times)
		k.Use.Busy += s.busy.Seconds() / float64(k.Workers*len(r.Epochs))
	}
	k.Use.Span = (endOf(list, r.Epochs[len(r.Epochs)-1]) - endOf(list, r.Epochs[0]-1)).Seconds() / float64(len(r.Epochs))
	return k, nil
}

// endOf returns the end of the last task of an epoch or earlier ones.
func endOf(list []trace.Event, epoch int) (end time.Duration) {
	for _, e := range list {
		if e.Epoch <= epoch {
			end = max(end, e.End())
		}
	}
	return end
}

// medianGap returns the median seconds between a worker's tasks. Gaps of idle workers are in
// the longer half.
func medianGap(list []trace.Event) float64 {
	var gaps []float64
	ends := map[int]time.Duration{}
	for _, e := range list {
		if end, ok := ends[e.Worker]; ok && e.Start >= end {
			gaps = append(gaps, (e.Start - end).Seconds())
		}
		ends[e.Worker] = e.End()
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// asyncOutline returns the outline of a rank in bounded asynchrony.
func (s *epochLog) asyncOutline(fused bool) engine.Outline {
	o := engine.Outline{Fused: fused, Loss: true}
	if o.Intervals, o.Layers = s.size(); o.Layers == nil {
		return engine.Outline{}
	}
	for l := range o.Layers {
		for k := range s.tasks {
			if k.layer != l || k.interval < 0 {
				continue
			}
			of := &o.Layers[l]
			of.Gathers = of.Gathers || k.kind == schedule.GatherGhosts.Kind()
			of.GathersBackward = of.GathersBackward || k.kind == schedule.GatherBackward.Kind()
		}
	}
	o.InputCached = len(s.tasks[key{schedule.Apply.Kind(), 0, 0}]) == 1
	return o
}

// asyncTimes returns the seconds of an epoch's tasks. It fails if tasks of intervals are
// missing or left over.
func (s *epochLog) asyncTimes(o engine.Outline, epoch int) (map[taskKey]float64, error) {
	times, used := map[taskKey]float64{}, map[key]int{}
	for i := range o.Intervals {
		for _, t := range o.Sequence() {
			k := key{t.Stage.Kind(), t.Layer, i}
			if used[k] == len(s.tasks[k]) {
				return nil, fmt.Errorf("epoch %d lacks a task %s of layer %d and interval %d", epoch, k.kind, k.layer, k.interval)
			}
			times[taskKey{t.Stage, t.Layer, i}] = s.tasks[k][used[k]]
			used[k]++
		}
	}
	whole := map[string]schedule.Stage{
		schedule.Receive.Kind(): schedule.Receive, schedule.ReceiveBackward.Kind(): schedule.ReceiveBackward, schedule.GhostGrads.Kind(): schedule.GhostGrads,
	}
	for k, list := range s.tasks {
		stage, ok := whole[k.kind]
		switch {
		case k.interval == trace.None && ok && k.layer < len(o.Layers):
			for _, takes := range list {
				times[taskKey{stage, k.layer, schedule.Whole}] += takes
			}
		case used[k] != len(list):
			return nil, fmt.Errorf("epoch %d has %d tasks %s of layer %d and interval %d, and not %d", epoch, len(list), k.kind, k.layer, k.interval, used[k])
		}
	}
	return times, nil
}

// size returns the number of intervals, and a slice for the layers: zero and nil for a damaged
// file, whose tasks are then left over.
func (s *epochLog) size() (intervals int, layers []engine.LayerOutline) {
	count, back := 0, schedule.ApplyBackward.Kind()
	first := len(s.tasks[key{back, 0, 0}])
	for k, list := range s.tasks {
		count = max(count, k.layer+1)
		if alone := k.layer == 0 && len(list) < min(first, 2); k.kind == back && !alone { // a piece of ghosts
			intervals = max(intervals, k.interval+1)
		}
	}
	if max(count, intervals) > len(s.tasks) {
		return 0, nil
	}
	return intervals, make([]engine.LayerOutline, count)
}

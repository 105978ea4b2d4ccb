package simulate

import (
	"fmt"
	"time"

	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// evaluation is the timeline's name for a pass outside of training.
const evaluation = "eval"

// epochLog is an epoch of one rank, sorted by kind.
type epochLog struct {
	tasks      map[key][]float64 // of layers: seconds, in order
	weights    []float64         // steps of all layers: weights come, gradients are summed
	scores     []float64         // losses are summed
	score      time.Duration     // begin of the sum of losses
	back       time.Duration     // begin of the backward pass
	begin, end time.Duration
	aside      time.Duration // of it, evaluations
	busy       time.Duration
	rows, sums time.Duration // waits
	tries      int           // number of tasks of layers
	gaps, left float64       // seconds between tasks and before other steps
}

func newEpochLog(list []trace.Event, epoch int) *epochLog {
	s := &epochLog{tasks: map[key][]float64{}}
	ends := map[int][2]time.Duration{} // by worker: ends of its last event and of the one before
	for i := range list {
		e := &list[i]
		if e.Epoch != epoch {
			continue
		}
		if s.end == 0 {
			s.begin = e.Start
		}
		s.end = max(s.end, e.End())
		s.take(e)
		if len(ends) > 0 {
			s.gap(e, latest(ends, e.Start))
		}
		ends[e.Worker] = [2]time.Duration{e.End(), ends[e.Worker][0]}
	}
	return s
}

// latest returns the latest end before a time.
func latest(ends map[int][2]time.Duration, at time.Duration) (end time.Duration) {
	for _, two := range ends {
		for _, each := range two {
			if each <= at {
				end = max(end, each)
			}
		}
	}
	return end
}

// gap returns the time before an event in which no task ended.
func (s *epochLog) gap(e *trace.Event, since time.Duration) {
	switch {
	case since == 0 || onlyWaits(e):
	case e.Layer == trace.None:
		s.left += (e.Start - since).Seconds()
	default:
		s.gaps += (e.Start - since).Seconds()
		s.tries++
	}
}

// take adds an event.
func (s *epochLog) take(e *trace.Event) {
	if e.Task == evaluation {
		s.aside += e.Dur
		return
	}
	s.busy += e.Dur - e.Wait
	if e.Layer == trace.None {
		s.sums += e.Wait
	} else {
		s.rows += e.Wait
	}
	switch {
	case onlyWaits(e):
	case e.Layer != trace.None:
		if e.Task == schedule.ApplyBackward.Kind() && s.back == 0 {
			s.back = e.Start
		}
		s.tasks[keyOf(e)] = append(s.tasks[keyOf(e)], seconds(e))
	case e.Task == schedule.Update.Kind():
		s.weights = append(s.weights, seconds(e))
	case e.Task == schedule.Loss.Kind():
		s.scores, s.score = append(s.scores, seconds(e)), e.Start
	}
}

// split reports whether losses were summed before the backward pass began.
func (s *epochLog) split() bool { return s.score < s.back }

// count returns the number of tasks of a kind in a layer.
func (s *epochLog) count(kind string, layer int) (n int) {
	for k, list := range s.tasks {
		if k.kind == kind && k.layer == layer {
			n += len(list)
		}
	}
	return n
}

// outline derives the outline of the tasks. Each interval gathers twice forward, along own edges
// and from ghosts, and once backward. The other gathers are the gradients of other ranks' rows,
// sent and received.
func (s *epochLog) outline(barrier, fused bool) engine.Outline {
	o := engine.Outline{Barrier: barrier, Fused: fused, Loss: fused}
	o.Intervals, o.Layers = s.size()
	if o.Layers == nil {
		return engine.Outline{}
	}
	for l := range o.Layers {
		gathers, back := s.count(schedule.GatherOwn.Kind(), l), s.count(schedule.GatherBackward.Kind(), l)
		o.Layers[l] = engine.LayerOutline{Gathers: gathers > 0, GathersBackward: back > 0}
		o.Loss = o.Loss || s.count(schedule.Loss.Kind(), l) > 0
		o.Ghosts = o.Ghosts || s.count(schedule.Send.Kind(), l) > 0
		o.Returns = o.Returns || s.count(schedule.SendBackward.Kind(), l) > 0
		o.Sums = max(o.Sums, gathers-2*o.Intervals)
	}
	for l := range o.Layers {
		returned := o.Intervals
		if o.Sums > 0 {
			returned *= 2
		}
		o.Pieces = max(o.Pieces, s.count(schedule.GatherBackward.Kind(), l)-returned)
	}
	tensor := s.count(schedule.Apply.Kind(), 0)
	o.InputCached = tensor == o.Intervals
	if n := tensor - 2*o.Intervals; n > 0 {
		o.GhostTasks = []int{n}
	}
	return o
}

// times returns the seconds of the rank's tasks. It fails if tasks are missing or left over.
func (s *epochLog) times(r *Rank, epoch int) (Epoch, error) {
	if len(s.weights) != 2 || len(s.scores) != 1 {
		return Epoch{}, fmt.Errorf("epoch %d has %d steps of weights and %d sums of losses, and not 2 and 1", epoch, len(s.weights), len(s.scores))
	}
	e := Epoch{Pull: s.weights[0], Score: s.scores[0], Flush: s.weights[1], Gap: s.gaps / float64(max(s.tries, 1)), Left: s.left}
	used := map[key]int{}
	for _, g := range r.Graphs() {
		for _, t := range g.Tasks() {
			k := key{t.Stage.Kind(), t.Layer, t.Interval}
			if used[k] == len(s.tasks[k]) {
				return Epoch{}, fmt.Errorf("epoch %d lacks a task %s of layer %d and interval %d", epoch, k.kind, k.layer, k.interval)
			}
			e.Tasks = append(e.Tasks, s.tasks[k][used[k]])
			used[k]++
		}
	}
	for k, list := range s.tasks {
		if used[k] < len(list) {
			return Epoch{}, fmt.Errorf("epoch %d has %d tasks %s of layer %d and interval %d, and not %d", epoch, len(list), k.kind, k.layer, k.interval, used[k])
		}
	}
	return e, nil
}

// use returns the use of the workers' time.
func (s *epochLog) use(workers int) Use {
	each := float64(workers)
	return Use{
		Span: (s.end - s.begin - s.aside).Seconds(), Busy: s.busy.Seconds() / each,
		Rows: s.rows.Seconds() / each, Sums: s.sums.Seconds(),
	}
}

package simulate

import (
	"fmt"
	"slices"
	"time"

	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// evaluation is the timeline's name for a pass outside of training.
const evaluation = "eval"

// epochLog has the events of one rank in one epoch, by kind.
type epochLog struct {
	tasks      map[key][]Work // of layers, in order
	weights    []float64      // steps of all layers: receiving weights, summing gradients
	scores     []float64      // summing losses
	score      time.Duration  // begin of the sum of losses
	back       time.Duration  // begin of the backward pass
	begin, end time.Duration
	aside      time.Duration // evaluations between begin and end
	evaluated  time.Duration // end of the last evaluation
	reads      []trace.Event // fetches of files
	busy       time.Duration
	rows, sums time.Duration // waited for
	disk       time.Duration // waited for
	tries      int           // number of tasks of layers
	gaps, left float64       // seconds between tasks before these; before other steps
}

func newEpochLog(list []trace.Event, epoch int) *epochLog {
	s := &epochLog{tasks: map[key][]Work{}}
	ends := map[int][2]time.Duration{} // by worker: ends of its last two events
	for i := range list {
		e := &list[i]
		if e.Epoch != epoch {
			continue
		}
		if s.end == 0 {
			s.begin = e.Start
		}
		if e.Task == trace.Fetch {
			if e.Start < s.evaluated { // of an evaluation
				continue
			}
			if e.Read != trace.None {
				s.reads = append(s.reads, *e)
			}
			if !onlyWaits(e) {
				continue
			}
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

// latest returns the latest end that is not after a time.
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

// gap adds the time from the latest end to the begin of an event.
func (s *epochLog) gap(e *trace.Event, since time.Duration) {
	switch {
	case since > 0 && e.Task == trace.Fetch: // the task that waits for it follows
		s.gaps += (e.Start - since).Seconds()
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
	switch e.Task {
	case evaluation:
		s.aside += e.Dur
		s.evaluated = max(s.evaluated, e.End())
		return
	case trace.Fetch:
		s.disk += e.Wait
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
		s.tasks[keyOf(e)] = append(s.tasks[keyOf(e)], workOf(e))
	case e.Task == schedule.Update.Kind():
		s.weights = append(s.weights, seconds(e))
	case e.Task == schedule.Loss.Kind():
		s.scores, s.score = append(s.scores, seconds(e)), e.Start
	}
}

// split reports whether losses were summed before the backward pass began.
func (s *epochLog) split() bool { return s.score < s.back }

// times returns the work of the rank's tasks. It fails if tasks are missing or left over.
func (s *epochLog) times(r *Rank, epoch int) (Epoch, error) {
	if len(s.weights) != 2 || len(s.scores) != 1 {
		return Epoch{}, fmt.Errorf("epoch %d has %d steps of weights and %d sums of losses, and not 2 and 1", epoch,
			len(s.weights), len(s.scores))
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
			return Epoch{}, fmt.Errorf("epoch %d has %d tasks %s of layer %d and interval %d, and not %d", epoch, len(list),
				k.kind, k.layer, k.interval, used[k])
		}
	}
	var err error
	e.Fetches, err = s.fetches(r, epoch)
	return e, err
}

// use returns the use of the workers' time.
func (s *epochLog) use(workers int) Use {
	each := float64(workers)
	return Use{
		Span: (s.end - s.begin - s.aside).Seconds(), Busy: s.busy.Seconds() / each,
		Rows: s.rows.Seconds() / each, Sums: s.sums.Seconds(), Disk: s.disk.Seconds() / each,
	}
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

// asyncTimes returns the work of an epoch's tasks. It fails if tasks of intervals are
// missing or left over.
func (s *epochLog) asyncTimes(o engine.Outline, epoch int) (map[taskKey]Work, error) {
	times, used := map[taskKey]Work{}, map[key]int{}
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
		schedule.Receive.Kind(): schedule.Receive, schedule.ReceiveBackward.Kind(): schedule.ReceiveBackward,
		schedule.GhostGrads.Kind(): schedule.GhostGrads,
	}
	for k, list := range s.tasks {
		stage, ok := whole[k.kind]
		switch {
		case k.interval == trace.None && ok && k.layer < len(o.Layers):
			for _, takes := range list {
				at := taskKey{stage, k.layer, schedule.Whole}
				times[at] = times[at].plus(takes)
			}
		case used[k] != len(list):
			return nil, fmt.Errorf("epoch %d has %d tasks %s of layer %d and interval %d, and not %d", epoch, len(list),
				k.kind, k.layer, k.interval, used[k])
		}
	}
	return times, nil
}

// transfer is one of a run's exchanges of rows.
type transfer struct {
	kind         string
	epoch, layer int
}

// arrival returns the median seconds from the last rank's send to the continuation of a rank
// that waited only for these rows: the time of links and of waking the waiting worker.
func arrival(graph [][]trace.Event, epochs []int) float64 {
	sent := map[transfer]time.Duration{}
	forEachTransfer(graph, epochs, func(x transfer, first bool, e *trace.Event) {
		if first {
			sent[x] = max(sent[x], e.End())
		}
	})
	var all []float64
	forEachTransfer(graph, epochs, func(x transfer, _ bool, e *trace.Event) {
		if onlyWaits(e) && e.End() > sent[x] {
			all = append(all, (e.End() - sent[x]).Seconds())
		}
	})
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// forEachTransfer visits the events of exchanges, and reports which is a rank's first: its
// send.
func forEachTransfer(graph [][]trace.Event, epochs []int, visit func(x transfer, first bool, e *trace.Event)) {
	for _, list := range graph {
		seen := map[transfer]bool{}
		for i := range list {
			e := &list[i]
			moves := e.Task == schedule.Send.Kind() || e.Task == schedule.SendBackward.Kind()
			if !moves || !slices.Contains(epochs, e.Epoch) {
				continue
			}
			x := transfer{e.Task, e.Epoch, e.Layer}
			visit(x, !seen[x] && !onlyWaits(e), e)
			seen[x] = seen[x] || !onlyWaits(e)
		}
	}
}

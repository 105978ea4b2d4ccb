package bench

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// communication lists the tasks that exchange rows between ranks.
var communication = []string{"SC", "∇SC"}

// lastTask is the task that only a complete epoch has: its gradients have been received. An
// evaluation has none.
const lastTask = "∇AV"

// breakdown has the times of some epochs by task.
type breakdown struct {
	info           map[string]string
	epochs         []int // complete on every graph rank, ascending
	first          bool  // the first epoch is left out
	tasks          []string
	graph, servers []*rankTime
}

// rankTime has the times of one rank in those epochs; all numbers are total seconds.
type rankTime struct {
	process trace.Process
	events  []trace.Event // in order of their start, of all epochs
	tasks   map[string]spent
	hidden  map[string]overlapBounds
	workers int
	span    float64 // from the first task of an epoch to the first task of the next
	between float64 // in no task, of all workers
}

// workerTime returns the total time of all workers of a rank.
func (r *rankTime) workerTime() float64 { return r.span * float64(max(r.workers, 1)) }

// spent is the time of one kind of task, and the part of it spent waiting for other ranks.
type spent struct{ seconds, waited float64 }

// overlapBounds bounds the time that a rank did other work during an exchange. Rows may be in
// transit from the time when a rank has sent its own until it requests the others' (most).
// They certainly are until the last rank has sent (least).
type overlapBounds struct{ least, most float64 }

// newBreakdown adds up a timeline. path names it in a fault.
func newBreakdown(f *trace.File, path string) (*breakdown, error) {
	b := &breakdown{info: f.Info}
	byRank := map[int]*rankTime{}
	for _, p := range f.Processes {
		r := &rankTime{process: p, tasks: map[string]spent{}, hidden: map[string]overlapBounds{}}
		byRank[p.Rank] = r
		if p.Role == "graph" {
			b.graph = append(b.graph, r)
		} else {
			b.servers = append(b.servers, r)
		}
	}
	for _, e := range f.Events {
		r := byRank[e.Rank]
		r.events = append(r.events, e)
	}
	for _, r := range byRank {
		slices.SortStableFunc(r.events, func(x, y trace.Event) int { return cmp.Compare(x.Start, y.Start) })
	}
	if b.selectEpochs(); len(b.epochs) == 0 {
		return nil, fault.New(fault.Data, "bench breakdown", path, "no epoch is complete on every graph rank").
			Then("train for 2 epochs or more")
	}
	b.summarize()
	return b, nil
}

// selectEpochs finds the epochs that are complete on every graph rank. It omits the first one,
// in which memory is touched for the first time, if there are others.
func (b *breakdown) selectEpochs() {
	count := map[int]int{}
	for _, r := range b.graph {
		for epoch := range r.completeEpochs() {
			count[epoch]++
		}
	}
	for epoch, n := range count {
		if n == len(b.graph) {
			b.epochs = append(b.epochs, epoch)
		}
	}
	slices.Sort(b.epochs)
	if len(b.epochs) > 1 && b.epochs[0] == 1 {
		b.epochs, b.first = b.epochs[1:], true
	}
}

// completeEpochs returns the epochs that are complete in this rank's timeline.
func (r *rankTime) completeEpochs() map[int]bool {
	epochs := map[int]bool{}
	for _, e := range r.events {
		if e.Task == lastTask && e.Epoch > 0 {
			epochs[e.Epoch] = true
		}
	}
	if r.process.Dropped > 0 && len(r.events) > 0 {
		delete(epochs, r.events[0].Epoch)
	}
	return epochs
}

// summarize fills in everything but the epochs.
func (b *breakdown) summarize() {
	chosen := map[int]bool{}
	for _, epoch := range b.epochs {
		chosen[epoch] = true
	}
	sent := b.lastSent()
	for _, r := range b.graph {
		r.addTasks(chosen)
		r.span = r.spans(chosen)
		r.between = max(r.workerTime()-r.total().seconds, 0)
		r.addHidden(chosen, sent)
	}
	for _, r := range b.servers {
		r.addTasks(chosen)
		r.span = b.graph[0].span
		r.between = max(r.workerTime()-r.total().seconds, 0)
	}
	b.tasks = b.taskNames()
}

// taskNames returns the tasks of graph ranks in report order; unknown ones come last.
func (b *breakdown) taskNames() []string {
	found := map[string]bool{}
	for _, r := range b.graph {
		for task := range r.tasks {
			found[task] = true
		}
	}
	var names []string
	for _, task := range schedule.Kinds() {
		if found[task] {
			names = append(names, task)
		}
		delete(found, task)
	}
	return append(names, slices.Sorted(maps.Keys(found))...)
}

// addTasks adds up tasks, and counts their workers.
func (r *rankTime) addTasks(chosen map[int]bool) {
	workers := map[int]bool{}
	for _, e := range r.events {
		workers[e.Worker] = true
		if chosen[e.Epoch] {
			s := r.tasks[e.Task]
			r.tasks[e.Task] = spent{s.seconds + e.Dur.Seconds(), s.waited + e.Wait.Seconds()}
		}
	}
	r.workers = len(workers)
}

// total returns the time in all tasks.
func (r *rankTime) total() spent {
	var sum spent
	for _, s := range r.tasks {
		sum.seconds += s.seconds
		sum.waited += s.waited
	}
	return sum
}

// spans returns the duration of the selected epochs: each until the first task of the next
// one, or else until its own last task.
func (r *rankTime) spans(chosen map[int]bool) float64 {
	begin, end := map[int]time.Duration{}, map[int]time.Duration{}
	for _, e := range r.events {
		if _, ok := begin[e.Epoch]; !ok {
			begin[e.Epoch] = e.Start
		}
		end[e.Epoch] = max(end[e.Epoch], e.End())
	}
	sum := 0.0
	for epoch := range chosen {
		until, ok := begin[epoch+1]
		if !ok {
			until = end[epoch]
		}
		sum += (until - begin[epoch]).Seconds()
	}
	return sum
}

// exchange names one exchange of rows in a run.
type exchange struct {
	task                   string
	epoch, layer, interval int
}

// exchangeOf returns the exchange of a communication task.
func exchangeOf(e *trace.Event) (exchange, bool) {
	return exchange{e.Task, e.Epoch, e.Layer, e.Interval}, slices.Contains(communication, e.Task)
}

// window is the time from a rank's send of its rows to its request for the others'; from and
// to are the indices of the two tasks in its events.
type window struct {
	from, to   int
	begin, end time.Duration
}

// windows returns the windows of a rank's exchanges.
func (r *rankTime) windows() map[exchange]window {
	all := map[exchange]window{}
	for i := range r.events {
		e := &r.events[i]
		x, ok := exchangeOf(e)
		if !ok {
			continue
		}
		w, begun := all[x]
		if !begun {
			w = window{from: i, begin: e.End()}
		}
		w.to, w.end = i, max(e.Start, w.begin)
		all[x] = w
	}
	return all
}

// lastSent returns the time when the last rank had sent its rows, by exchange.
func (b *breakdown) lastSent() map[exchange]time.Duration {
	last := map[exchange]time.Duration{}
	for _, r := range b.graph {
		for x, w := range r.windows() {
			last[x] = max(last[x], w.begin)
		}
	}
	return last
}

// addHidden adds up a rank's work in the windows of its exchanges.
func (r *rankTime) addHidden(chosen map[int]bool, sent map[exchange]time.Duration) {
	for x, w := range r.windows() {
		if !chosen[x.epoch] {
			continue
		}
		h := r.hidden[x.task]
		for i := w.from + 1; i < w.to; i++ {
			h.least += overlap(&r.events[i], w.begin, min(w.end, sent[x]))
			h.most += overlap(&r.events[i], w.begin, w.end)
		}
		r.hidden[x.task] = h
	}
}

// overlap returns the seconds that a task worked between two times. Its waits are distributed
// evenly.
func overlap(e *trace.Event, begin, end time.Duration) float64 {
	inside := min(e.End(), end) - max(e.Start, begin)
	if inside <= 0 {
		return 0
	}
	return inside.Seconds() * (1 - e.Wait.Seconds()/e.Dur.Seconds())
}

// mean returns the mean over ranks of their sums, for one epoch.
func (b *breakdown) mean(of []*rankTime, f func(*rankTime) float64) float64 {
	sum := 0.0
	for _, r := range of {
		sum += f(r)
	}
	return sum / float64(max(len(of), 1)*len(b.epochs))
}

package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// clock sums the seconds of each kind of task on one rank, and records each task if there is a
// timeline.
type clock struct {
	mu       sync.Mutex // of seconds
	seconds  map[string]float64
	lapStart time.Time
	timeline *trace.Recorder // nil: none
	epoch    int             // of the current task; 0: before the first epoch
	layer    int             // of the current task, or trace.None
	interval int             // of the current task, or trace.None
	read     int64           // by the last fetch
	stage    atomic.Int32    // of the current task, for workers that assist
}

// evaluation is the timeline's name for a pass outside of training.
const evaluation = "eval"

// kinds are the kinds of task, in the order in which they are reported.
var kinds = schedule.Kinds()

// newClock makes a clock that records on timeline, which may be nil.
func newClock(timeline *trace.Recorder) *clock {
	return &clock{seconds: map[string]float64{}, timeline: timeline, layer: trace.None, interval: trace.None}
}

// start begins a lap.
func (c *clock) start() {
	c.timeline.Begin()
	c.lapStart = time.Now()
}

// lap adds the time since the last lap, or start, to a task.
func (c *clock) lap(task string) {
	now := time.Now()
	c.add(task, now.Sub(c.lapStart))
	c.record(task, c.lapStart, now)
	c.lapStart = now
}

// wait adds a time of waiting for a task.
func (c *clock) wait(task string, began, ended time.Time) {
	c.add(task, ended.Sub(began))
	c.timeline.AddWait(task, c.tracePlace(), began, ended)
}

func (c *clock) add(task string, d time.Duration) {
	c.mu.Lock()
	c.seconds[task] += d.Seconds()
	c.mu.Unlock()
}

func (c *clock) tracePlace() trace.Place {
	return trace.Place{Epoch: int32(c.epoch), Layer: int32(c.layer), Interval: int32(c.interval), Read: c.read}
}

// record adds a task to the timeline without counting it.
func (c *clock) record(task string, begin, end time.Time) {
	c.timeline.Add(task, c.tracePlace(), begin, end)
}

// takeSeconds returns the seconds in the order of kinds, then those of waiting for files, and resets
// them to zero.
func (c *clock) takeSeconds() []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]float64, len(kinds)+1)
	for i, kind := range kinds {
		out[i] = c.seconds[kind]
	}
	out[len(kinds)] = c.seconds[trace.Fetch]
	clear(c.seconds)
	return out
}

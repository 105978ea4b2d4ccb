package trace

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Capacity is how many tasks of a worker are kept: 2,500 epochs of a network
// of two layers, in 3 MiB that are touched only as they fill.
const Capacity = 1 << 16

// None is the layer or interval of a task that has none.
const None = -1

// Place is what a task works on.
type Place struct {
	Epoch, Layer, Interval int32
}

// entry is a task in the ring; times are nanoseconds of the host's clock. It
// has no pointer, so that a collection does not go through the ring.
type entry struct {
	start, dur, wait int64
	at               Place
	task             int32 // in names
}

// Recorder keeps the newest tasks of one worker. Add and Begin are for that
// worker alone; communicators that it watches may be used by others meanwhile.
type Recorder struct {
	worker int
	zero   time.Time // the same moment as boot
	boot   int64     // nanoseconds on the clock that all processes of a host share
	names  []string  // of the kinds of task so far
	ring   []entry
	count  int64        // of tasks ever added
	waited atomic.Int64 // nanoseconds since the last task
}

// NewRecorder makes the recorder of a worker, which keeps the given number of
// tasks.
func NewRecorder(worker, capacity int) *Recorder {
	r := &Recorder{worker: worker, ring: make([]entry, capacity)}
	r.zero, r.boot = moment()
	return r
}

// moment returns the present for Go and on the clock of the host, which counts from
// its start. A thread may lose its processor between the two readings: of
// several the closest count.
func moment() (zero time.Time, boot int64) {
	closest := time.Duration(1<<63 - 1)
	for range rounds {
		before := time.Now()
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
			panic("trace: no monotonic clock")
		}
		if apart := time.Since(before); apart < closest {
			closest, zero, boot = apart, before.Add(apart/2), now.Nano()
		}
	}
	return zero, boot
}

// stamp returns a time on the host's clock.
func (r *Recorder) stamp(t time.Time) int64 { return r.boot + int64(t.Sub(r.zero)) }

// Now returns the present on the host's clock, in nanoseconds.
func (r *Recorder) Now() int64 { return r.stamp(time.Now()) }

// Begin says that a task begins here: waits so far are not its own.
func (r *Recorder) Begin() {
	if r != nil {
		r.waited.Store(0)
	}
}

// Add records a task that lasted from begin to end. Waits since the last Begin
// or Add are its own.
func (r *Recorder) Add(task string, at Place, begin, end time.Time) {
	if r == nil {
		return
	}
	r.add(task, at, begin, end, r.waited.Swap(0))
}

// AddWait records that a task was waited for from begin to end, and nothing else
// was done.
func (r *Recorder) AddWait(task string, at Place, begin, end time.Time) {
	if r == nil {
		return
	}
	r.waited.Store(0)
	r.add(task, at, begin, end, int64(end.Sub(begin)))
}

func (r *Recorder) add(task string, at Place, begin, end time.Time, waited int64) {
	e := &r.ring[r.count%int64(len(r.ring))]
	dur := int64(end.Sub(begin))
	*e = entry{task: r.name(task), at: at, start: r.stamp(begin), dur: dur, wait: min(waited, dur)}
	r.count++
}

// name returns the number of a kind of task. There are few, so that a search is as
// quick as a map.
func (r *Recorder) name(task string) int32 {
	i := slices.Index(r.names, task)
	if i < 0 {
		i = len(r.names)
		r.names = append(r.names, task)
	}
	return int32(i)
}

// dropped is how many tasks have been overwritten.
func (r *Recorder) dropped() int64 { return max(r.count-int64(len(r.ring)), 0) }

// each calls f for the tasks that are kept, the oldest first.
func (r *Recorder) each(f func(task string, e *entry)) {
	for i := r.dropped(); i < r.count; i++ {
		e := &r.ring[i%int64(len(r.ring))]
		f(r.names[e.task], e)
	}
}

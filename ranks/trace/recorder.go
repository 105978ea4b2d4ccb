package trace

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"siafu/kernels"
)

// Capacity is the number of tasks in the ring of a worker: 2,500 epochs of a network with two
// layers. A ring takes 4 MiB, and 6 MiB for kernels, which are used only as it fills.
const Capacity = 1 << 16

// kernelsPerTask is the size of the ring of kernels per task in the ring of tasks.
const kernelsPerTask = 4

// Fetch is the task of reading files before tasks need them, and of waiting for that.
const Fetch = "fetch"

// None is the layer or interval of a task that has none.
const None = -1

// Place is the epoch, layer and interval of a task.
type Place struct {
	Epoch, Layer, Interval int32
	Read                   int64 // of a Fetch: bytes of files; None: it waited for another one
}

// entry is a task in the ring. Times are nanoseconds of the host's clock. It has no pointers, so
// the garbage collector does not scan the ring.
type entry struct {
	start, dur, wait int64
	at               Place
	task             int32 // index in names
	calls            int32 // of kernels
	first            int64 // number of kernels added before them
}

// Recorder records the newest tasks of one worker. Only that worker may call Add and Begin. Other
// goroutines may use communicators wrapped by Watch concurrently.
type Recorder struct {
	worker    int
	thread    string    // its name in the file
	startGo   time.Time // when the recorder was made, on Go's clock
	startHost int64     // the same moment in nanoseconds on the clock that all processes of a host share
	names     []string  // names of the kinds of task so far
	ring      []entry
	count     int64            // number of tasks added so far
	kernels   []kernels.Chunks // ring
	called    int64            // number of kernels added so far
	first     int64            // those before the current task
	waited    atomic.Int64     // waiting time since the last task, in nanoseconds
}

// NewRecorder makes the recorder of a worker with a ring of the given number of tasks.
func NewRecorder(worker, capacity int) *Recorder {
	r := &Recorder{worker: worker, thread: "worker " + strconv.Itoa(worker), ring: make([]entry, capacity)}
	r.startGo, r.startHost = moment()
	return r
}

// NewFetchRecorder makes the recorder of the goroutine that reads files for workers with lower numbers.
func NewFetchRecorder(worker, capacity int) *Recorder {
	r := NewRecorder(worker, capacity)
	r.thread = "files"
	return r
}

// moment reads Go's clock and the host's clock, which counts from the start of the host. The thread
// may be preempted between the two readings, so moment returns the closest of several pairs.
func moment() (goTime time.Time, hostTime int64) {
	closest := time.Duration(1<<63 - 1)
	for range rounds {
		before := time.Now()
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
			panic("trace: no monotonic clock")
		}
		if apart := time.Since(before); apart < closest {
			closest, goTime, hostTime = apart, before.Add(apart/2), now.Nano()
		}
	}
	return goTime, hostTime
}

// stamp returns a time on the host's clock.
func (r *Recorder) stamp(t time.Time) int64 { return r.startHost + int64(t.Sub(r.startGo)) }

// Now returns the time of the host's clock in nanoseconds.
func (r *Recorder) Now() int64 { return r.stamp(time.Now()) }

// Begin begins a task. Earlier waits do not count for this task.
func (r *Recorder) Begin() {
	if r != nil {
		r.waited.Store(0)
		r.first = r.called
	}
}

// AddKernel records a call of a kernel for the next Add.
func (r *Recorder) AddKernel(k kernels.Chunks) {
	if r.kernels == nil {
		r.kernels = make([]kernels.Chunks, kernelsPerTask*len(r.ring))
	}
	*r.kernel(r.called) = k
	r.called++
}

// kernel returns the place of the n-th kernel.
func (r *Recorder) kernel(n int64) *kernels.Chunks { return &r.kernels[n%int64(len(r.kernels))] }

// Add records a task from begin to end. The waits and kernels since the last Begin or Add count for this task.
func (r *Recorder) Add(task string, at Place, begin, end time.Time) {
	if r == nil {
		return
	}
	e := r.add(task, at, begin, end, r.waited.Swap(0))
	e.first, e.calls, r.first = r.first, int32(r.called-r.first), r.called
}

// AddWait records that the worker only waited for a task from begin to end.
func (r *Recorder) AddWait(task string, at Place, begin, end time.Time) {
	if r == nil {
		return
	}
	r.waited.Store(0)
	r.add(task, at, begin, end, int64(end.Sub(begin)))
}

func (r *Recorder) add(task string, at Place, begin, end time.Time, waited int64) *entry {
	e := &r.ring[r.count%int64(len(r.ring))]
	dur := int64(end.Sub(begin))
	*e = entry{task: r.name(task), at: at, start: r.stamp(begin), dur: dur, wait: min(waited, dur)}
	r.count++
	return e
}

// name returns the index of a kind of task in names. There are few kinds, so a linear search is as
// fast as a map.
func (r *Recorder) name(task string) int32 {
	i := slices.Index(r.names, task)
	if i < 0 {
		i = len(r.names)
		r.names = append(r.names, task)
	}
	return int32(i)
}

// dropped returns the number of the oldest tasks that are overwritten, or whose kernels are.
func (r *Recorder) dropped() int64 {
	n := max(r.count-int64(len(r.ring)), 0)
	for i := n; i < r.count; i++ {
		if e := r.ring[i%int64(len(r.ring))]; e.calls > 0 && e.first < r.called-int64(len(r.kernels)) {
			n = i + 1
		}
	}
	return n
}

// each calls f for the tasks in the ring, the oldest first.
func (r *Recorder) each(f func(task string, e *entry)) {
	for i := r.dropped(); i < r.count; i++ {
		e := &r.ring[i%int64(len(r.ring))]
		f(r.names[e.task], e)
	}
}

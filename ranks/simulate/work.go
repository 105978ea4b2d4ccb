package simulate

import (
	"math"
	"slices"
	"time"

	"siafu/ranks/trace"
)

// Work is the time of a task. Several workers may share its Kernels, and one worker does the rest before them.
type Work struct {
	Seconds float64
	Kernels []Kernel
}

// Kernel is a call of a kernel with several chunks.
type Kernel struct {
	Chunks         int
	Slowest        int     // index of the longest chunk
	Total, Longest float64 // seconds of all chunks, and of the longest one; the others are equal
}

// workOf returns the work of a task without its waits.
func workOf(e *trace.Event) Work {
	w, sum := Work{Seconds: seconds(e)}, time.Duration(0)
	for _, k := range e.Kernels {
		sum += k.Total
		w.Kernels = append(w.Kernels, Kernel{int(k.Count), int(k.Slowest), k.Total.Seconds(), k.Longest.Seconds()})
	}
	if sum > e.Dur-e.Wait { // kernels ran during a wait
		w.Kernels = nil
	}
	return w
}

// plus returns the work of two tasks.
func (w Work) plus(o Work) Work {
	return Work{w.Seconds + o.Seconds, slices.Concat(w.Kernels, o.Kernels)}
}

// times returns x times the work. It has more chunks, and not longer ones.
func (w Work) times(x float64) Work {
	if x == 1 {
		return w
	}
	out := Work{Seconds: x * w.Seconds}
	for _, k := range w.Kernels {
		n := max(math.Round(x*float64(k.Chunks)), 1)
		k.Slowest, k.Chunks, k.Total = int(float64(k.Slowest)*n)/k.Chunks, int(n), x*k.Total
		k.Longest = min(max(k.Longest, k.Total/n), k.Total)
		out.Kernels = append(out.Kernels, k)
	}
	return out
}

// seconds returns the seconds of a chunk.
func (k *Kernel) seconds(chunk int) float64 {
	if chunk == k.Slowest {
		return k.Longest
	}
	return (k.Total - k.Longest) / float64(k.Chunks-1)
}

// division is a task whose kernels are divided among its worker and the workers without a task, as by
// kernels.Team.
type division struct {
	*workerPool
	flow        flow
	kernels     []Kernel // the running one and the later ones
	taken, left int      // chunks of the running kernel: that began, and that have not ended
	end         func()
}

// divide runs a task on its worker, whom others assist, and then calls end.
func (w *workerPool) divide(f flow, task Work, idle float64, end func()) {
	if w.s.Workers == 1 || w.s.Alone || len(task.Kernels) == 0 {
		w.work(task.Seconds, idle, end)
		return
	}
	rest := task.Seconds
	for _, k := range task.Kernels {
		rest -= k.Total
	}
	d := &division{workerPool: w, flow: f, kernels: task.Kernels, end: end}
	w.work(max(rest, 0), idle, func() {
		w.divided = append(w.divided, d)
		d.begin()
	})
}

// begin begins the next kernel, or ends the task.
func (d *division) begin() {
	if len(d.kernels) == 0 {
		d.divided = slices.DeleteFunc(d.divided, func(o *division) bool { return o == d })
		d.end()
		return
	}
	d.taken, d.left = 0, d.kernels[0].Chunks
	d.own()
	d.assist()
}

// open reports whether a chunk may begin.
func (d *division) open() bool { return len(d.kernels) > 0 && d.taken < d.kernels[0].Chunks }

// own runs the chunks of the task's worker.
func (d *division) own() {
	if d.open() {
		d.chunk(d.own)
	}
}

// chunk runs the next chunk on a worker, and then calls next for this worker.
func (d *division) chunk(next func()) {
	takes := d.kernels[0].seconds(d.taken)
	d.taken++
	d.work(takes, 0, func() {
		d.left--
		last := d.left == 0
		next()
		if last {
			d.kernels = d.kernels[1:]
			d.begin()
		}
	})
}

// assist lets each worker without a task run a chunk, of the tasks in turn. No more workers than processors are busy.
func (w *workerPool) assist() {
	for w.free > 0 && (w.s.Shared == 0 || w.s.Workers-w.free < w.s.Shared) {
		at := slices.IndexFunc(w.divided, (*division).open)
		if at < 0 {
			return
		}
		d := w.divided[at]
		w.divided = append(slices.Delete(w.divided, at, at+1), d)
		d.flow.accountTime()
		w.free--
		d.chunk(func() {
			d.flow.accountTime()
			w.free++
			d.flow.idle()
		})
	}
}

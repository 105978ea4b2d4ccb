package simulate

import (
	"math"
	"slices"
	"time"

	"siafu/kernels"
	"siafu/ranks/trace"
)

// Work is the time of a task. Several workers may share the chunks of its Kernels.
type Work struct {
	Serial  float64          // seconds of one worker, before the kernels
	Kernels []kernels.Chunks // all chunks but the longest one are equal
}

// workOf returns the work of a task without its waits.
func workOf(e *trace.Event) Work {
	serial := e.Dur - e.Wait
	for _, k := range e.Kernels {
		serial -= k.Total
	}
	if serial < 0 { // kernels ran during a wait
		return Work{Serial: seconds(e)}
	}
	return Work{serial.Seconds(), e.Kernels}
}

// seconds returns the seconds of one worker.
func (w Work) seconds() float64 {
	sum := w.Serial
	for _, k := range w.Kernels {
		sum += k.Total.Seconds()
	}
	return sum
}

// plus returns the work of two tasks.
func (w Work) plus(o Work) Work {
	return Work{w.Serial + o.Serial, slices.Concat(w.Kernels, o.Kernels)}
}

// times returns x times the work. It has more chunks, and not longer ones.
func (w Work) times(x float64) Work {
	if x == 1 {
		return w
	}
	out := Work{Serial: x * w.Serial}
	for _, k := range w.Kernels {
		n := max(math.Round(x*float64(k.Count)), 1)
		total := x * float64(k.Total)
		k.Slowest, k.Count = int32(float64(k.Slowest)*n/float64(k.Count)), int32(n)
		k.Total, k.Longest = time.Duration(total), time.Duration(min(max(float64(k.Longest), total/n), total))
		out.Kernels = append(out.Kernels, k)
	}
	return out
}

// faster returns the shorter work.
func (w Work) faster(o Work) Work {
	if o.seconds() < w.seconds() {
		return o
	}
	return w
}

// takeLeast makes one epoch of the recorded ones, in which each task takes its least time.
func (r *Recording) takeLeast() {
	for _, k := range r.Ranks {
		e := &k.Epochs[0]
		for _, o := range k.Epochs[1:] {
			e.Pull, e.Score, e.Flush = min(e.Pull, o.Pull), min(e.Score, o.Score), min(e.Flush, o.Flush)
			e.Gap, e.Left = min(e.Gap, o.Gap), min(e.Left, o.Left)
			for n := range e.Tasks {
				e.Tasks[n] = e.Tasks[n].faster(o.Tasks[n])
			}
		}
		for _, times := range k.pace {
			for at, w := range times {
				k.pace[0][at] = k.pace[0][at].faster(w)
			}
		}
		k.Epochs = k.Epochs[:1]
	}
}

// division is a task whose kernels are divided among its worker and the workers without a task, as by
// kernels.Team.
type division struct {
	*workerPool
	flow        flow
	kernels     []kernels.Chunks // the running one and the later ones
	taken, left int32            // chunks of the running kernel: that began, and that have not ended
	end         func()
}

// divide runs a task on its worker, whom others assist, and then calls end.
func (w *workerPool) divide(f flow, task Work, idle float64, end func()) {
	if w.s.Workers == 1 || w.s.Alone || task.Kernels == nil {
		w.work(task.seconds(), idle, end)
		return
	}
	d := &division{workerPool: w, flow: f, kernels: task.Kernels, end: end}
	w.work(task.Serial, idle, func() {
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
	d.taken, d.left = 0, d.kernels[0].Count
	d.own()
	d.assist()
}

// open reports whether a chunk may begin.
func (d *division) open() bool { return len(d.kernels) > 0 && d.taken < d.kernels[0].Count }

// own runs the chunks of the task's worker.
func (d *division) own() {
	if d.open() {
		d.chunk(d.own)
	}
}

// chunk runs the next chunk on a worker, and then calls next for this worker.
func (d *division) chunk(next func()) {
	takes := secondsOf(d.kernels[0], d.taken)
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

// secondsOf returns the seconds of a chunk.
func secondsOf(k kernels.Chunks, chunk int32) float64 {
	if chunk == k.Slowest {
		return k.Longest.Seconds()
	}
	return (k.Total - k.Longest).Seconds() / float64(k.Count-1)
}

// assist lets each worker without a task run a chunk, of the tasks in turn.
func (w *workerPool) assist() {
	for w.free > 0 {
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

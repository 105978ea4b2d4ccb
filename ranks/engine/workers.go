package engine

import (
	"time"

	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/inject"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
	"siafu/ranks/trace"
)

// workers are the goroutines that run a graph rank's tasks, one per processor, each with its
// kernels (teams) and its clock.
type workers struct {
	pool    *schedule.Pool
	teams   []kernels.Ops   // one per worker
	divided []*kernels.Team // those of teams whose work other workers may assist
	clocks  []*clock
	fetches *trace.Recorder // of the fetcher, nil without a timeline
	fault   *inject.Fault   // nil except in tests
	paused  bool            // the clocks
}

// Watcher is a worker's Ops that receives the kind and the epoch of the worker's tasks of training, and
// epoch 0 for other tasks.
type Watcher interface {
	kernels.Ops
	Begin(kind string, epoch int)
}

// newWorkers starts the workers of a rank, each with a recorder if there is a timeline.
func newWorkers(r Rank) (*workers, error) {
	c := &workers{fault: r.Fault}
	ops := r.Ops
	if ops == nil {
		ops = func() (kernels.Ops, error) {
			t, err := newTeam(&r.Config, 1)
			if err == nil {
				t.RoundOperands(r.Config.RoundsProducts())
			}
			return t, err
		}
	}
	for w := range r.Threads {
		o, err := ops()
		if err != nil {
			return nil, err
		}
		if r.Watch != nil {
			o = r.Watch(o) // measures calls, whose time must be that of one worker
		} else if t, ok := o.(*kernels.Team); ok {
			c.divided = append(c.divided, t)
		}
		var recorder *trace.Recorder
		if w < len(r.Recorders) {
			recorder = r.Recorders[w]
		}
		if t, ok := o.(*kernels.Team); ok && recorder != nil && r.Threads == 1 { // nobody assists the only worker
			t.Observe(func(k kernels.Chunks) {
				if !c.paused {
					recorder.AddKernel(k)
				}
			})
		}
		c.teams, c.clocks = append(c.teams, o), append(c.clocks, newClock(recorder))
	}
	if len(r.Recorders) > r.Threads {
		c.fetches = r.Recorders[r.Threads]
	}
	c.pool = schedule.NewPool(r.Threads, c.assist)
	return c, nil
}

// assist does a part of another worker's task, whose time counts as time of this task's kind.
func (c *workers) assist(worker int) time.Duration {
	began := time.Now()
	for k := 1; k < len(c.divided); k++ {
		at := (worker + k) % len(c.divided)
		kind := schedule.Stage(c.clocks[at].stage.Load()).Kind()
		if c.divided[at].Assist() {
			took := time.Since(began)
			c.clocks[worker].add(kind, took)
			return took
		}
	}
	return 0
}

func (c *workers) close() { c.pool.Close() }

// flow is a schedule.Flow whose tensor tasks may run on a backend.
type flow interface {
	schedule.Flow
	// finish records a task that the backend has run, and returns the flow's task.
	finish(task.Name) (schedule.Task, error)
}

func (c *workers) run(f flow, b tensor.Backend) error {
	finished := b.Finished()
	if finished == nil {
		return c.pool.Run(f)
	}
	over, heard := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		for {
			select {
			case <-over:
				return
			case end := <-finished:
				c.finish(f, end)
			}
		}
	}()
	err := c.pool.Run(f)
	if err != nil {
		b.Drain() // buffers of tasks may be freed now
	}
	close(over)
	<-heard
	return err
}

// finish reports the end of a task to the flow.
func (c *workers) finish(f flow, end tensor.Finished) {
	c.pool.Complete(f, func() (schedule.Task, error) {
		if end.Err != nil {
			return schedule.Task{}, end.Err
		}
		return f.finish(end.Task)
	})
}

// newOps returns an Ops for one interval, which borrows a worker's workspace for each task.
func (c *workers) newOps() kernels.Ops { return c.teams[0].Fork() }

// intervals returns the number of intervals for n own vertices with the given number of edges: the
// requested number, or the choice of the workers' Ops.
func (c *workers) intervals(cfg *config.Config, s model.Spec, n int, edges int64) int {
	count := cfg.IntervalsOf(s, n, edges)
	if cfg.Intervals > 0 {
		return count
	}
	return c.teams[0].Intervals(count)
}

// begin starts a task's time on a worker.
func (c *workers) begin(worker int, t schedule.Task) {
	c.fault.At(t.Stage.Kind(), t.Epoch)
	k := c.clocks[worker]
	k.epoch, k.layer, k.interval = t.Epoch, t.Layer, t.Interval
	k.stage.Store(int32(t.Stage))
	if o, ok := c.teams[worker].(Watcher); ok {
		if c.paused {
			t.Epoch = 0
		}
		o.Begin(t.Stage.Kind(), t.Epoch)
	}
	k.start()
}

// end ends a task's time on a worker.
func (c *workers) end(worker int, t schedule.Task) { c.clocks[worker].lap(t.Stage.Kind()) }

// wait counts a worker's wait for the inputs of a task.
func (c *workers) wait(worker int, t schedule.Task, began, ended time.Time) {
	k := c.clocks[worker]
	k.epoch, k.layer, k.interval = t.Epoch, t.Layer, t.Interval
	k.wait(t.Stage.Kind(), began, ended)
}

// fetched counts a worker's wait for the files of a task. read is the number of bytes that the worker
// read, or trace.None.
func (c *workers) fetched(worker int, t schedule.Task, read int64, began, ended time.Time) {
	k := c.clocks[worker]
	k.epoch, k.layer, k.interval, k.read = t.Epoch, t.Layer, t.Interval, read
	k.wait(trace.Fetch, began, ended)
}

// takeSeconds returns the seconds of each kind of task since the last call, in the order of
// kinds, the seconds of waiting for files, and the idle seconds: each the mean over the workers.
func (c *workers) takeSeconds() []float64 {
	sum := make([]float64, len(kinds)+2)
	for _, k := range c.clocks {
		for i, s := range k.takeSeconds() {
			sum[i] += s / float64(len(c.clocks))
		}
	}
	sum[len(kinds)+1] = c.pool.TakeWaited().Seconds()
	return sum
}

// pauseClocks stops the clocks. The returned function restarts the clocks and discards the time of
// the pause.
func (c *workers) pauseClocks() func() {
	before := c.clocks
	c.paused = true
	waited := c.pool.TakeWaited()
	c.clocks = make([]*clock, len(before))
	for w := range before {
		before[w].start() // earlier waits do not belong to the next task
		c.clocks[w] = newClock(nil)
	}
	return func() {
		c.clocks, c.paused = before, false
		c.pool.TakeWaited()
		c.pool.AddWaited(waited)
	}
}

// newTeam starts the workers of a rank on the requested kernels.
func newTeam(c *config.Config, threads int) (*kernels.Team, error) {
	t := kernels.NewTeam(threads)
	if err := t.Use(c.KernelVariant()); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

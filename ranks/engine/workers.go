package engine

import (
	"time"

	"siafu/kernels"
	"siafu/ranks/inject"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// workers are the goroutines that run a graph rank's tasks, one a processor, each
// with its kernels (teams) and its clock.
type workers struct {
	pool   *schedule.Pool
	teams  []*kernels.Team
	clocks []*clock
	fault  *inject.Fault // nil but in tests
}

// newWorkers starts so many workers, with a recorder each where there is a
// timeline, else none.
func newWorkers(threads int, kernel string, recorders []*trace.Recorder, f *inject.Fault) (*workers, error) {
	c := &workers{fault: f}
	for w := range threads {
		team, err := newTeam(kernel, 1)
		if err != nil {
			return nil, err
		}
		var r *trace.Recorder
		if recorders != nil {
			r = recorders[w]
		}
		c.teams, c.clocks = append(c.teams, team), append(c.clocks, newClock(r))
	}
	c.pool = schedule.NewPool(threads)
	return c, nil
}

func (c *workers) close() { c.pool.Close() }

// team makes the team of an interval, which borrows the memory of the worker that
// runs the interval's task.
func (c *workers) team() *kernels.Team {
	t := kernels.NewTeam(1)
	if t.Use(c.teams[0].Kernel()) != nil {
		panic("engine: the kernels in use are missing")
	}
	return t
}

// begin starts a task's time on a worker.
func (c *workers) begin(worker int, t schedule.Task) {
	c.fault.At(t.Stage.Kind(), t.Epoch)
	k := c.clocks[worker]
	k.epoch, k.layer, k.interval = t.Epoch, t.Layer, t.Interval
	k.start()
}

// end ends a task's time on a worker.
func (c *workers) end(worker int, t schedule.Task) { c.clocks[worker].lap(t.Stage.Kind()) }

// wait counts that a worker has waited for what a task needs.
func (c *workers) wait(worker int, t schedule.Task, began, ended time.Time) {
	k := c.clocks[worker]
	k.epoch, k.layer, k.interval = t.Epoch, t.Layer, t.Interval
	k.wait(t.Stage.Kind(), began, ended)
}

// take is the seconds of each kind of task, in the order of kinds, and at last
// those without a task: each the mean over the workers since the last call.
func (c *workers) take() []float64 {
	sum := make([]float64, len(kinds)+1)
	for _, k := range c.clocks {
		for i, s := range k.take() {
			sum[i] += s / float64(len(c.clocks))
		}
	}
	sum[len(kinds)] = c.pool.TakeWaited().Seconds()
	return sum
}

// mute stops the clocks until the function that it returns is called, which
// forgets what was done meanwhile.
func (c *workers) mute() func() {
	before := c.clocks
	waited := c.pool.TakeWaited()
	c.clocks = make([]*clock, len(before))
	for w := range before {
		before[w].start() // what it has waited so far is not the next task's
		c.clocks[w] = newClock(nil)
	}
	return func() {
		c.clocks = before
		c.pool.TakeWaited()
		c.pool.AddWaited(waited)
	}
}

// newTeam starts the workers of a rank on the kernels asked for.
func newTeam(kernel string, threads int) (*kernels.Team, error) {
	if kernel == "auto" {
		kernel, _ = kernels.Fastest()
	}
	t := kernels.NewTeam(threads)
	if err := t.Use(kernel); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

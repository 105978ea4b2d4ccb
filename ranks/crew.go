package ranks

import (
	"time"

	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/inject"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// crew is the workers of a graph rank, one a processor, each with its kernels
// and its clock.
type crew struct {
	pool   *schedule.Pool
	teams  []kernels.Ops
	clocks []*clock
	fault  *inject.Fault // nil but in tests
}

// newCrew starts workers, each with an Ops that ops makes. recorders are theirs
// where there is a timeline, else none.
func newCrew(workers int, ops func() (kernels.Ops, error), recorders []*trace.Recorder) (*crew, error) {
	c := &crew{}
	for w := range workers {
		team, err := ops()
		if err != nil {
			return nil, err
		}
		var r *trace.Recorder
		if recorders != nil {
			r = recorders[w]
		}
		c.teams, c.clocks = append(c.teams, team), append(c.clocks, newClock(r))
	}
	c.pool = schedule.NewPool(workers)
	return c, nil
}

func (c *crew) close() {
	if c != nil {
		c.pool.Close()
	}
}

// intervals is how many intervals n own vertices are divided into: as many as were
// asked for, else as the workers' Ops wish.
func (c *crew) intervals(cfg *Config, s model.Spec, n int) int {
	count := cfg.IntervalsOf(s, n)
	if cfg.Intervals > 0 {
		return count
	}
	return c.teams[0].Intervals(count)
}

// team is one for a single interval, to borrow a worker's workspace each time.
func (c *crew) team() kernels.Ops { return c.teams[0].Fork() }

// begin starts a task's time on a worker.
func (c *crew) begin(worker int, t schedule.Task) {
	c.fault.At(t.Stage.Kind(), t.Epoch)
	k := c.clocks[worker]
	k.epoch, k.layer, k.interval = t.Epoch, t.Layer, t.Interval
	k.start()
}

// end ends it and tells how long it was.
func (c *crew) end(worker int, t schedule.Task) time.Duration {
	return c.clocks[worker].lap(t.Stage.Kind())
}

// wait counts that a worker has waited for what a task needs.
func (c *crew) wait(worker int, t schedule.Task, began, ended time.Time) {
	k := c.clocks[worker]
	k.epoch, k.layer, k.interval = t.Epoch, t.Layer, t.Interval
	k.wait(t.Stage.Kind(), began, ended)
}

// take is the seconds of each kind of task, in the order of tasks, and at last
// those without a task: each the mean over the workers since the last call.
func (c *crew) take() []float64 {
	sum := make([]float64, len(tasks)+1)
	for _, k := range c.clocks {
		for i, s := range k.take() {
			sum[i] += s / float64(len(c.clocks))
		}
	}
	sum[len(tasks)] = c.pool.TakeWaited().Seconds()
	return sum
}

// mute stops the clocks until the function that it returns is called, which
// forgets what was done meanwhile.
func (c *crew) mute() func() {
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

package ranks

import (
	"slices"
	"time"
)

// clock adds up the seconds of each kind of task on one rank.
type clock struct {
	seconds map[string]float64
}

// tasks are the kinds of task in the order in which they are reported: gather,
// apply vertex and scatter with their gradients, loss, weight update (Dorylus,
// OSDI'21, §3).
var tasks = []string{"GA", "AV", "SC", "loss", "∇AV", "∇GA", "∇SC", "WU"}

// Tasks names the kinds of task whose times a run reports, in their order.
func Tasks() []string { return slices.Clone(tasks) }

func newClock() *clock { return &clock{seconds: map[string]float64{}} }

// step is a piece of work and the task that its time belongs to.
type step struct {
	task string
	work func() error
}

// run does the steps in order, up to the first error.
func (c *clock) run(steps ...step) error {
	for _, s := range steps {
		if err := c.do(s.task, s.work); err != nil {
			return err
		}
	}
	return nil
}

// do runs f and adds its time to a task.
func (c *clock) do(task string, f func() error) error {
	start := time.Now()
	err := f()
	c.seconds[task] += time.Since(start).Seconds()
	return err
}

// take returns the seconds in the order of tasks and starts again from zero.
func (c *clock) take() []float64 {
	out := make([]float64, len(tasks))
	for i, t := range tasks {
		out[i] = c.seconds[t]
	}
	clear(c.seconds)
	return out
}

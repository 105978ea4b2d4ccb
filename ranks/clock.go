package ranks

import (
	"slices"
	"time"
)

// clock adds up the seconds of each kind of task on one rank.
type clock struct {
	seconds map[string]float64
	lapped  time.Time
}

// tasks are the kinds of task in the order in which they are reported: gather,
// apply vertex and scatter with their gradients, loss, weight update (Dorylus,
// OSDI'21, §3).
var tasks = []string{"GA", "AV", "SC", "loss", "∇AV", "∇GA", "∇SC", "WU"}

// Tasks names the kinds of task whose times a run reports, in their order.
func Tasks() []string { return slices.Clone(tasks) }

func newClock() *clock { return &clock{seconds: map[string]float64{}} }

// start begins a lap.
func (c *clock) start() { c.lapped = time.Now() }

// lap adds the time since the last lap, or start, to a task.
func (c *clock) lap(task string) {
	now := time.Now()
	c.seconds[task] += now.Sub(c.lapped).Seconds()
	c.lapped = now
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

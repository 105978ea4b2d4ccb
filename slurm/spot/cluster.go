package spot

import (
	"math"
	"slices"
)

// Phase is what a cluster does during a second.
type Phase int

// The phases.
const (
	Useful        Phase = iota // training whose result is retained
	Wasted                     // training whose result was lost
	Saving                     // training waits for a checkpoint
	Recovering                 // rebuilding lost state without a restart
	Reconfiguring              // changing the division of work without a restart
	Restarting                 // restarting from a checkpoint
	Waiting                    // too few machines to train
	numPhases
)

// PhaseNames lists the phases in order.
var PhaseNames = []string{"useful", "wasted", "saving", "recovering", "reconfiguring", "restarting", "waiting"}

// System decides what happens to a training when its machines change. Its methods call those of
// Cluster.
type System interface {
	// Lost reacts to machines that are lost at one moment, at least one of them active. Cluster.Ready no
	// longer has them. It is not called while training waits or restarts: a loss in a restart begins
	// the restart again.
	Lost(c *Cluster, lost []*Machine)
	// Joined reacts to machines that can train from now. Cluster.Ready has them.
	Joined(c *Cluster, joined []*Machine)
	// Due is called at the end of a pause and at the time of WakeAt.
	Due(c *Cluster)
}

// Machine is a spot machine.
type Machine struct {
	Zone   int
	Active bool // works for the training; false: standby
	Stages int  // stages that it runs (Bamboo)
	ready  float64
}

// mark is a state of training to which a rollback returns.
type mark struct{ samples, useful, dropped float64 }

// Cluster is a simulated training on spot machines.
//
// Invariants: the seconds of all phases sum to Now. saved <= snapshot <= the current samples.
type Cluster struct {
	Inputs
	Now   float64
	Ready []*Machine // in order of joining

	Fatal, Reconfigurations, Restarts int

	phase    Phase
	rate     float64 // samples per second, while phase is Useful
	dropping float64 // samples dropped per second
	wake     float64
	begun    bool // has trained

	spent           [numPhases]float64
	samples         float64
	dropped         float64
	saved, snapshot mark
	complete, next  float64 // useful seconds until the checkpoint is complete, and until the next one begins
	dollars         float64
	machineSeconds  float64
	starting        []*Machine
	byNode          map[int]*Machine
}

// Train lets all work go on at a rate in samples per second. The pause ends.
func (c *Cluster) Train(rate float64) {
	c.phase, c.rate, c.dropping, c.wake, c.begun = Useful, rate, 0, infinity, true
}

// Training reports whether the cluster trains.
func (c *Cluster) Training() bool { return c.phase == Useful }

// Idle reports whether too few machines are present.
func (c *Cluster) Idle() bool { return c.phase == Waiting }

// Drop skips samples at a rate while training goes on.
func (c *Cluster) Drop(rate float64) { c.dropping = rate }

// Pause stops training for some seconds, after which the system's Due is called. A pause during a
// pause replaces it.
func (c *Cluster) Pause(p Phase, seconds float64) {
	switch p {
	case Reconfiguring:
		c.Reconfigurations++
	case Restarting:
		c.Restarts++
		c.complete, c.next = infinity, 0
	}
	c.phase, c.wake = p, c.Now+seconds
}

// Start begins training after Waiting: at once if nothing was trained yet, otherwise after a
// restart.
func (c *Cluster) Start() {
	if !c.begun {
		c.Pause(Waiting, 0)
		return
	}
	c.Pause(Restarting, c.Restart)
}

// Wait stops training until enough machines are present.
func (c *Cluster) Wait() { c.phase, c.wake = Waiting, infinity }

// WakeAt sets the time of Due while training goes on.
func (c *Cluster) WakeAt(seconds float64) { c.wake = max(seconds, c.Now) }

// WakeAtIterationEnd calls Due at the end of the current iteration.
func (c *Cluster) WakeAtIterationEnd() {
	if effective := c.rate * (1 - c.stalled()); effective > 0 {
		c.WakeAt(c.Now + (c.Batch-c.partial())/effective)
	}
}

// partial returns the samples of the iteration in progress.
func (c *Cluster) partial() float64 {
	whole := float64(int64((c.samples + 1e-9*c.Batch) / c.Batch))
	return max(c.samples-whole*c.Batch, 0)
}

// Rollback loses all work since the last complete checkpoint. A restart must follow.
func (c *Cluster) Rollback() {
	c.spent[Wasted] += c.spent[Useful] - c.saved.useful
	c.spent[Useful], c.samples, c.dropped = c.saved.useful, c.saved.samples, c.saved.dropped
	c.snapshot = c.saved
}

// LoseIteration loses the iteration in progress.
func (c *Cluster) LoseIteration() {
	lost := min(c.partial(), c.samples-c.snapshot.samples)
	if lost <= 0 || c.rate <= 0 {
		return
	}
	seconds := min(lost/c.rate, c.spent[Useful]-c.snapshot.useful)
	c.samples, c.spent[Useful], c.spent[Wasted] = c.samples-lost, c.spent[Useful]-seconds, c.spent[Wasted]+seconds
}

// Save makes the current state the last complete checkpoint.
func (c *Cluster) Save() {
	c.saved = c.mark()
	c.snapshot = c.saved
}

// FailFatally counts a loss of state that needs a restart from a checkpoint, and restarts.
func (c *Cluster) FailFatally() {
	c.Fatal++
	c.Rollback()
	c.Pause(Restarting, c.Restart)
}

// stalled returns the fraction of training time that waits for checkpoints.
func (c *Cluster) stalled() float64 {
	if c.CheckpointStall == 0 {
		return 0
	}
	return c.CheckpointStall / (max(c.CheckpointEvery, c.CheckpointTime) + c.CheckpointStall)
}

// advance moves the clock to a time.
func (c *Cluster) advance(to float64) {
	seconds := to - c.Now
	present := float64(len(c.Ready) + len(c.starting))
	c.machineSeconds += present * seconds
	c.dollars += present * seconds / 3600 * c.Price
	c.Now = to
	if c.phase != Useful {
		c.spent[c.phase] += seconds
		return
	}
	saving := seconds * c.stalled()
	c.spent[Saving] += saving
	c.train(seconds - saving)
}

// train adds useful seconds, with the checkpoints that begin and end in them. A checkpoint begins
// every CheckpointEvery seconds, or when the previous one is complete if that is later.
func (c *Cluster) train(seconds float64) {
	for seconds > 0 {
		if c.next <= 0 && c.complete == infinity {
			c.snapshot = c.mark()
			c.complete, c.next = c.CheckpointTime, c.CheckpointEvery
			// Whole periods before the last two need no steps of their own.
			if skip := math.Floor(seconds/max(c.CheckpointEvery, c.CheckpointTime)) - 2; skip > 0 {
				skip *= max(c.CheckpointEvery, c.CheckpointTime)
				c.progress(skip)
				c.snapshot, seconds = c.mark(), seconds-skip
			}
		}
		step := min(seconds, c.complete)
		if c.complete == infinity {
			step = min(seconds, c.next)
		}
		c.progress(step)
		c.complete, c.next, seconds = c.complete-step, c.next-step, seconds-step
		if c.complete <= 0 {
			c.saved, c.complete = c.snapshot, infinity
		}
	}
}

// progress adds useful seconds.
func (c *Cluster) progress(seconds float64) {
	c.samples += c.rate * seconds
	c.dropped += c.dropping * seconds
	c.spent[Useful] += seconds
}

// mark returns the current state of training.
func (c *Cluster) mark() mark { return mark{c.samples, c.spent[Useful], c.dropped} }

// apply applies a moment of a trace.
func (c *Cluster) apply(t *Trace, moment []Event, s System) {
	var lost []*Machine
	for _, e := range moment {
		if e.Add {
			m := &Machine{Zone: t.zone(e.Node), ready: c.Now + c.Startup}
			c.byNode[e.Node] = m
			c.starting = append(c.starting, m)
			continue
		}
		m := c.byNode[e.Node]
		delete(c.byNode, e.Node)
		if k := slices.Index(c.starting, m); k >= 0 {
			c.starting = slices.Delete(c.starting, k, k+1)
		} else if k := slices.Index(c.Ready, m); k >= 0 {
			c.Ready = slices.Delete(c.Ready, k, k+1)
			lost = append(lost, m)
		}
	}
	switch {
	case active(lost) == 0 || c.Idle():
	case c.phase == Restarting:
		c.Pause(Restarting, c.Restart)
	default:
		s.Lost(c, lost)
	}
}

// join makes machines ready whose start is complete.
func (c *Cluster) join(s System) {
	n := 0
	for n < len(c.starting) && c.starting[n].ready <= c.Now {
		n++
	}
	if n > 0 {
		joined := slices.Clone(c.starting[:n])
		c.Ready = append(c.Ready, joined...)
		c.starting = slices.Delete(c.starting, 0, n)
		s.Joined(c, joined)
	}
}

// finish returns the time at which all samples are trained at the current rate.
func (c *Cluster) finish() float64 {
	if c.Samples <= 0 || c.phase != Useful || c.rate <= 0 {
		return infinity
	}
	return c.Now + max(c.Samples-c.samples, 0)/(c.rate*(1-c.stalled()))
}

// Source is a trace, or a generator that extends one.
type Source struct {
	Trace  *Trace
	Extend func(*Trace) // nil: the trace ends
	Watch  func(View)   // called every Every seconds; nil: not
	Every  float64
}

// View is the state of a training at a time.
type View struct {
	Seconds, Samples, Dollars float64
	Machines                  int
}

// maxRunSeconds ends a run that does not reach its samples.
const maxRunSeconds = 3600 * 2000

// Simulate trains with a system until all samples are trained or the trace ends. The inputs must be
// valid.
func Simulate(in Inputs, source Source, s System) Run {
	c := &Cluster{Inputs: in, phase: Waiting, wake: infinity, complete: infinity, byNode: map[int]*Machine{}}
	t, event, watch := source.Trace, 0, infinity
	if source.Watch != nil {
		watch = source.Every
	}
	for {
		for source.Extend != nil && event >= len(t.Events) && t.Seconds < maxRunSeconds {
			source.Extend(t)
		}
		at := min(t.Seconds, c.wake, c.finish(), watch)
		if event < len(t.Events) {
			at = min(at, t.Events[event].Seconds)
		}
		if len(c.starting) > 0 {
			at = min(at, c.starting[0].ready)
		}
		done := at == c.finish()
		c.advance(max(at, c.Now))
		if c.Now >= watch {
			watch += source.Every
			source.Watch(View{c.Now, c.samples, c.dollars, len(c.Ready) + len(c.starting)})
		}
		if done || c.Now >= t.Seconds {
			return c.run(t, event)
		}
		if event < len(t.Events) && t.Events[event].Seconds <= c.Now {
			first := event
			for event < len(t.Events) && t.Events[event].Seconds == t.Events[first].Seconds {
				event++
			}
			c.apply(t, t.Events[first:event], s)
		}
		c.join(s)
		if c.wake <= c.Now {
			c.wake = infinity
			s.Due(c)
		}
	}
}

package engine

import (
	"slices"
	"time"

	"siafu/internal/wire"
	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
)

// AsyncScheduler is the scheduler of a graph rank in bounded asynchrony (Dorylus, OSDI'21,
// §5). Its intervals go through their epochs with the newest received rows of neighbours. Each
// interval is at most s epochs ahead of the slowest interval of all ranks. An AsyncScheduler
// handles no values: a training rank and a simulator use the same code.
//
// An interval's next task is queued when the previous one has ended. A queued task waits only
// for rows that have never arrived, and for conflicting readers and writers of its data
// (gate). A rank whose only tasks would use stale rows or stale weights first waits for a
// limited time (waitBudget).
//
// An AsyncScheduler is used by one goroutine at a time.
type AsyncScheduler struct {
	Outline
	Epochs int // number of epochs of the stretch; may be lowered

	executor       Executor
	trained        int // number of epochs before the stretch
	waitBudget     waitBudget
	chooser        *protocol.Chooser
	progress       *protocol.Progress
	intervalStates []intervalState
	gates          []*gate // by layer

	taskQueue
}

// taskQueue has the tasks of an AsyncScheduler that wait or run.
type taskQueue struct {
	// queue[:received] has the tasks that store received rows, in order of arrival. The rest of
	// queue has the tasks of intervals, in order of epochs and then of queueing. active has an
	// entry for each job that can run at once, on a worker or in the backend; an entry is in use
	// if its job is running.
	queue    []job
	received int
	active   []job
	running  int  // number of running jobs
	idle     bool // the last Next found no task
}

// Executor executes the decisions of an AsyncScheduler. It provides values and transport.
type Executor interface {
	// Oldest returns the lowest epoch of the ghost rows, or of the received gradients, that
	// a gather would read. If a row is missing, Oldest returns a number before the first epoch.
	Oldest(gather schedule.Task) int
	// Gradient returns the gradient of a layer's weights from an interval.
	Gradient(interval, layer int) []float32
	// Deliver sends messages, which are valid until the next ones are made.
	Deliver([]protocol.Message) error
	// Ended is called when an interval has finished an epoch, before other ranks are
	// notified.
	Ended(epoch int) error
}

// intervalState is the progress of an interval.
type intervalState struct {
	epoch         int  // the current epoch if busy, otherwise the last finished epoch
	busy          bool // the interval trains an epoch
	pendingServer int  // server with a pending request for the epoch's weights; noRank: none
}

// noRank means no rank: -1.
const noRank = -1

// job is a queued or running task.
type job struct {
	schedule.Task
	access  access
	running bool // in AsyncScheduler.active
}

// NewAsyncScheduler returns the scheduler of a graph rank of a setting. weights is the number
// of weights of the network. workers is the number of tasks that may run on this rank at once,
// in addition to the tasks of a backend. The wait budget of an epoch is multiple times the usual
// duration of an epoch, measured by the clock now. o.Ghosts reports whether this rank
// has ghosts.
func NewAsyncScheduler(o Outline, s protocol.Setting, rank, workers, weights int, multiple float64, now func() time.Time,
	executor Executor) *AsyncScheduler {
	c := &AsyncScheduler{
		Outline: o, executor: executor, trained: s.Trained, waitBudget: waitBudget{multiple: multiple, now: now},
		chooser: protocol.NewChooser(s, rank, len(o.Layers), weights), progress: protocol.NewProgress(s, rank),
		gates: make([]*gate, len(o.Layers)), taskQueue: taskQueue{active: make([]job, workers+o.Intervals)},
	}
	for l := range c.gates {
		c.gates[l] = newGate(o.Intervals, s.Trained)
	}
	for range o.Intervals {
		c.intervalStates = append(c.intervalStates, intervalState{epoch: s.Trained, pendingServer: noRank})
	}
	return c
}

// Start starts the epochs that may start.
func (c *AsyncScheduler) Start() error {
	c.waitBudget.start = c.waitBudget.now()
	return c.startReady()
}

// Finished reports whether every interval of every rank has finished the last epoch.
func (c *AsyncScheduler) Finished() bool { return c.progress.Slowest() >= c.Epochs && c.running == 0 }

// Waiting returns the number of tasks that wait for a worker.
func (c *AsyncScheduler) Waiting() int { return len(c.queue) }

// Next returns a task that may run now. Tasks that read no stale data come first.
func (c *AsyncScheduler) Next() (schedule.Task, bool) {
	k, held := c.findRunnable(false)
	if k < 0 && (held || c.nextLateInterval() != noRank) {
		c.waitBudget.startWait()
		if held && c.waitBudget.exhausted() {
			k, _ = c.findRunnable(true)
		}
	}
	if c.idle = k < 0; c.idle {
		return schedule.Task{}, false
	}
	c.waitBudget.endWait()
	j := c.queue[k]
	c.queue = slices.Delete(c.queue, k, k+1)
	if k < c.received {
		c.received--
	}
	c.running++
	return c.acquireLocks(j), true
}

// findRunnable returns the position in the queue of the first job that may run, or -1. It skips
// gathers that would read old rows, unless old is true. held reports whether it has skipped one.
func (c *AsyncScheduler) findRunnable(old bool) (k int, held bool) {
	for _, g := range c.gates {
		g.unclaim()
	}
	for k := range c.queue {
		j := &c.queue[k]
		switch {
		case !c.mayRun(j):
			c.gates[j.Layer].claim(j.access)
		case !old && isGather(j.Stage) && c.oldestInput(j.Task) < j.Epoch:
			held = true
		default:
			return k, held
		}
	}
	return -1, held
}

// isGather reports whether a task reads rows, or gradients, of all intervals with neighbours.
func isGather(s schedule.Stage) bool {
	return s == schedule.GatherGhosts || s == schedule.GatherBackward
}

// oldestInput returns the lowest epoch of the inputs of a gather: of own and ghost rows, or of
// gradients. For input that was never published it is at most trained.
func (c *AsyncScheduler) oldestInput(t schedule.Task) int {
	own := &c.gates[t.Layer].published[0]
	if t.Stage == schedule.GatherBackward {
		own = &c.gates[t.Layer].published[1]
	}
	return min(own.least, c.executor.Oldest(t))
}

// StartStale starts an epoch with stale weights if the rank has no other task and its wait budget
// is used up. It reports whether it has started one.
func (c *AsyncScheduler) StartStale() (bool, error) {
	k := noRank
	if c.idle && c.waitBudget.exhausted() {
		k = c.nextLateInterval()
	}
	if k == noRank {
		return false, nil
	}
	return true, c.beginEpoch(k, c.chooser.Fetch)
}

// WaitDeadline returns when the wait budget of the rank ends. It is zero if the rank is not
// waiting or has no limit.
func (c *AsyncScheduler) WaitDeadline() time.Time { return c.waitBudget.deadline() }

// Done records that a task has run, and queues its successors.
func (c *AsyncScheduler) Done(t schedule.Task) error {
	c.running--
	c.releaseLocks(t)
	if t.Interval == schedule.Whole {
		return nil
	}
	for next, more := c.fusedSuccessor(t); more; next, more = c.fusedSuccessor(t) {
		t = next
	}
	switch t.Stage {
	case schedule.Send:
		c.gates[t.Layer].published[0].set(t.Interval, t.Epoch)
	case schedule.SendBackward:
		c.gates[t.Layer].published[1].set(t.Interval, t.Epoch)
		c.countGrads(t)
	case schedule.EmitBackward:
		return c.pushGradient(t)
	}
	c.enqueue(c.successor(t))
	return nil
}

// QueueReceive queues the task that stores the rows of a message. Such tasks come before all
// others, in the order of arrival.
func (c *AsyncScheduler) QueueReceive(epoch, layer int, backward bool) {
	t := schedule.Task{Stage: schedule.Receive, Epoch: epoch, Layer: layer, Interval: schedule.Whole}
	if backward {
		t.Stage = schedule.ReceiveBackward
	}
	c.queue = slices.Insert(c.queue, c.received, job{Task: t, access: accessOf(t.Stage)})
	c.received++
}

// HandleMessage processes a message of package protocol: another rank's progress, or weights. With
// fetched weights an interval starts its epoch; pulled weights start none.
func (c *AsyncScheduler) HandleMessage(m protocol.Message) error {
	if m.Type == wire.Finished {
		if err := c.progress.Step(m); err != nil {
			return err
		}
		return c.startReady()
	}
	if err := c.chooser.Take(m); err != nil || m.Epoch == 0 {
		return err
	}
	c.intervalStates[m.Interval].pendingServer = noRank
	t := c.Outline.firstTask()
	t.Epoch, t.Interval = m.Epoch, m.Interval
	c.enqueue(t)
	return nil
}

// enqueue inserts a task after the tasks of its epoch and of earlier epochs, so that the
// slowest intervals run first.
func (c *AsyncScheduler) enqueue(t schedule.Task) {
	k := len(c.queue)
	for k > c.received && c.queue[k-1].Epoch > t.Epoch {
		k--
	}
	c.queue = slices.Insert(c.queue, k, job{Task: t, access: accessOf(t.Stage)})
}

// countGrads counts an interval whose gradient is published. After the rank's last interval of
// that epoch, it sends the gradients of ghosts to their owners.
func (c *AsyncScheduler) countGrads(t schedule.Task) {
	g := c.gates[t.Layer]
	if g.ready[t.Epoch]++; g.ready[t.Epoch] < c.Intervals {
		return
	}
	delete(g.ready, t.Epoch)
	if c.Ghosts {
		c.enqueue(schedule.Task{Stage: schedule.GhostGrads, Epoch: t.Epoch, Layer: t.Layer, Interval: schedule.Whole})
	}
}

// pushGradient pushes the gradient of a layer. After the first layer's gradient the interval
// has finished its epoch.
func (c *AsyncScheduler) pushGradient(t schedule.Task) error {
	m := c.chooser.Gradient(t.Interval, t.Epoch, t.Layer, c.executor.Gradient(t.Interval, t.Layer))
	if err := c.executor.Deliver([]protocol.Message{m}); err != nil {
		return err
	}
	if t.Layer > 0 {
		c.enqueue(afterPush(t))
		return nil
	}
	c.intervalStates[t.Interval].busy = false
	messages := c.progress.Finish(t.Interval, t.Epoch)
	if err := c.executor.Ended(t.Epoch); err != nil {
		return err
	}
	if err := c.executor.Deliver(messages); err != nil {
		return err
	}
	return c.startReady()
}

// startReady requests weights for each interval that may start an epoch, if the weights will include
// the gradients of the previous epoch.
func (c *AsyncScheduler) startReady() error {
	for k := range c.intervalStates {
		if c.mayStart(k) && !c.late(k) {
			if err := c.beginEpoch(k, c.chooser.FetchNewest); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginEpoch starts an interval's next epoch, and requests its weights.
func (c *AsyncScheduler) beginEpoch(k int, fetch func(interval, epoch, holds int) []protocol.Message) error {
	p := &c.intervalStates[k]
	p.busy = true
	p.epoch++
	out := fetch(k, p.epoch, 0)
	p.pendingServer = out[0].To
	return c.executor.Deliver(out)
}

// mayStart reports whether the staleness bound permits an interval to start its next epoch.
func (c *AsyncScheduler) mayStart(k int) bool {
	p := &c.intervalStates[k]
	return !p.busy && p.epoch < c.Epochs && c.progress.MayStart(p.epoch+1)
}

// late reports whether an interval has finished an epoch that other intervals have not. No weights
// include the gradients of that epoch yet.
func (c *AsyncScheduler) late(k int) bool { return c.progress.Slowest() < c.intervalStates[k].epoch }

// nextLateInterval returns the next interval that may start with old weights, or noRank if there is
// none or weights are in transit. Such intervals start one by one, when a worker is idle, because
// the new weights may arrive in between.
func (c *AsyncScheduler) nextLateInterval() int {
	next := noRank
	for k := range c.intervalStates {
		if c.intervalStates[k].pendingServer != noRank {
			return noRank
		}
		if next == noRank && c.mayStart(k) && c.late(k) {
			next = k
		}
	}
	return next
}

// EndEpoch ends an epoch of the rank after all of its intervals have finished it.
func (c *AsyncScheduler) EndEpoch() { c.waitBudget.nextEpoch() }

// finishedEpochs returns the number of epochs that all intervals of this rank have finished.
func (c *AsyncScheduler) finishedEpochs() int {
	least := c.Epochs
	for _, p := range c.intervalStates {
		done := p.epoch
		if p.busy {
			done--
		}
		least = min(least, done)
	}
	return least
}

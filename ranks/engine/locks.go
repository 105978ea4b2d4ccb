package engine

import (
	"slices"

	"siafu/ranks/schedule"
)

// lock is a read-write lock of tasks. A waiting writer precedes readers that are later in the
// queue.
//
//	writing  implies that readers is 0
//	claimed  is set during one search of the queue: a waiting writer was found
type lock struct {
	readers          int
	writing, claimed bool
}

// access is a task's mode of access to the rows of its layer, to the gradients, and to the
// memory for gradients of ghosts.
type access struct{ rows, grads, ghosts lockMode }

type lockMode uint8

const (
	none lockMode = iota
	read
	write
)

func accessOf(s schedule.Stage) access {
	switch s {
	case schedule.Send, schedule.Receive:
		return access{rows: write}
	case schedule.GatherGhosts:
		return access{rows: read}
	case schedule.SendBackward, schedule.ReceiveBackward:
		return access{grads: write}
	case schedule.GatherBackward:
		return access{rows: read, grads: read}
	case schedule.GhostGrads:
		return access{rows: read, grads: read, ghosts: write}
	}
	return access{}
}

// isFree reports whether a task may acquire the lock.
func (l *lock) isFree(m lockMode) bool {
	switch m {
	case read:
		return !l.writing && !l.claimed
	case write:
		return !l.writing && !l.claimed && l.readers == 0
	}
	return true
}

// claim registers a task that may not run yet. If it waits to write, later tasks in the queue cannot
// acquire the lock.
func (l *lock) claim(m lockMode) {
	if m == write && !l.isFree(m) {
		l.claimed = true
	}
}

func (l *lock) acquire(m lockMode) {
	switch m {
	case read:
		l.readers++
	case write:
		l.writing = true
	}
}

func (l *lock) release(m lockMode) {
	switch m {
	case read:
		l.readers--
	case write:
		l.writing = false
	}
}

// gate synchronises tasks on a layer's rows (async_rows.go).
//
//	ready[epoch]             is the number of this rank's intervals that have published their
//	                         gradients, if not all of them have
//	published[0], [1]        are the epochs of which intervals have published rows, and gradients
type gate struct {
	ready     map[int]int
	published [2]published

	// Locks of own and ghost rows, of own and received gradients, and of the memory for
	// gradients of ghosts.
	rows, grads, ghosts lock
}

func newGate(intervals, trained int) *gate {
	g := &gate{ready: map[int]int{}}
	for k := range g.published {
		g.published[k] = published{slices.Repeat([]int{trained}, intervals), trained}
	}
	return g
}

// published has the last epoch that each interval has published, and the lowest of them.
type published struct {
	epochs []int
	least  int
}

func (p *published) set(interval, epoch int) {
	before := p.epochs[interval]
	if p.epochs[interval] = epoch; before == p.least {
		p.least = slices.Min(p.epochs)
	}
}

// unclaim begins a search of the queue.
func (g *gate) unclaim() { g.rows.claimed, g.grads.claimed, g.ghosts.claimed = false, false, false }

// claim registers a job that may not run yet.
func (g *gate) claim(a access) {
	g.rows.claim(a.rows)
	g.grads.claim(a.grads)
	g.ghosts.claim(a.ghosts)
}

// mayRun reports whether all inputs and locks of a queued task are available.
func (c *AsyncScheduler) mayRun(j *job) bool {
	if (j.access == access{}) {
		return true
	}
	if isGather(j.Stage) && c.oldestInput(j.Task) <= c.trained {
		return false
	}
	g := c.gates[j.Layer]
	return g.rows.isFree(j.access.rows) && g.grads.isFree(j.access.grads) && g.ghosts.isFree(j.access.ghosts)
}

// acquireLocks acquires the locks of a job that runs now.
func (c *AsyncScheduler) acquireLocks(j job) schedule.Task {
	g := c.gates[j.Layer]
	g.rows.acquire(j.access.rows)
	g.grads.acquire(j.access.grads)
	g.ghosts.acquire(j.access.ghosts)
	k := slices.IndexFunc(c.active, func(a job) bool { return !a.running })
	j.Ref, j.running = int32(k), true
	c.active[k] = j
	return j.Task
}

// releaseLocks releases the locks of a job that has run.
func (c *AsyncScheduler) releaseLocks(t schedule.Task) {
	j := &c.active[t.Ref]
	g := c.gates[j.Layer]
	g.rows.release(j.access.rows)
	g.grads.release(j.access.grads)
	g.ghosts.release(j.access.ghosts)
	*j = job{}
}

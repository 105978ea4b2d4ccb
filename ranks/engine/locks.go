package engine

import (
	"slices"

	"siafu/ranks/schedule"
)

// lock keeps tasks that write something apart from those that read it. Many may
// read at once. A writer that waits is let in before readers that come later in
// the queue.
//
//	writing  implies readers is 0
//	claimed  holds during one search of the queue: a writer waits further ahead
type lock struct {
	readers          int
	writing, claimed bool
}

// access is what a task does with the rows of its layer, with the gradients, and
// with the memory for those of ghosts.
type access struct{ rows, grads, ghosts lockMode }

type lockMode uint8

const (
	none lockMode = iota
	read
	write
)

// accessOf is what tasks of a stage do.
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

// isFree reports whether a task may have the lock.
func (l *lock) isFree(m lockMode) bool {
	switch m {
	case read:
		return !l.writing && !l.claimed
	case write:
		return !l.writing && !l.claimed && l.readers == 0
	}
	return true
}

// claim is for a task that may not run yet: if it is going to write and cannot,
// tasks behind it in the queue do not get the lock either.
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

// gate keeps tasks on a layer's rows apart (async_rows.go).
//
//	ready[epoch]  is how many of this rank's intervals have published their
//	              gradients, less than all of them
//	shown[k][i]   is the last epoch of which interval i has published rows, k being
//	              0, and gradients, k being 1
type gate struct {
	ready          map[int]int
	publishedEpoch [2][]int

	// Of rows, own ones and ghosts', of gradients, own ones and those that have
	// come, and of the memory for gradients of ghosts.
	rows, grads, ghosts lock
}

func newGate(intervals, trained int) *gate {
	g := &gate{ready: map[int]int{}}
	for k := range g.publishedEpoch {
		g.publishedEpoch[k] = slices.Repeat([]int{trained}, intervals)
	}
	return g
}

// unclaim begins a search of the queue. A layer that does not gather, nil, has
// nothing to search for.
func (g *gate) unclaim() {
	if g != nil {
		g.rows.claimed, g.grads.claimed, g.ghosts.claimed = false, false, false
	}
}

// claim is for a job that may not run yet.
func (g *gate) claim(a access) {
	if g != nil {
		g.rows.claim(a.rows)
		g.grads.claim(a.grads)
		g.ghosts.claim(a.ghosts)
	}
}

// mayRun reports whether everything is there that a queued task needs.
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
	if g := c.gates[j.Layer]; g != nil {
		g.rows.acquire(j.access.rows)
		g.grads.acquire(j.access.grads)
		g.ghosts.acquire(j.access.ghosts)
	}
	k := slices.IndexFunc(c.active, func(a job) bool { return !a.running })
	j.Ref, j.running = int32(k), true
	c.active[k] = j
	return j.Task
}

// releaseLocks releases the locks of a job that has run.
func (c *AsyncScheduler) releaseLocks(t schedule.Task) {
	j := &c.active[t.Ref]
	if g := c.gates[j.Layer]; g != nil {
		g.rows.release(j.access.rows)
		g.grads.release(j.access.grads)
		g.ghosts.release(j.access.ghosts)
	}
	*j = job{}
}

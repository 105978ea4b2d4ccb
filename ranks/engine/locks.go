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

// free tells whether a task may have the lock.
func (l *lock) free(m lockMode) bool {
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
	if m == write && !l.free(m) {
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

// unclaim begins a search of the queue. A layer that does not gather, nil, has
// nothing to search for.
func (p *published) unclaim() {
	if p != nil {
		p.rows.claimed, p.grads.claimed, p.ghosts.claimed = false, false, false
	}
}

// claim is for a job that may not run yet.
func (p *published) claim(a access) {
	if p != nil {
		p.rows.claim(a.rows)
		p.grads.claim(a.grads)
		p.ghosts.claim(a.ghosts)
	}
}

// mayRun tells whether everything is there that a queued task needs.
func (f *async) mayRun(j *job) bool {
	p := f.layers[j.Layer]
	if (j.access == access{}) {
		return true
	}
	if gathers(j.Stage) && f.oldest(j.Task) <= f.setting.Trained {
		return false
	}
	return p.rows.free(j.access.rows) && p.grads.free(j.access.grads) && p.ghosts.free(j.access.ghosts)
}

// begin acquires the locks of a job that runs now.
func (f *async) begin(j job) schedule.Task {
	if p := f.layers[j.Layer]; p != nil {
		p.rows.acquire(j.access.rows)
		p.grads.acquire(j.access.grads)
		p.ghosts.acquire(j.access.ghosts)
	}
	k := slices.IndexFunc(f.active, func(a job) bool { return !a.runs })
	j.Ref, j.runs = int32(k), true
	f.active[k] = j
	return j.Task
}

// end releases the locks of a job that has run.
func (f *async) end(t schedule.Task) {
	j := &f.active[t.Ref]
	if p := f.layers[j.Layer]; p != nil {
		p.rows.release(j.access.rows)
		p.grads.release(j.access.grads)
		p.ghosts.release(j.access.ghosts)
	}
	*j = job{}
}

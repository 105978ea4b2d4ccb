//go:build mpi

package mpi

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"siafu/ranks/world"
)

// A wait first polls spins times and yields the processor between two polls. Then it sleeps between
// polls, for increasing times. A rank that waits inside MPI would take half a core from computing
// ranks on a machine with more ranks than cores.
const (
	spins    = 1000
	minPause = 20 * time.Microsecond
	maxPause = 200 * time.Microsecond
)

// stall describes a wait for reports if it lasts too long.
type stall struct {
	op   string
	rank int    // waiting rank of the world
	seq  uint64 // sequence number of the awaited collective; 0 for point to point
	peer int    // awaited rank of the world; -1 if unknown
}

// wrap names the operation in an error.
func (s stall) wrap(err error) error { return fmt.Errorf("%s: rank %d: %w", s.op, s.rank, err) }

// poll calls ready until it returns true or an error, or the deadline has passed.
func (c *comm) poll(s stall, ready func() (bool, error)) error {
	began := time.Now()
	for range spins {
		if done, err := ready(); done || err != nil {
			return err
		}
		runtime.Gosched()
	}
	w := &watch{c: c, stall: s, began: began, limits: *c.limits.Load()}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if done, err := ready(); done || err != nil {
			return err
		}
		if err := w.tick(time.Now()); err != nil {
			return err
		}
		c.Pause(pause)
	}
}

// Pause implements world.Pauser. Time.Sleep takes a millisecond and more in an idle process, because
// Go's scheduler then waits with the resolution of epoll.
func (c *comm) Pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal ends it early
}

// watch is a wait that has become long.
type watch struct {
	c      *comm
	stall  stall
	began  time.Time
	limits world.Limits

	heard  time.Time // time of the last call of listen
	told   bool      // this rank has sent its current collective to the others
	since  int       // number of calls of listen since then
	warned bool
}

// A long wait listens to the other ranks every listenEvery, or more often near its deadline. It
// must listen listenTimes times between its own note and its report, so that the other ranks have
// time to respond. On a very busy machine it therefore waits slightly beyond its deadline.
const (
	listenEvery = 20 * time.Millisecond
	listenTimes = 10
)

// tick listens, warns and checks the deadline as required at the time now.
func (w *watch) tick(now time.Time) error {
	waited := now.Sub(w.began)
	if now.Sub(w.heard) >= min(listenEvery, w.first()/(4*listenTimes)) {
		w.heard = now
		if err := w.exchange(waited); err != nil {
			return err
		}
	}
	if w.told && w.since < listenTimes {
		return nil
	}
	if w.limits.Abort > 0 && waited >= w.limits.Abort {
		return w.stalled(waited)
	}
	if w.limits.Warn > 0 && waited >= w.limits.Warn && !w.warned {
		w.warned = true
		if w.limits.Log != nil {
			w.limits.Log(w.stalled(waited).Error() + ", still waiting")
		}
	}
	return nil
}

// first returns the earlier deadline, or a day if there is none.
func (w *watch) first() time.Duration {
	first := 24 * time.Hour
	for _, limit := range []time.Duration{w.limits.Warn, w.limits.Abort} {
		if limit > 0 {
			first = min(first, limit)
		}
	}
	return first
}

// exchange receives the notes of the other ranks. After half of the first deadline, or if another
// rank waits in the same collective, it sends them this rank's current collective.
func (w *watch) exchange(waited time.Duration) error {
	p := w.c.p
	w.since++
	if err := p.listen(); err != nil || w.stall.seq == 0 || w.told {
		return err
	}
	if waited >= w.first()/2 || p.askedFor(w.c.id, w.stall.seq) {
		w.told, w.since = true, 0
		return w.c.tell(w.stall.seq)
	}
	return nil
}

// stalled describes the wait so far.
func (w *watch) stalled(waited time.Duration) *world.StallError {
	var missing []int
	switch {
	case w.stall.seq > 0:
		missing = w.c.p.silent(w.c, w.stall.seq)
	case w.stall.peer >= 0:
		missing = []int{w.stall.peer}
	}
	return w.limits.Stalled(w.stall.op, w.stall.rank, waited, missing, w.c.p.host)
}

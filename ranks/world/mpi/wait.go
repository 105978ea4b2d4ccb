//go:build mpi

package mpi

import (
	"fmt"
	"runtime"
	"time"

	"siafu/ranks/world"
)

// A wait first asks spins times, giving the processor away in between, and
// then sleeps between two questions, longer and longer. On a machine with more
// ranks than cores a rank that waits in MPI itself takes half a core from
// those that compute.
const (
	spins    = 1000
	minPause = 20 * time.Microsecond
	maxPause = 200 * time.Microsecond
)

// stall is what a wait says if it lasts too long.
type stall struct {
	op   string
	rank int    // who waits, of the world
	seq  uint64 // the collective waited for, 0 for point to point
	peer int    // the rank of the world waited for, -1 if unknown
}

// wrap names the operation in an error.
func (s stall) wrap(err error) error { return fmt.Errorf("%s: rank %d: %w", s.op, s.rank, err) }

// poll asks ready until it is true, fails, or the deadline has passed.
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
		time.Sleep(pause)
	}
}

// watch is a wait that has become long.
type watch struct {
	c      *comm
	stall  stall
	began  time.Time
	limits world.Limits

	heard  time.Time // when the other ranks were last listened to
	told   bool      // whether the others know where this rank is
	since  int       // how often it has listened since it told them
	warned bool
}

// A long wait listens to the other ranks as often as listenEvery, or more
// often if its deadline is near: it must listen several times between telling
// where it is and naming who has not answered, or it names those who had no
// time to answer. On a machine so busy that it cannot, it waits a little
// beyond its deadline instead.
const (
	listenEvery = 20 * time.Millisecond
	listenTimes = 10
)

// tick does what is due.
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

// first is the first deadline, a day if there is none.
func (w *watch) first() time.Duration {
	first := 24 * time.Hour
	for _, limit := range []time.Duration{w.limits.Warn, w.limits.Abort} {
		if limit > 0 {
			first = min(first, limit)
		}
	}
	return first
}

// exchange listens to the others and, once half of the first deadline has
// passed or another rank asks, tells them which collective this rank is in.
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

package inproc

import (
	"runtime"
	"time"

	"siafu/ranks/world"
)

// wait is one wait of a rank for others. Its timers are created when it first blocks.
type wait struct {
	c       *comm
	op      string
	missing func() []int // ranks of the world it waits for, nil if unknown
	began   time.Time
	warn    *time.Timer
	abort   *time.Timer
	leaving <-chan struct{} // closed when a rank leaves the world

	polls int         // number of polls for packets
	pause *time.Timer // until the next poll; nil before the first pause
}

// A rank that waits for other processes polls for packets: first spins times, yielding the
// processor in between, then with growing pauses.
const (
	spins    = 1000
	minPause = 20 * time.Microsecond
	maxPause = 200 * time.Microsecond
)

func (c *comm) wait(op string, missing func() []int) *wait {
	return &wait{c: c, op: op, missing: missing}
}

// peerLeft returns an error if an awaited rank has left. Call it before each until, and before the
// last test of the awaited event: the rank may have done its part before it left.
func (w *wait) peerLeft() error {
	left, changed := w.c.g.w.departed()
	w.leaving = changed
	if left == nil {
		return nil
	}
	for _, r := range w.missing() {
		if left[r] {
			return &world.LostError{Op: w.op, Rank: w.c.me(), Lost: r, Cause: errLeft, Name: w.c.g.w.share.Name}
		}
	}
	return nil
}

// until blocks until one of the events may have happened. The caller then tests it. A nil channel
// means no event. until returns an error when a rank has failed or the deadline has passed.
func (w *wait) until(events ...<-chan struct{}) error {
	if w.c.g.w.far != nil {
		if w.polls++; w.polls <= spins {
			runtime.Gosched()
			return nil
		}
		w.setPause(min(time.Duration(w.polls-spins)*minPause, maxPause))
	}
	w.start()
	events = append(events, nil)
	select {
	case <-events[0]:
	case <-events[1]:
	case <-w.leaving:
	case <-expiry(w.pause):
	case <-w.c.g.w.failed:
		return w.c.g.w.lost(w.op, w.c.me())
	case <-expiry(w.warn):
		w.warn = nil
		if log := w.c.limits.Load().Log; log != nil {
			log(w.stalled().Error() + ", still waiting")
		}
	case <-expiry(w.abort):
		return w.stalled()
	}
	return nil
}

// start sets the timers, once.
func (w *wait) start() {
	if !w.began.IsZero() {
		return
	}
	w.began = time.Now()
	l := w.c.limits.Load()
	if l.Warn > 0 {
		w.warn = time.NewTimer(l.Warn)
	}
	if l.Abort > 0 {
		w.abort = time.NewTimer(l.Abort)
	}
}

func (w *wait) setPause(d time.Duration) {
	if w.pause == nil {
		w.pause = time.NewTimer(d)
	} else {
		w.pause.Reset(d)
	}
}

// stop releases the timers.
func (w *wait) stop() {
	for _, t := range []*time.Timer{w.warn, w.abort, w.pause} {
		if t != nil {
			t.Stop()
		}
	}
}

// stalled describes the wait so far.
func (w *wait) stalled() *world.StallError {
	return w.c.limits.Load().Stalled(w.op, w.c.me(), time.Since(w.began), w.missing(), w.c.g.w.share.Hosts)
}

// expiry returns the channel of a timer, nil for a timer that is not set.
func expiry(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

package launch

import (
	"os"
	"syscall"
	"time"
)

// watcher hands signals on to one attempt.
type watcher struct {
	child    *os.Process
	path     string // status file
	stopping bool
	ints     int
	held     []syscall.Signal // until a rank takes signals
	up       bool             // one does, or nobody knows
	linger   time.Duration
	over     time.Time // when rank 0 was seen to have ended
	log      func(format string, args ...any)
}

// until hands on signals until the attempt has ended.
func (w *watcher) until(exited <-chan struct{}, signals <-chan os.Signal) {
	look := time.NewTicker(upPoll)
	defer look.Stop()
	deadline := time.Now().Add(upLimit)
	for {
		select {
		case <-exited:
			return
		case s := <-signals:
			w.take(s)
		case now := <-look.C:
			w.look(now, now.After(deadline))
			if w.up {
				look.Reset(calmPoll)
			}
		}
		if w.up {
			w.release()
		}
	}
}

// look reads the status file. A rank that is stopped where nobody waits for it
// any more, past the end of the run, would keep the launcher for ever.
func (w *watcher) look(now time.Time, late bool) {
	s := readStatus(w.path)
	w.up = w.up || s.ready || late
	switch {
	case s.code < 0:
	case w.over.IsZero():
		w.over = now
	case now.Sub(w.over) > w.linger:
		w.log("rank 0 ended %v ago, and another rank has not: it is killed", w.linger)
		w.kill()
		w.linger *= 2
	}
}

// take decides what a signal of this process means for the ranks.
func (w *watcher) take(s os.Signal) {
	switch s {
	case syscall.SIGUSR1:
		w.held = append(w.held, syscall.SIGUSR1)
		return
	case syscall.SIGINT:
		w.ints++
	}
	if w.ints == 2 {
		w.kill()
	}
	if !w.stopping {
		w.stopping = true
		w.held = append(w.held, syscall.SIGUSR2)
	}
}

// release sends what was held.
func (w *watcher) release() {
	for _, s := range w.held {
		_ = w.child.Signal(s) // it may have ended meanwhile
	}
	w.held = nil
}

// kill ends the launcher, which ends its ranks, and makes sure of it.
func (w *watcher) kill() {
	_ = w.child.Signal(syscall.SIGINT)
	time.AfterFunc(killWait, func() { _ = w.child.Kill() })
}

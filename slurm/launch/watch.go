package launch

import (
	"os"
	"syscall"
	"time"
)

// watcher forwards signals to one attempt.
type watcher struct {
	child    *os.Process
	path     string // status file
	stopping bool
	ints     int              // number of received SIGINT
	held     []syscall.Signal // signals to forward when a rank is ready
	up       bool             // a rank is ready, or the time limit has passed
	linger   time.Duration
	over     time.Time // time at which the end of rank 0 was noticed
	log      func(format string, args ...any)
}

// until forwards signals until the attempt has ended.
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

// look reads the status file. Some time after the end of rank 0 it kills the launcher, because a
// rank that hangs after the end of the run would block the launcher forever.
func (w *watcher) look(now time.Time, late bool) {
	s := readStatus(w.path)
	w.up = w.up || s.ready || late
	switch {
	case s.code < 0:
	case w.over.IsZero():
		w.over = now
	case now.Sub(w.over) > w.linger:
		w.log("the run ended %v ago, and another rank has not: it is killed", w.linger)
		w.kill()
		w.linger *= 2
	}
}

// take translates a signal of this process into a signal for the ranks.
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

// release sends the held signals.
func (w *watcher) release() {
	for _, s := range w.held {
		_ = w.child.Signal(s) // fails if the child has ended
	}
	w.held = nil
}

// kill ends the launcher, which ends its ranks. If the launcher does not end, kill kills it.
func (w *watcher) kill() {
	_ = w.child.Signal(syscall.SIGINT)
	time.AfterFunc(killWait, func() { _ = w.child.Kill() })
}

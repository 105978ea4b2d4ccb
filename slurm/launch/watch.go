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
}

// until hands on signals until the attempt has ended.
func (w *watcher) until(exited <-chan struct{}, signals <-chan os.Signal) {
	look := time.NewTicker(upPoll)
	defer look.Stop()
	up, deadline := false, time.Now().Add(upLimit)
	for {
		select {
		case <-exited:
			return
		case s := <-signals:
			w.take(s)
		case <-look.C:
			up = up || readStatus(w.path).ready || time.Now().After(deadline)
		}
		if up {
			look.Stop()
			w.release()
		}
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

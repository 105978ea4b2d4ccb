package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watcher forwards signals to one attempt.
type watcher struct {
	child    *os.Process
	path     string // status file
	stopping bool
	stop     syscall.Signal   // for the ranks to stop
	ints     int              // number of received SIGINT
	held     []syscall.Signal // signals to forward when a rank is ready
	up       bool             // a rank is ready, or the time limit has passed
	linger   time.Duration
	survives bool      // all ranks end a run together, and the one that leads may belong to another launcher
	over     time.Time // time at which the end of rank 0 was noticed
	log      func(format string, args ...any)

	// forwarded is the number of signals that the launcher has forwarded. nil: it is unknown.
	forwarded func() int
	sent      []syscall.Signal // to the launcher, which has not forwarded them
	confirmed int              // signals that the launcher has forwarded, or that were sent to the ranks
	since     time.Time        // of the newest one in sent
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
	case s.code < 0 && (s.other < 0 || !w.survives):
	case w.over.IsZero():
		w.over = now
	case now.Sub(w.over) > w.linger:
		w.log("the run ended %v ago, and another rank or the launcher has not: it is killed", w.linger)
		w.kill()
		w.linger *= 2
	}
	w.bypass(now)
}

// bypass sends signals to the ranks of this host if the launcher has not forwarded them in time: it is stopped or
// hangs, such as in a write to a full pipe. A rank that receives a signal stops the others.
func (w *watcher) bypass(now time.Time) {
	if len(w.sent) == 0 || w.forwarded == nil {
		return
	}
	if done := w.forwarded(); done >= w.confirmed+len(w.sent) {
		w.confirmed, w.sent = done, nil
		return
	}
	if now.Sub(w.since) < forwardTime {
		return
	}
	w.log("the launcher has not forwarded a signal for %v: the ranks of this host receive it directly", forwardTime)
	for _, s := range w.sent {
		signalAll(children(w.child.Pid), s)
	}
	w.confirmed, w.sent = w.confirmed+len(w.sent), nil
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
		w.stopping, w.linger = true, min(w.linger, stopLinger)
		w.held = append(w.held, w.stop)
	}
}

// release sends the held signals.
func (w *watcher) release() {
	for _, s := range w.held {
		_ = w.child.Signal(s) // fails if the child has ended
		w.sent, w.since = append(w.sent, s), time.Now()
	}
	w.held = nil
}

// kill ends the launcher, which ends its ranks. If the launcher does not end, kill kills it and the ranks of this
// host.
func (w *watcher) kill() {
	_ = w.child.Signal(syscall.SIGINT)
	time.AfterFunc(killWait, func() {
		ranks := children(w.child.Pid)
		if w.child.Kill() == nil {
			signalAll(ranks, syscall.SIGKILL)
		}
	})
}

// stopped reports whether a process is stopped, by a signal or a debugger.
func stopped(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // it may have ended
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(strings.ToLower(rest), "t")
}

// children returns the processes that a process has started, where the kernel lists them.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range lists {
		text, _ := os.ReadFile(path) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// signalAll sends a signal to the process groups of processes: mpirun gives each rank a group of its own, with the
// processes of a container.
func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		if group, err := syscall.Getpgid(pid); err == nil && group == pid {
			pid = -pid
		}
		_ = syscall.Kill(pid, s) // fails if it has ended
	}
}

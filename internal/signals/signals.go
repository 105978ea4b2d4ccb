package signals

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Request is a request to a run at the end of an epoch. A greater request includes the smaller
// ones.
type Request uint8

// The requests, in their order.
const (
	None       Request = iota
	Checkpoint         // save and continue
	Stop               // save and exit with code 75
)

func (r Request) String() string {
	switch r {
	case Checkpoint:
		return "checkpoint"
	case Stop:
		return "stop"
	}
	return "none"
}

// CodeNow is the exit code after a second SIGINT: 128 plus the signal's number, as in shells.
const CodeNow = 130

// echo is the time within which a second SIGINT counts as the first one, repeated by a launcher.
const echo = 500 * time.Millisecond

// Options contains the options of a Watcher.
type Options struct {
	Grace time.Duration  // from a SIGTERM to the kill; 0: unknown
	Ranks bool           // other processes take part: they may be lost, and their launcher then sends SIGTERM
	Take  func()         // is called at each signal, before Log, and must not block; nil: nothing
	Log   func(string)   // prints a line for the user; nil: prints nothing
	Exit  func(code int) // nil: os.Exit
}

// Watcher catches signals until Close. Several goroutines may call its methods concurrently.
type Watcher struct {
	options Options
	in      chan os.Signal
	done    chan struct{}
	now     func() time.Time

	mu        sync.Mutex
	pending   Request
	first     arrival   // the signal that requested Stop
	interrupt time.Time // the first SIGINT
	epoch     time.Duration
}

// arrival is a signal and its time.
type arrival struct {
	signal os.Signal
	at     time.Time
}

// Watch begins to catch signals.
func Watch(o Options) *Watcher {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Take == nil {
		o.Take = func() {}
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	w := &Watcher{options: o, in: make(chan os.Signal, 8), done: make(chan struct{}), now: time.Now}
	signal.Notify(w.in, Signals()...)
	go w.loop()
	return w
}

// Signals returns the signals to catch. A closing terminal sends SIGHUP. A signal that was
// ignored at the start (nohup) stays ignored.
func Signals() []os.Signal {
	list := []os.Signal{syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

func (w *Watcher) loop() {
	defer close(w.done)
	for s := range w.in {
		say, exit := w.take(s)
		w.options.Take()
		if say != "" {
			w.options.Log(say)
		}
		if exit {
			w.options.Exit(CodeNow)
		}
	}
}

// Close ends the catching. Signals then have their default effect.
func (w *Watcher) Close() {
	signal.Stop(w.in)
	close(w.in)
	<-w.done
}

// take records a signal. It returns a message for the user and whether to exit now.
func (w *Watcher) take(s os.Signal) (say string, exit bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if s == syscall.SIGUSR1 {
		w.pending = max(w.pending, Checkpoint)
		return "signal=USR1 the checkpoint is written at the end of this epoch", false
	}
	if s == syscall.SIGINT {
		if !w.interrupt.IsZero() {
			return "", now.Sub(w.interrupt) >= echo
		}
		w.interrupt = now
	}
	if w.pending == Stop {
		return "", false
	}
	w.pending, w.first = Stop, arrival{s, now}
	return fmt.Sprintf("signal=%s the run stops at the end of this epoch, with a checkpoint%s", short(s), w.doubt()), false
}

func short(s os.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "INT"
	case syscall.SIGHUP:
		return "HUP"
	}
	return "TERM"
}

// doubt returns a clause for the message if an epoch does not fit into the grace period of a
// SIGTERM, or other ranks must take part. The lock is held.
func (w *Watcher) doubt() string {
	switch grace := w.options.Grace; {
	case w.first.signal == syscall.SIGINT:
		return "; a second SIGINT stops it now, without one"
	case w.first.signal == syscall.SIGTERM && grace > 0 && w.epoch > grace:
		return fmt.Sprintf("; an epoch takes %s, longer than the grace period of %s before the process is killed: send the signal earlier",
			round(w.epoch), round(grace))
	case w.first.signal == syscall.SIGTERM && w.options.Ranks:
		return ", unless a rank was killed"
	}
	return ""
}

// round rounds to about three digits.
func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// Took records the duration of an epoch and its checkpoint.
func (w *Watcher) Took(epoch time.Duration) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch = epoch
}

// Pending returns the request that has not been Served. A nil Watcher has none.
func (w *Watcher) Pending() Request {
	if w == nil {
		return None
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending
}

// Served ends a request for a checkpoint, after the checkpoint was written. It also ends requests
// during the writing, since a new checkpoint would be the same. Stop is not affected.
func (w *Watcher) Served() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending == Checkpoint {
		w.pending = None
	}
}

// Stopping returns the signal that requested Stop and its time; nil before.
func (w *Watcher) Stopping() (os.Signal, time.Time) {
	if w == nil {
		return nil, time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first.signal, w.first.at
}

// slurmKillWait is Slurm's default time between SIGTERM and SIGKILL. An administrator may have
// changed it.
const slurmKillWait = 30 * time.Second

// Grace returns the time from a SIGTERM to the kill. The first that is set applies: flag,
// SIAFU_GRACE in seconds (set by a batch script that requests an early signal), Slurm's default
// KillWait in a Slurm job, or 0.
func Grace(flag time.Duration, getenv func(string) string) time.Duration {
	if flag > 0 {
		return flag
	}
	if s, err := strconv.Atoi(getenv("SIAFU_GRACE")); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	if getenv("SLURM_JOB_ID") != "" {
		return slurmKillWait
	}
	return 0
}

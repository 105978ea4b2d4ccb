package inject

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// Variable names the environment variable that selects the fault.
const Variable = "SIAFU_FAULT"

// Moments that several packages or roles have.
const (
	Start   = "start"
	Opened  = "opened"
	Eval    = "eval"
	Total   = "total"   // before ranks add up sums over all vertices
	Fetch   = "fetch"   // before ranks fetch the inputs of ghosts whose rows they compute
	Predict = "predict" // before a rank learns how its own rows change
	Task    = "task"    // a bridge receives a task
	Save    = "save"    // "save FILE" while a checkpoint is written
	Finish  = "finish"
	Summary = "summary"
)

// Fault is the fault of this rank. A nil Fault never occurs.
type Fault struct {
	moment string
	epoch  int
	kind   string
	strike func()
	mark   string
	once   sync.Once
}

// poll is the interval in which a waiting rank checks whether it may continue.
const poll = 2 * time.Millisecond

// New returns the fault of a rank according to the environment, or nil. An invalid variable is a
// Usage fault.
func New(getenv func(string) string, rank int) (*Fault, error) {
	text := getenv(Variable)
	if text == "" {
		return nil, nil
	}
	part := strings.SplitN(text, ":", 5)
	if len(part) < 5 {
		return nil, unreadable(text)
	}
	victim, errRank := strconv.Atoi(part[0])
	epoch, errEpoch := strconv.Atoi(part[2])
	f := &Fault{moment: part[1], epoch: epoch, kind: part[3], mark: part[4]}
	f.strike = f.action()
	if errRank != nil || errEpoch != nil || f.strike == nil || f.mark == "" {
		return nil, unreadable(text)
	}
	if victim != rank {
		return nil, nil
	}
	return f, nil
}

func unreadable(text string) error {
	return fault.New(fault.Usage, "inject", "", "%s=%q", Variable, text).
		Then("it must be RANK:MOMENT:EPOCH:KIND:MARK; for tests only")
}

// Kinds after which the run continues in another view.
const (
	End  = "end"
	Move = "move"
)

// Replaces reports whether the environment has a fault that replaces the view, for any rank.
func Replaces(getenv func(string) string) bool {
	part := strings.SplitN(getenv(Variable), ":", 5)
	return len(part) == 5 && (part[3] == End || part[3] == Move)
}

// Views sets the functions that end the goroutines of this rank and that request another view.
// Call it before the first At.
func (f *Fault) Views(end, move func()) {
	switch {
	case f == nil:
	case f.kind == End:
		f.strike = end
	case f.kind == Move:
		f.strike = move
	}
}

// action returns the function that causes the fault; nil for an unknown kind.
func (f *Fault) action() func() {
	switch f.kind {
	case End, Move:
		return func() {} // until Views
	case "kill":
		return func() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	case "stop":
		return stop
	case "exit":
		return func() { os.Exit(1) }
	case "wait":
		return f.wait
	}
	return nil
}

// stop stops this process. It sends the signal to the calling thread: if another thread received
// it, the calling thread would continue for a moment.
func stop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// wait waits for the file MARK.go.
func (f *Fault) wait() {
	for {
		if _, err := os.Stat(f.mark + ".go"); err == nil {
			return
		}
		time.Sleep(poll)
	}
}

// At causes the fault if the moment and the epoch are the selected ones. Several workers may call
// it concurrently.
func (f *Fault) At(moment string, epoch int) {
	if f == nil || f.moment != moment || epoch < f.epoch {
		return
	}
	f.once.Do(func() {
		mark, err := os.OpenFile(f.mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return // the fault occurred before a restart
		}
		_ = mark.Close()
		f.strike()
	})
}

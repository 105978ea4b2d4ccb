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

// Variable names the environment variable that chooses the fault.
const Variable = "SIAFU_FAULT"

// Moments that several packages or roles have.
const (
	Start   = "start"
	Opened  = "opened"
	Eval    = "eval"
	Total   = "total" // of columns over all vertices, which ranks are about to add up
	Fetch   = "fetch" // of the inputs of ghosts whose rows are computed here
	Task    = "task"  // that comes to a bridge
	Save    = "save"  // "save FILE" while a checkpoint is written
	Finish  = "finish"
	Summary = "summary"
)

// Fault is what strikes this rank. A nil Fault never does.
type Fault struct {
	moment string
	epoch  int
	kind   string
	strike func()
	mark   string
	once   sync.Once
}

// poll is how often a rank that stands still looks whether it may continue.
const poll = 2 * time.Millisecond

// New returns the fault that the environment has for a rank of the world; nil if it
// has none. What it cannot read is a Usage fault.
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
	f.strike = f.real()
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

// Replaces reports whether the environment has a fault for any rank after which the
// run continues in another view.
func Replaces(getenv func(string) string) bool {
	part := strings.SplitN(getenv(Variable), ":", 5)
	return len(part) == 5 && (part[3] == End || part[3] == Move)
}

// Views says what ends the goroutines of this rank and what asks for another view,
// before there is anything for the fault to strike.
func (f *Fault) Views(end, move func()) {
	switch {
	case f == nil:
	case f.kind == End:
		f.strike = end
	case f.kind == Move:
		f.strike = move
	}
}

// real is what a kind of fault does; nil for one that there is not.
func (f *Fault) real() func() {
	switch f.kind {
	case End, Move:
		return func() {} // until Views
	case "kill":
		return func() { die(syscall.SIGKILL) }
	case "stop":
		return stop
	case "exit":
		return func() { os.Exit(1) }
	case "wait":
		return f.wait
	}
	return nil
}

// die sends this process a signal that ends it, and does nothing more.
func die(s syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), s)
	select {}
}

// stop stops this process. The signal goes to this very thread, or it would run
// on for a moment while another one takes it.
func stop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// wait stands still until there is a file beside the mark.
func (f *Fault) wait() {
	for {
		if _, err := os.Stat(f.mark + ".go"); err == nil {
			return
		}
		time.Sleep(poll)
	}
}

// At strikes if the rank has come to the moment that was chosen. It may be
// called by several workers at once.
func (f *Fault) At(moment string, epoch int) {
	if f == nil || f.moment != moment || epoch < f.epoch {
		return
	}
	f.once.Do(func() {
		mark, err := os.OpenFile(f.mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return // it has struck before a restart
		}
		_ = mark.Close()
		f.strike()
	})
}

package inproc

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// Run starts size ranks and returns when all of them have returned. Each rank is a goroutine that
// runs body with its own communicator. The error is the first failure in time that is not the
// consequence of another rank's failure: an error of body, the value and stack of a panic, or the
// cause of an abort. Run panics if size < 1.
func Run(size int, body func(c world.Comm) error) error {
	return RunShare(Share{Size: size}, body)
}

// RunShare runs the ranks of a world that are in this process, like Run. All processes of the world
// must call it, and each rank must be in exactly one share.
func RunShare(s Share, body func(c world.Comm) error) error {
	if s.Size < 1 {
		panic("inproc: a world must have 1 rank or more")
	}
	if s.Name == nil {
		s.Name = func(rank int) string { return "rank " + strconv.Itoa(rank) }
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	w := &universe{
		share: s, name: host, far: s.Remote, here: make([]bool, s.Size), groups: map[uint64]*group{}, pendingParts: map[*part]struct{}{},
		failed: make(chan struct{}), left: make([]bool, s.Size), leaving: make(chan struct{}),
	}
	all := world.All(s.Size)
	if s.Here == nil {
		s.Here = all
	}
	for _, r := range s.Here {
		w.here[r] = true
	}
	g := newGroup(w, all, 1)
	var done sync.WaitGroup
	for _, r := range s.Here {
		done.Go(func() { w.runRank(r, func() error { return body(g.comm(r, world.Limits{})) }) })
	}
	done.Wait()
	for p := range w.pendingParts {
		for _, l := range p.pendingSends {
			s.Remote.Abandon(l.request)
		}
	}
	return w.cause()
}

// universe is the state that the ranks of one Run share.
type universe struct {
	share Share
	name  string // of this host
	far   Remote // nil if all ranks are here
	here  []bool // by rank: whether it is a goroutine of this process

	fetching sync.Mutex // held while a rank receives packets

	mu           sync.Mutex
	groups       map[uint64]*group  // registered for packets
	pendingParts map[*part]struct{} // parts of collectives with blocks in transit at the last test
	failure      *failure
	failed       chan struct{} // closed when failure is set
	left         []bool        // ranks whose body has returned
	leaving      chan struct{} // closed and replaced when a rank leaves
}

// isRemote reports whether a rank is in another process.
func (w *universe) isRemote(rank int) bool { return !w.here[rank] }

func (w *universe) host(rank int) string {
	if w.share.Hosts == nil {
		return w.name
	}
	return w.share.Hosts[rank]
}

// failure is the first rank that failed, and why.
type failure struct {
	rank  int
	cause error
}

// runRank runs one rank's body and reports its end.
func (w *universe) runRank(rank int, body func() error) {
	returned := false
	defer func() {
		v := recover()
		switch err, isErr := v.(error); {
		case isErr:
			w.fail(rank, fmt.Errorf("%s panicked: %w\n%s", w.share.Name(rank), err, debug.Stack()))
		case v != nil:
			w.fail(rank, fmt.Errorf("%s panicked: %v\n%s", w.share.Name(rank), v, debug.Stack()))
		case !returned: // runtime.Goexit, such as testing's FailNow
			w.fail(rank, fmt.Errorf("%s ended its goroutine", w.share.Name(rank)))
		}
		w.leave(rank)
	}()
	err := body()
	returned = true
	if err != nil {
		w.fail(rank, err)
	}
}

// fail records the first failure and wakes all waiting ranks. A consequence is never first:
// before a rank sees it, the cause is recorded.
func (w *universe) fail(rank int, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		w.failure = &failure{rank, cause}
		close(w.failed)
	}
}

// cause returns the error of Run.
func (w *universe) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		return nil
	}
	return w.failure.cause
}

// lost returns the error of a wait of rank if another rank has failed, or nil.
func (w *universe) lost(op string, rank int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		return nil
	}
	return &world.LostError{Op: op, Rank: rank, Lost: w.failure.rank, Cause: w.failure.cause, Name: w.share.Name}
}

// leave records that a rank has returned.
func (w *universe) leave(rank int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left[rank] = true
	close(w.leaving)
	w.leaving = make(chan struct{})
}

// departed returns the ranks that have left, or nil if none has. changed is closed when another one
// leaves.
func (w *universe) departed() (left []bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.left, true) {
		left = slices.Clone(w.left)
	}
	return left, w.leaving
}

// errLeft is the cause of a lost rank that returned without an error.
var errLeft = errors.New("the rank has already returned")

// aborted returns the cause of an aborted world, with the requested exit code.
func (w *universe) aborted(rank, code int, cause error) error {
	if cause == nil {
		cause = fmt.Errorf("%s aborted with exit code %d", w.share.Name(rank), code)
	}
	if fault.ExitCode(cause) == code {
		return cause
	}
	if kind := fault.KindOfCode(code); kind.ExitCode() == code {
		return &fault.Error{Kind: kind, Err: cause}
	}
	return cause
}

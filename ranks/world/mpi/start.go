//go:build mpi

package mpi

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gompi "github.com/sbromberger/gompi"
	"golang.org/x/sys/unix"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// Available reports whether this build has MPI.
func Available() bool { return true }

// pieces has the limits of one MPI call in bytes. Tests use small limits.
type pieces struct {
	length int // of a message or block
	span   int // of a buffer, from its first to its last byte
}

// wholePieces has the limits of MPI, whose lengths and displacements are C ints. Messages stay well
// below, at a size that is common for transports.
var wholePieces = pieces{length: 1 << 30, span: 1<<31 - 1}

// process is the state that the communicators of this process share.
type process struct {
	pieces pieces
	rank   int
	host   []string // of each rank of the world
	world  *comm
	notes  handle // see watch.go

	device bool        // MPI accepts memory of the device; see device.go
	failed atomic.Bool // an MPI call has failed, and the library may be unusable

	unshare func() // removes the memory that is shared with the ranks of this host

	mu     sync.Mutex
	heard  map[place]uint64 // the last collective in which a rank has reported that it waits
	parked []*request
}

// Start joins the launcher's world and returns its communicator. All ranks must call stop after
// their last communication. A rank that fails alone must call Abort instead, because the others do
// not call stop. After an error of the communicator, stop returns at once and does not stop the
// library; the caller must then end the process with os.Exit. Start may be called once per process.
// Collective.
func Start(l world.Limits) (c world.Comm, stop func(), err error) {
	return startWith(l, wholePieces)
}

func startWith(l world.Limits, limit pieces) (world.Comm, func(), error) {
	if gompi.IsOn() {
		return nil, nil, fault.New(fault.Config, "mpi", "", "MPI has already been started in this process")
	}
	say := l.Log
	if say == nil {
		say = func(string) {}
	}
	unshare := shareMemory(say)
	closePorts()
	finalize := initialize()
	p := &process{pieces: limit, rank: gompi.WorldRank(), heard: map[place]uint64{}, unshare: unshare}
	if err := p.connect(l, gompi.WorldSize()); err != nil {
		unshare()
		return nil, nil, err
	}
	var once sync.Once
	return p.world, func() { once.Do(func() { p.stop(finalize) }) }, nil
}

// initialize starts the library and returns a function that stops it. MPI requires that one thread
// does both.
func initialize() (finalize func()) {
	started, ending, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		endWithLauncher()
		gompi.Start(true)
		close(started)
		<-ending
		gompi.Stop()
		close(ended)
	}()
	<-started
	return func() {
		close(ending)
		<-ended
	}
}

// endWithLauncher requests that the kernel kills this process when its launcher ends. The ranks of Open MPI 4
// notice that end; those of Open MPI 5, started by PRRTE, may remain. The request is bound to the calling thread.
func endWithLauncher() {
	if os.Getenv("PRTE_LAUNCHED") != "" {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) // without it ranks end after --stall-abort
	}
}

// connect makes the communicators of the world.
func (p *process) connect(l world.Limits, size int) error {
	ranks := world.All(size)
	collective, err := dupWorld()
	if err != nil {
		return err
	}
	if p.world, err = newComm(p, collective, ranks, 1, l); err != nil {
		return err
	}
	if p.notes, err = collective.dup(); err != nil {
		return err
	}
	return p.findHosts()
}

// findHosts gathers the host names of all ranks.
func (p *process) findHosts() error {
	name, err := hostName()
	if err != nil {
		return err
	}
	// A host's name has at most 255 bytes and no NUL.
	const width = 256
	counts := slices.Repeat([]int{width}, p.world.Size())
	mine, all := make([]byte, width), make([]byte, width*len(counts))
	copy(mine, name)
	if err := p.world.Allgatherv(mine, all, counts); err != nil {
		return err
	}
	for q := range counts {
		p.host = append(p.host, strings.TrimRight(string(all[q*width:(q+1)*width]), "\x00"))
	}
	return nil
}

// Forsake records that ranks of the world are lost: the library is not stopped, because it would wait
// for them. w is the communicator of Start; for others, Forsake does nothing.
func Forsake(w world.Comm) {
	if c, ok := w.(*comm); ok {
		c.p.failed.Store(true)
	}
}

// Forsaken reports whether Forsake was called, or a call of the library has failed.
func Forsaken(w world.Comm) bool {
	c, ok := w.(*comm)
	return ok && c.p.failed.Load()
}

// reapFor is the time that stop waits for requests that were given up.
const reapFor = time.Second

// stop stops the library if that cannot block forever.
func (p *process) stop(finalize func()) {
	defer p.unshare()
	for deadline := time.Now().Add(reapFor); !p.clear(); time.Sleep(maxPause) {
		if p.failed.Load() || time.Now().After(deadline) {
			return
		}
	}
	if p.failed.Load() || p.world.meet(p.notes) != nil || p.listen() != nil {
		return
	}
	p.finalize(finalize)
}

// finalize stops the library. It waits at most Limits.Abort, because the library waits for all
// ranks, and one of them may have died meanwhile.
func (p *process) finalize(do func()) {
	ended := make(chan struct{})
	go func() {
		do()
		close(ended)
	}()
	var late <-chan time.Time // never
	if limit := p.world.limits.Load().Abort; limit > 0 {
		late = time.After(limit)
	}
	select {
	case <-ended:
	case <-late:
	}
}

// clear reports whether no request is parked.
func (p *process) clear() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reap()
	return len(p.parked) == 0
}

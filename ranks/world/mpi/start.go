//go:build mpi

package mpi

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gompi "github.com/sbromberger/gompi"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// Available reports whether this build has MPI.
func Available() bool { return true }

// pieces bounds what one MPI call moves; tests make the bounds small.
type pieces struct {
	length int // of a message or block in one MPI call, in bytes
	span   int // from the first to the last byte of a buffer that one call works on
}

// The lengths and displacements of MPI are C ints. Messages stay well below,
// at a size that transports are commonly used with.
var wholePieces = pieces{length: 1 << 30, span: 1<<31 - 1}

// process is what the communicators of this process share.
type process struct {
	pieces pieces
	rank   int
	host   []string // of each rank of the world
	world  *comm
	notes  handle // see watch.go

	device bool        // its memory may be given to MPI; see device.go
	failed atomic.Bool // an MPI call failed: the library is not to be relied on

	unshare func() // removes the memory that is shared with the ranks of this host

	mu     sync.Mutex
	heard  map[place]uint64 // the last collective that a rank said it waits in
	parked []*request
}

// Start joins the world that the launcher made and returns its communicator.
// stop leaves it: all ranks must call it, when all their communication has
// ended. A rank that fails alone calls Abort instead, since the others are not
// in stop. After an error of the communicator stop returns at once and leaves
// the library as it is; end the process with os.Exit then.
// Start may be called once in a process. Collective.
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
	finalize := initialize()
	p := &process{pieces: limit, rank: gompi.WorldRank(), heard: map[place]uint64{}, unshare: unshare}
	if err := p.connect(l, gompi.WorldSize()); err != nil {
		unshare()
		return nil, nil, err
	}
	var once sync.Once
	return p.world, func() { once.Do(func() { p.stop(finalize) }) }, nil
}

// initialize starts the library and returns what stops it. MPI wants both to
// be done by one thread.
func initialize() (finalize func()) {
	started, ending, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
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

// findHosts asks everybody for the name of their host.
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

// reapFor is how long stop waits for requests that were given up.
const reapFor = time.Second

// stop ends the library if that can be done without waiting for ever.
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

// finalize waits as long for the library as for a rank: it waits for all ranks,
// and one of them may have died since they met.
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

package world

import (
	"time"

	"siafu/halo/comm"
)

// Any matches every source or every tag in Recv.
const Any = -1

// Message is a received message.
type Message = comm.Message

// Request is a pending communication.
type Request = comm.Request

// Limits bound every wait on another rank. Zero means no bound.
type Limits struct {
	Warn  time.Duration // log that a rank is waiting
	Abort time.Duration // give up
	Log   func(msg string)

	// During returns the rank's activity ("∇SC of layer 1 in epoch 7") and Awaited the ranks
	// of the world that it needs a message from, for reports of a wait. Both may be nil, and
	// are called by the waiting goroutine.
	During  func() string
	Awaited func() []int

	// Name returns the name of a rank of the world in reports of a wait; nil is "rank 3".
	Name func(rank int) string
}

// Stalled describes a wait of rank for operation op. missing has the missing ranks, and is empty if
// they are unknown. hosts has the hosts of all ranks.
func (l *Limits) Stalled(op string, rank int, waited time.Duration, missing []int, hosts []string) *StallError {
	e := &StallError{Op: op, Rank: rank, Waited: waited, Missing: missing, Name: l.Name}
	if l.During != nil {
		e.During = l.During()
	}
	if len(missing) == 0 && l.Awaited != nil {
		e.Missing = l.Awaited()
	}
	for _, r := range e.Missing {
		if r >= 0 && r < len(hosts) {
			e.Hosts = append(e.Hosts, hosts[r])
		}
	}
	return e
}

// Comm is a communicator: a set of ranks numbered 0..Size-1.
type Comm interface {
	comm.Comm // Rank, Size, Ialltoallv, Isend, Recv, TryRecv

	// Hosts returns the host name of each rank.
	Hosts() []string
	// Barrier returns when all ranks have called it. Collective.
	Barrier() error
	// Bcast copies root's buf into all other ranks' buf; all pass the same length. Collective.
	Bcast(buf []byte, root int) error
	// Allgatherv gives all ranks the blocks of all ranks, one after another; counts[q] is the
	// length of rank q's block and is the same everywhere. Collective.
	Allgatherv(send, recv []byte, counts []int) error
	// Sub returns a communicator of the given ranks, numbered in that order. It returns nil on
	// other ranks. All ranks of this communicator must call it with the same list. Collective.
	Sub(ranks []int) (Comm, error)
	// SetLimits bounds the waits of this communicator, and of communicators that Sub creates
	// later. Limits returns the bounds.
	SetLimits(Limits)
	Limits() Limits
	// Abort ends all ranks of the world with the given exit code; it may not return. cause is
	// the error of the other ranks' calls.
	Abort(code int, cause error)
}

package world

import (
	"time"

	"siafu/halo/comm"
)

// Any matches every source or every tag in Recv.
const Any = -1

// Message is a received message.
type Message = comm.Message

// Request is a communication under way.
type Request = comm.Request

// Limits bound every wait on another rank. Zero means no bound.
type Limits struct {
	Warn  time.Duration // log that a rank is waiting
	Abort time.Duration // give up
	Log   func(msg string)

	// During says what the rank is about ("∇SC of layer 1 in epoch 7") and
	// Awaited which ranks of the world it needs a message from, for what is said
	// of a wait. Both may be nil, and are called by whoever waits.
	During  func() string
	Awaited func() []int

	// Name is what a rank of the world is called in what is said of a wait; nil
	// is "rank 3".
	Name func(rank int) string
}

// Stalled describes a wait: op is what is waited for by rank, missing who has
// not come, empty where the communicator does not know; hosts are those of all
// ranks.
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

	// Hosts names the host of each rank.
	Hosts() []string
	// Barrier returns when all ranks have called it. Collective.
	Barrier() error
	// Bcast copies root's buf into everybody's; all pass the same length.
	// Collective.
	Bcast(buf []byte, root int) error
	// Allgatherv gives everybody the blocks of all ranks, one after another;
	// counts[q] is the length of rank q's block and is the same everywhere.
	// Collective.
	Allgatherv(send, recv []byte, counts []int) error
	// Sub returns the communicator of the given ranks of this one, numbered in
	// that order, nil on ranks that are not among them. Collective over all
	// ranks of this communicator, all passing the same list.
	Sub(ranks []int) (Comm, error)
	// SetLimits bounds the waits of this communicator and of those made from
	// it afterwards.
	SetLimits(Limits)
	// Abort ends all ranks of the world with the given exit code; it may
	// not return. cause is what the other ranks' calls fail with.
	Abort(code int, cause error)
}

package world

import (
	"fmt"
	"strconv"
	"time"
)

// StallError reports a wait that passed its deadline (Limits.Abort). Ranks are numbered as in
// the world, also on a communicator made by Sub, because the user and the launcher use these
// numbers.
type StallError struct {
	Op      string        // awaited operation, such as "Barrier"
	Rank    int           // the waiting rank
	Waited  time.Duration // duration of the wait
	Missing []int         // missing ranks, ascending; empty if unknown
	Hosts   []string      // hosts of the missing ranks, if known
	During  string        // activity of the waiting rank, if known

	Name func(rank int) string // returns the name of a rank; nil: "rank 3"
}

func (e *StallError) Error() string {
	name := named(e.Name)
	msg := fmt.Sprintf("%s: %s has waited %v for ", e.Op, name(e.Rank), e.Waited.Round(time.Millisecond))
	switch {
	case len(e.Missing) == 0:
		msg += "an unknown rank"
	case len(e.Missing) > 1 && e.Name == nil:
		msg, name = msg+"ranks ", strconv.Itoa // ranks 3, 4
	}
	for i, r := range e.Missing {
		if i > 0 {
			msg += ", "
		}
		msg += name(r)
		if i < len(e.Hosts) && e.Hosts[i] != "" {
			msg += " on " + e.Hosts[i]
		}
	}
	if e.During != "" {
		msg += " (" + e.During + ")"
	}
	return msg
}

// LostError reports a wait that can never end because another rank of the world failed or left.
// It is a consequence of the error of the other rank, which is its cause and sets its kind.
type LostError struct {
	Op    string // awaited operation
	Rank  int    // the waiting rank of the world
	Lost  int    // the rank of the world that failed
	Cause error

	Name func(rank int) string // returns the name of a rank; nil: "rank 3"
}

func (e *LostError) Error() string {
	name := named(e.Name)
	return fmt.Sprintf("%s: %s lost %s: %v", e.Op, name(e.Rank), name(e.Lost), e.Cause)
}

// EndedError is the error of waits in a view whose members were ended early. Unlike after
// other failures, their work can continue in another view.
type EndedError struct {
	Member int // the ended member, one of its rank's members

	Name func(member int) string // returns the name of a member; nil: "rank 3"
}

func (e *EndedError) Error() string { return named(e.Name)(e.Member) + " was ended" }

// named returns name, or the default names of ranks.
func named(name func(rank int) string) func(rank int) string {
	if name != nil {
		return name
	}
	return func(rank int) string { return "rank " + strconv.Itoa(rank) }
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Cause }

// AgreedError is an error that all ranks of a communicator have (Agree).
type AgreedError struct{ Err error }

func (e *AgreedError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *AgreedError) Unwrap() error { return e.Err }

// ExcludedError is the error of a rank that ends alone, because other ranks may continue without it.
type ExcludedError struct{ Err error }

func (e *ExcludedError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ExcludedError) Unwrap() error { return e.Err }

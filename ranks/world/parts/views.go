package parts

import (
	"errors"

	"siafu/ranks/world"
)

// ElasticJob has the actions of one rank in the successive views of a world of parts.
type ElasticJob interface {
	// RunMember runs a member in a view, one goroutine per member. A communicator belongs to
	// one view: messages in transit when the view ends are dropped.
	RunMember(c world.Comm, v world.View) error
	// Ended is called once per view, when all members here have returned. Unless the world
	// has failed, no message to or from them is in transit, and their memory may be freed.
	// It returns the view with which this rank proposes to continue, or nil.
	Ended(v world.View) *world.View
	// Pack returns the state of a part that leaves this rank. Unpack restores it where the
	// part continues.
	Pack(part int) []byte
	Unpack(part int, state []byte) error
}

// RunViews runs a job through successive views, each like RunParts. The first view is v. A view
// ends when its members have returned, or when the members of any rank were ended (End). The ranks
// then agree on the next view (world.View.Replace). The packed state of moving parts is sent to
// their new ranks, and all members start again. If no rank proposes a view, RunViews returns the
// error of the last one. Collective over c. c may be nil if all ranks are in this process.
//
// Design note: a view that ends early ends all members, also on other ranks; they restart from
// a state that all have stored. The alternative is a log: senders store the messages of an
// epoch until all members have finished it. A moved part then receives its messages again, and
// its duplicates are dropped by name. The others wait in place, but they still wait: a
// synchronous epoch takes as long as its last part in either case. The log would cost memory
// for all rows of an epoch, a copy of each, and names in every message. A part's optimiser or
// server would have to detect duplicate gradients. Here the view of the communicator
// identifies a message, and nothing is stored unless a part moves.
func RunViews(c world.Comm, v world.View, l ElasticJob) error {
	for {
		var err error
		run := func(part world.Comm) error { return l.RunMember(part, v) }
		if c == nil {
			err = InProcess(v, run)
		} else {
			err = RunParts(c, v, run)
		}
		next := l.Ended(v)
		if ended := (*world.EndedError)(nil); err != nil && !errors.As(err, &ended) {
			return err
		}
		if c != nil {
			agreed, err := v.Replace(c, next)
			if err != nil {
				return err
			}
			next = agreed
		}
		if next == nil {
			return err
		}
		if err := moveParts(c, v, *next, l); err != nil {
			return err
		}
		v = *next
	}
}

// moveParts sends the packed state of parts to their new ranks. Collective over c.
func moveParts(c world.Comm, v, next world.View, l ElasticJob) error {
	if c == nil {
		return nil
	}
	out := world.NewOutbox(c)
	for part := range v.Parts {
		if to := next.Rank(part); v.Rank(part) == c.Rank() && to != c.Rank() {
			if err := out.Post(l.Pack(part), to, 0); err != nil {
				return err
			}
		}
	}
	for part := range v.Parts {
		if from := v.Rank(part); next.Rank(part) == c.Rank() && from != c.Rank() {
			m, err := c.Recv(from, 0) // in the order of parts, as they were sent
			if err != nil {
				return err
			}
			if err := l.Unpack(part, m.Data); err != nil {
				return err
			}
		}
	}
	return out.Settle()
}

// End ends all members of the calling member's rank, and with them the view. Their waits fail with a
// world.EndedError, and then those of all other members. c is the communicator of RunMember or of
// the body of RunParts.
func End(c world.Comm) { c.(interface{ End() }).End() }

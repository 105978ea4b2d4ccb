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
	// It returns the view that this rank proposes to continue with, nil for none.
	Ended(v world.View) *world.View
	// Pack returns the state of a part that leaves this rank. Unpack restores it where the
	// part continues.
	Pack(part int) []byte
	Unpack(part int, luggage []byte) error
}

// RunViews runs a course through views, the first of which is v, each as Over has
// it. A view ends when its members have returned, or when those of any rank were
// ended (End). The ranks then agree on the view that follows (world.View.Replace):
// parts that move take along what they have packed, and members begin to live
// again. Where no rank proposes a view, the last one's error is that of Through.
// Collective over c, which may be nil where all ranks would be in this process.
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
		err := runView(c, v, func(part world.Comm) error { return l.RunMember(part, v) })
		proposed := l.Ended(v)
		if ended := (*world.EndedError)(nil); err != nil && !errors.As(err, &ended) {
			return err
		}
		next, disagreed := agreeOnView(c, v, proposed)
		switch {
		case disagreed != nil:
			return disagreed
		case next == nil:
			return err
		}
		if err := moveParts(c, v, *next, l); err != nil {
			return err
		}
		v = *next
	}
}

func runView(c world.Comm, v world.View, body func(part world.Comm) error) error {
	if c == nil {
		return InProcess(v, body)
	}
	return RunParts(c, v, body)
}

// agreeOnView returns the view that all agree on.
func agreeOnView(c world.Comm, v world.View, proposed *world.View) (*world.View, error) {
	if c == nil {
		return proposed, nil
	}
	return v.Replace(c, proposed)
}

// moveParts takes what parts have packed to where they continue. Collective over c.
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

// End ends all members of the rank that carries this one, and with them the view:
// their waits, and then those of all members, fail with a world.EndedError. c is a
// communicator that Live or the body of Over was given.
func End(c world.Comm) { c.(interface{ End() }).End() }

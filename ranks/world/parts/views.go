package parts

import (
	"errors"
	"net/netip"
	"time"

	"siafu/ranks/world"
	"siafu/ranks/world/membership"
)

// ElasticJob has the actions of one rank in the successive views of a world of parts.
type ElasticJob interface {
	// RunMember runs a member in a view, one goroutine per member. A communicator belongs to
	// one view: messages in transit when the view ends are dropped. copied sends a stored state to
	// another rank, if there is one. It returns when that rank has confirmed the state before it, so
	// that a part and its copy have a state of the same epoch.
	RunMember(c world.Comm, v world.View, copied func(s membership.State)) error
	// Ended is called once per view, when all members here have returned. Unless the world
	// has failed, no message to or from members of live ranks is in transit, and their memory may
	// be freed. Ended returns what this rank proposes, if the run has not ended.
	Ended(v world.View) membership.Proposal
	// States lists the stored states of parts, Pack returns one, and Unpack stores one that
	// another rank has packed. They may be called at any time.
	States() []membership.State
	Pack(s membership.State) []byte
	Unpack(s membership.State, packed []byte)
	// Continue is called before a view that replaces another one.
	Continue(d membership.Decision)
}

// Elasticity has the settings of RunViews.
type Elasticity struct {
	LostAfter time.Duration            // a rank that has been silent for this time is lost
	Network   netip.Prefix             // in which ranks listen; see alive.Connect
	Least     int                      // the run stops if fewer ranks are left
	Zone      func(host string) string // failure domain of a host; nil: each rank has its own
	// Lost is called when ranks are lost, at any time, before members notice. MPI may use memory of
	// this rank for messages to and from lost ranks as long as the process exists.
	Lost      func()
	Connected func(Admission) // called when the ranks are connected
	// Vet returns an error for a request (Join) that must be refused. nil: all are refused.
	Vet func(request []byte) error
	Log func(format string, args ...any)
}

// zones returns the failure domains of ranks on the given hosts.
func (o *Elasticity) zones(hosts []string) (list []string) {
	if o.Zone == nil {
		return nil
	}
	for _, h := range hosts {
		list = append(list, o.Zone(h))
	}
	return list
}

// RunViews runs a job through successive views, each like RunParts. The first view is v. A view
// ends when its members have returned, or when the members of any rank were ended (End), or when a rank
// is lost. The live ranks then agree on the next view (package membership), states of moved parts are
// sent to their new ranks, and all members start again. If no rank proposes a view and none is lost,
// RunViews returns the error of the last one. Collective over c. c may be nil if all ranks are in
// this process.
//
// Design note: a view that ends early ends all members, also on other ranks; they restart from
// a state that all have stored. The alternative is a log: senders store the messages of an
// epoch until all members have finished it. A moved part then receives its messages again, and
// its duplicates are dropped by name. The others wait in place, but they still wait: a
// synchronous epoch takes as long as its last part in either case. The log would cost memory
// for all rows of an epoch, a copy of each, and names in every message. A part's optimiser or
// server would have to detect duplicate gradients. Here the view of the communicator
// identifies a message, and nothing is stored unless a part moves.
func RunViews(c world.Comm, v world.View, job ElasticJob, o Elasticity) error {
	if c == nil || c.Size() == 1 {
		return runAlone(v, job)
	}
	s, err := newSurvivor(c, v, job, o)
	if err != nil {
		return err
	}
	return s.run()
}

// runAlone runs all members of all views in this process.
func runAlone(v world.View, job ElasticJob) error {
	for {
		err := InProcess(v, func(part world.Comm) error { return job.RunMember(part, v, func(membership.State) {}) })
		next := job.Ended(v).View
		if ended := (*world.EndedError)(nil); next == nil || err != nil && !errors.As(err, &ended) {
			return err
		}
		v = *next
	}
}

// End ends all members of the calling member's rank, and with them the view. Their waits fail with a
// world.EndedError, and then those of all other members. c is the communicator of RunMember or of
// the body of RunParts.
func End(c world.Comm) { c.(interface{ End() }).End() }

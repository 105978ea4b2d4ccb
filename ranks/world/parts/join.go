package parts

import (
	"errors"
	"os"
	"slices"

	"siafu/internal/fault"
	"siafu/internal/wire"
	"siafu/ranks/world"
	"siafu/ranks/world/alive"
	"siafu/ranks/world/membership"
)

// Admission is what a rank of an elastic world knows about processes that may join.
type Admission struct{ s *survivor }

// Contacts returns how a process reaches the ranks (Join). It contains a secret of the world.
func (a Admission) Contacts() alive.Contacts {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return a.s.mesh.Contacts(a.s.machine.Live())
}

// Requested reports whether a process waits for the end of the view, to join the next one.
func (a Admission) Requested() bool {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return len(a.s.asking) > 0
}

// Joiner has the parameters of Join.
type Joiner struct {
	Contacts alive.Contacts
	Host     string // of this process
	Request  []byte // for Elasticity.Vet of the other ranks
	Limits   world.Limits
	Elasticity
}

// ErrEnded is the error of Join if the run ends before this process has joined.
var ErrEnded = errors.New("the run has ended")

// mostRequests is the number of views after which Join fails, if they begin without a new rank.
const mostRequests = 10

// Join makes this process a rank of an elastic world that has started before, and runs its job like
// RunViews. The rank is a spare one, at the end of the world. It has no world.Comm: all its data is
// sent over connections of its own. job returns the job of a rank. Join waits for the end of a view. It
// fails if a rank refuses the request (alive.Refusal), or if some rank cannot be reached.
func Join(j Joiner, job func(rank int) ElasticJob) error {
	mesh, unreachable, err := alive.Join(j.Contacts, j.Host, j.Request, j.LostAfter, j.Vet)
	if err != nil {
		return err
	}
	d, early, err := admission(mesh, unreachable)
	if err != nil {
		mesh.Break()
		return err
	}
	rank := d.View.Started() - 1
	link := newRemoteLink(rank, mesh.Hosts())
	link.limits = func() world.Limits { return j.Limits }
	link.abort = func(code int, _ error) { os.Exit(code) } // the others continue without this rank
	s := survivorOf(membership.Join(j.Least, d, j.zones(link.hosts), link.hosts), rank, job(rank), j.Elasticity, mesh, link)
	s.o.Connected(Admission{s})
	s.mu.Lock()
	for _, l := range d.Lost {
		link.lose(l.Rank)
	}
	s.joined[mesh.ID()] = rank
	s.broadcast(wire.Decision, d)
	s.begin(d, world.View{Parts: d.View.Parts, Carrier: slices.Repeat([]int{-1}, d.View.Members())})
	for _, e := range early {
		s.handleLocked(e)
	}
	for _, r := range s.machine.Live() { // never connected
		if r != rank && mesh.Missing(r) {
			s.lose(s.machine.Lose(membership.Loss{Rank: r}))
		}
	}
	go s.listen()
	next, err := s.await()
	s.mu.Unlock()
	if err != nil {
		mesh.Break()
		return err
	}
	s.job.Continue(*next)
	return s.run()
}

// admission asks the ranks to admit this guest, and waits for the decision. It returns the other events
// until then: losses, and messages of ranks that have begun the view of the decision earlier.
func admission(mesh *alive.Mesh, unreachable []int) (d membership.Decision, early []alive.Event, err error) {
	heard := map[int]membership.Decision{} // by rank, the newest
	followed, asked := 0, 0
	ask := func() {
		for r := range mesh.Size() {
			mesh.Send(r, wire.Ask, nil)
		}
		asked++
	}
	for ask(); asked <= mostRequests; {
		e, _ := mesh.Next()
		switch {
		case e.From < 0:
			continue
		case e.Lost || e.Kind != wire.Decision:
			early = append(early, e)
		default:
			if heard[e.From], err = decode[membership.Decision](e.Data); err != nil {
				return d, nil, err
			}
		}
		if !slices.ContainsFunc(world.All(mesh.Size()), mesh.Connected) {
			return d, nil, ErrEnded
		}
		var all bool
		if d, all = decided(mesh, heard); !all || d.View.Number <= followed {
			continue
		}
		followed = d.View.Number
		if d.Done {
			return d, nil, ErrEnded
		}
		for _, g := range d.Joined[mesh.Size()-mesh.Founders():] {
			if rank := mesh.Size(); !mesh.Admit(g.ID, g.Contact) {
				unreachable = append(unreachable, rank)
			}
			if g.ID == mesh.ID() {
				return d, early, nil
			}
			asked = 0 // a decision admits one guest, and this one waits for others that have come before
		}
		ask()
	}
	return d, nil, fault.New(fault.Runtime, "join", "",
		"this process is not connected to all ranks; the ranks %v did not respond", unreachable).
		Then("allow TCP connections between the hosts")
}

// decided returns the newest decision, if all ranks that this guest is connected to have sent it
// (package membership).
func decided(mesh *alive.Mesh, heard map[int]membership.Decision) (d membership.Decision, all bool) {
	for r := range mesh.Size() {
		if !mesh.Connected(r) {
			continue
		}
		if all && heard[r].View.Number != d.View.Number {
			return d, false
		}
		d, all = heard[r], true
	}
	return d, all
}

// admit makes guests the next ranks.
func (s *survivor) admit(list []membership.Guest) {
	clear(s.asking)
	for _, g := range list {
		s.joined[g.ID] = s.mesh.Size()
		s.mesh.Admit(g.ID, g.Contact)
		s.link.extend([]string{g.Host})
		s.guests = slices.DeleteFunc(s.guests, func(other membership.Guest) bool { return other.ID == g.ID })
		if s.leads() {
			s.o.Log("rank %d on %s has joined", s.joined[g.ID], g.Host)
		}
	}
}

// orphaned reports whether this rank has joined later, and no rank of the start is left. It must not
// continue: a launcher that has ended its ranks may start the run again.
func (s *survivor) orphaned() bool {
	return s.link.comm == nil && s.machine.Live()[0] >= s.mesh.Founders()
}

// leads reports whether this rank is the lowest live one.
func (s *survivor) leads() bool { return s.machine.Live()[0] == s.rank }

// handleGuest handles an event of a guest.
func (s *survivor) handleGuest(e alive.Event) {
	switch {
	case e.Refused != nil:
		s.o.Log("refused a process on %s: %v", e.Host, e.Refused)
	case e.Arrived:
		g := membership.Guest{ID: e.Guest, Host: e.Host, Contact: e.Data}
		if s.o.Zone != nil {
			g.Zone = s.o.Zone(e.Host)
		}
		s.guests = append(s.guests, g)
		if s.newest != nil {
			s.mesh.SendGuest(g.ID, wire.Decision, encode(*s.newest))
		}
	case e.Lost:
		s.guests = slices.DeleteFunc(s.guests, func(g membership.Guest) bool { return g.ID == e.Guest })
		delete(s.asking, e.Guest)
	case e.Kind == wire.Ask:
		s.asking[e.Guest] = true
	default: // it was admitted, and sends the decision on
		if err := s.receive(e.Message); err != nil {
			s.fail(err)
		}
	}
}

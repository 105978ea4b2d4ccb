package parts

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"siafu/internal/fault"
	"siafu/internal/wire"
	"siafu/ranks/world"
	"siafu/ranks/world/alive"
	"siafu/ranks/world/membership"
)

// survivor is a rank of an elastic world. It has two threads of control: run runs views one after another,
// and listen handles the messages and losses of other ranks. A loss is handled in these steps:
//
//   - lose tells link that the rank is lost, and interrupt ends the view here;
//   - run reports to all live ranks how the view has ended and which states are stored here (agree);
//   - the coordinator decides (decide), and each rank sends the decision on and applies it (apply): it
//     sends the states of parts that have moved away;
//   - agree returns when the states of parts that have moved here have arrived, and run begins the
//     next view.
//
// All fields after mu are guarded by it. machine decides without input or output.
type survivor struct {
	rank int
	job  ElasticJob
	o    Elasticity
	mesh *alive.Mesh
	link *remoteLink

	mu       sync.Mutex
	machine  *membership.Machine
	ended    *ending              // of the current view, nil while it runs here
	decision *membership.Decision // that this rank has not begun
	newest   *membership.Decision // that this rank has received; nil before the first
	missing  map[int]int          // parts whose states are on the way, and the ranks that send them
	copied   map[int]int          // by part: epoch of the newest copy that the shadow has confirmed
	sent     map[int]int          // by part: epoch of the newest copy that was sent to the shadow
	shadow   int                  // rank to which copies are sent, -1 without one
	done     bool                 // the run has ended
	failed   error                // this rank must end
	guests   []membership.Guest   // that this rank has a connection to
	asking   map[uint64]bool      // guests that are connected to all ranks
	joined   map[uint64]int       // ranks of admitted guests
	changed  *sync.Cond           // of any of these
}

// ending is how a view ended on this rank.
type ending struct {
	done     bool // the run has ended
	proposal membership.Proposal
}

// newSurvivor connects this rank to the others. Collective over c.
func newSurvivor(c world.Comm, v world.View, job ElasticJob, o Elasticity) (*survivor, error) {
	link, err := connect(c)
	if err != nil {
		return nil, err
	}
	mesh, err := alive.Connect(c, o.LostAfter, o.Network, o.Vet)
	if err != nil {
		return nil, err
	}
	s := survivorOf(membership.New(c.Rank(), o.Least, v, o.zones(c.Hosts()), c.Hosts()), c.Rank(), job, o, mesh, link)
	s.o.Connected(Admission{s})
	go s.listen()
	return s, nil
}

// survivorOf returns a connected rank.
func survivorOf(m *membership.Machine, rank int, job ElasticJob, o Elasticity, mesh *alive.Mesh, link *remoteLink) *survivor {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Lost == nil {
		o.Lost = func() {}
	}
	if o.Connected == nil {
		o.Connected = func(Admission) {}
	}
	s := &survivor{
		rank: rank, job: job, o: o, mesh: mesh, link: link, machine: m, missing: map[int]int{}, copied: map[int]int{}, sent: map[int]int{},
		asking: map[uint64]bool{}, joined: map[uint64]int{},
	}
	s.link.streams = streams{mesh, link.founders} // 0 on a rank that has joined
	s.changed = sync.NewCond(&s.mu)
	s.shadow = s.machine.Shadow()
	return s
}

// run runs views until the run has ended.
func (s *survivor) run() error {
	for {
		v := s.machine.View()
		err := s.link.run(v, func(c world.Comm) error {
			if lost := s.link.lost.Load(); lost != nil { // the member may lack its state
				return lost
			}
			return s.job.RunMember(c, v, s.copyState)
		})
		d, failed := s.next(err, s.job.Ended(v))
		if failed != nil {
			s.mesh.Break()
			return failed
		}
		if d.Done {
			s.mesh.Close()
			return err
		}
		s.job.Continue(*d)
	}
}

// next agrees with the other ranks on what follows a view. err is the error of the members here. It is
// the one of this rank unless the view was interrupted, or all members have the same error.
func (s *survivor) next(err error, proposed membership.Proposal) (*membership.Decision, error) {
	interrupted, shared := (*world.EndedError)(nil), (*world.AgreedError)(nil)
	ended := !errors.As(err, &interrupted)
	s.mu.Lock()
	failed := s.failed
	s.mu.Unlock()
	if failed == nil && err != nil && ended && !errors.As(err, &shared) {
		failed = err
	}
	if failed != nil {
		return nil, failed
	}
	return s.agree(ending{ended && proposed == membership.Proposal{}, proposed})
}

// agree reports the end of the view here, waits for the decision of the coordinator, and for the states
// of parts that move here.
func (s *survivor) agree(e ending) (*membership.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = &e
	s.report()
	return s.await()
}

// await waits for the decision of the coordinator, and for the states of parts that move here. The caller
// holds mu.
func (s *survivor) await() (*membership.Decision, error) {
	for s.decision == nil && s.failed == nil {
		s.changed.Wait()
	}
	if s.failed != nil {
		return nil, s.failed
	}
	d := s.decision
	s.decision = nil
	if d.Done {
		return d, nil
	}
	for len(s.missing) > 0 && !s.interrupted() && s.failed == nil {
		s.changed.Wait()
	}
	if !s.interrupted() {
		clear(s.missing)
	}
	return d, s.failed
}

// report sends this rank's report to all live ranks, and decides if it is the last one.
func (s *survivor) report() {
	r := s.machine.Report(s.ended.done, s.ended.proposal, s.job.States(), s.guests)
	s.broadcast(wire.Report, r)
	s.decide()
}

// decide makes, sends and applies a decision, if this rank must make one now.
func (s *survivor) decide() {
	if s.ended == nil {
		return
	}
	if d := s.machine.Decide(); d != nil {
		s.apply(*d)
	}
}

// apply sends a decision to all live ranks, and begins its view.
func (s *survivor) apply(d membership.Decision) {
	if s.ended == nil || d.View.Number <= s.machine.View().Number {
		return
	}
	s.broadcast(wire.Decision, d)
	for _, g := range s.guests {
		s.mesh.SendGuest(g.ID, wire.Decision, encode(d))
	}
	before := s.machine.View()
	s.machine.Apply(d)
	admitted := d.Joined[s.mesh.Size()-s.mesh.Founders():]
	s.admit(admitted)
	s.begin(d, before)
	for _, g := range admitted { // lost before its admission
		if !s.mesh.Connected(s.joined[g.ID]) {
			s.lose(s.machine.Lose(membership.Loss{Rank: s.joined[g.ID]}))
		}
	}
}

// begin begins the view of a decision on this rank. The machine has applied it.
func (s *survivor) begin(d membership.Decision, before world.View) {
	s.ended, s.decision, s.newest, s.done = nil, &d, &d, d.Done
	clear(s.missing)
	clear(s.copied)
	clear(s.sent) // epochs may be repeated
	me := s.rank
	s.replicate()
	for part, from := range d.From {
		at := membership.State{Part: part, Epoch: d.Epoch}
		to := d.View.Rank(part)
		switch {
		case from < 0:
			continue
		case from == me && to != me:
			s.send(to, wire.PartState, packedState{at, s.job.Pack(at)})
		case to == me && !slices.Contains(s.job.States(), at):
			s.missing[part] = from
			continue // receive copies the state
		}
		if to == me && before.Rank(part) != me {
			s.copyMoved(at)
		}
	}
	s.interrupt()
	s.changed.Broadcast()
}

// interrupt ends the current view here if it cannot continue.
func (s *survivor) interrupt() {
	var lost *world.EndedError
	if m := s.lostMember(); m >= 0 {
		v := s.machine.View()
		lost = &world.EndedError{Member: m, Name: v.Name}
	}
	s.link.interrupt(lost)
}

// lostMember returns a member of the current view that cannot run: its rank is lost, or the rank that
// must send its state to this rank. Without one it returns -1.
func (s *survivor) lostMember() int {
	if m := s.machine.Interrupted(); m >= 0 {
		return m
	}
	for part, from := range s.missing {
		if s.machine.Lost(from) {
			return part
		}
	}
	return -1
}

// interrupted reports whether the current view cannot continue.
func (s *survivor) interrupted() bool { return s.lostMember() >= 0 }

// listen handles the events of the mesh.
func (s *survivor) listen() {
	for {
		e, ok := s.mesh.Next()
		if !ok {
			return
		}
		s.handle(e)
	}
}

// handle handles an event. It ignores messages of lost ranks: this rank may have reported the loss, and
// the others may then decide without these messages.
func (s *survivor) handle(e alive.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handleLocked(e)
}

func (s *survivor) handleLocked(e alive.Event) {
	if rank, ok := s.joined[e.Guest]; ok && e.Guest != 0 {
		e.From = rank
	}
	switch {
	case e.From < 0:
		s.handleGuest(e)
	case e.Lost:
		s.lose(s.machine.Lose(membership.Loss{Rank: e.From, Certain: e.Certain}))
	case s.machine.Lost(e.From):
	default:
		if err := s.receive(e.Message); err != nil {
			s.fail(fmt.Errorf("a message of rank %d: %w", e.From, err))
		}
	}
}

// lose acts on newly lost ranks.
func (s *survivor) lose(lost []int) {
	if len(lost) == 0 || s.done {
		return
	}
	s.o.Lost()
	excluded := s.machine.Excluded()
	for _, r := range lost {
		if !excluded { // else the other ranks decide which processes must end
			s.mesh.Drop(r) // before link, which waits for transfers: then none uses memory of this rank
		}
		s.link.lose(r)
		if s.machine.Live()[0] == s.rank {
			s.o.Log("rank %d on %s is lost", r, s.link.hosts[r])
		}
	}
	if excluded {
		s.fail(&world.ExcludedError{Err: fault.New(fault.Stopped, "train", "",
			"rank %d has lost the ranks %v, and the other ranks may continue without it", s.rank, lost).
			Then("if the run has ended, resume it from its last checkpoint")})
		return
	}
	if s.orphaned() {
		s.fail(fault.New(fault.Stopped, "join", "", "the ranks that the launcher has started have ended").
			Then("if the run has not ended, start it again: it resumes from its last checkpoint"))
		return
	}
	s.replicate()
	s.interrupt()
	if s.ended != nil {
		s.report()
	}
	s.changed.Broadcast()
}

// fail ends this rank with an error.
func (s *survivor) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
	v := s.machine.View()
	s.link.interrupt(&world.EndedError{Member: max(s.lostMember(), 0), Name: v.Name})
	for r := range s.link.gone {
		s.link.lose(r)
	}
	s.changed.Broadcast()
}

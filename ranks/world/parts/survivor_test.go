package parts

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/wire"
	"siafu/ranks/world"
	"siafu/ranks/world/alive"
	"siafu/ranks/world/inproc"
	"siafu/ranks/world/membership"
)

// noJob is an ElasticJob that only stores states.
type noJob struct {
	mu     sync.Mutex
	states []membership.State
}

func (j *noJob) RunMember(world.Comm, world.View, func(membership.State)) error { return nil }
func (j *noJob) Ended(world.View) membership.Proposal                           { return membership.Proposal{} }
func (j *noJob) Pack(membership.State) []byte                                   { return []byte{1} }
func (j *noJob) Continue(membership.Decision)                                   {}

func (j *noJob) States() []membership.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]membership.State{}, j.states...)
}

func (j *noJob) Unpack(s membership.State, _ []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.states = append(j.states, s)
}

// onRank2 connects two ranks with a part each and two spares. It calls body on rank 2, the first spare.
func onRank2(t *testing.T, body func(s *survivor, shadow *noJob) error) {
	t.Helper()
	v := world.View{Parts: 2, Ranks: 2, Spares: 2}
	jobs := make([]*noJob, v.Started())
	for r := range jobs {
		jobs[r] = new(noJob)
	}
	err := inproc.Run(v.Started(), func(c world.Comm) error {
		s, err := newSurvivor(c, v, jobs[c.Rank()], Elasticity{LostAfter: time.Minute})
		if err != nil {
			return err
		}
		defer s.mesh.Break()
		var failed error
		if c.Rank() == 2 {
			failed = body(s, jobs[1])
		}
		return world.Agree(c, failed)
	})
	if err != nil {
		t.Error(err)
	}
}

// lostRank is the event of a rank that has ended.
func lostRank(rank int) alive.Event {
	return alive.Event{Message: alive.Message{From: rank}, Lost: true, Certain: true}
}

// toRank2 is a decision in which part 0 moves from rank 0, which is lost, to rank 2. Rank 3 has its state.
func toRank2(v world.View) membership.Decision {
	next := v.Restart()
	next.Carrier[0] = 2
	return membership.Decision{View: next, Lost: []membership.Loss{{Rank: 0, Certain: true}}, Epoch: 5, From: []int{3, 1}}
}

// A rank that has reported the loss of another ignores what that one has decided before: the others may
// have decided without it.
func TestDecisionOfALostRank(t *testing.T) {
	onRank2(t, func(s *survivor, _ *noJob) error {
		s.ended = &ending{}
		late := alive.Event{Message: alive.Message{From: 0, Kind: wire.Decision, Data: encode(toRank2(s.machine.View()))}}
		s.handle(lostRank(0))
		s.handle(late)
		if n := s.machine.View().Number; n != 0 {
			return fmt.Errorf("it is in view %d", n)
		}
		return nil
	})
}

// agreeing calls agree, and handles a decision that makes this rank wait for a state of rank 3.
func agreeing(s *survivor) (returned chan error) {
	returned = make(chan error, 1)
	go func() {
		_, err := s.agree(ending{})
		returned <- err
	}()
	for ready := false; !ready; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		ready = s.ended != nil
		s.mu.Unlock()
	}
	s.handle(lostRank(0))
	s.handle(alive.Event{Message: alive.Message{From: 1, Kind: wire.Decision, Data: encode(toRank2(s.machine.View()))}})
	return returned
}

// A rank that waits for the state of a part does not wait for a lost rank, even if that one carries no
// member. The view ends instead.
func TestSenderOfAStateIsLost(t *testing.T) {
	onRank2(t, func(s *survivor, _ *noJob) error {
		returned := agreeing(s)
		s.handle(lostRank(3))
		select {
		case err := <-returned:
			if err != nil {
				return err
			}
		case <-time.After(hosttest.Patience):
			s.mesh.Break()
			return fmt.Errorf("it waits")
		}
		if s.link.lost.Load() == nil {
			return fmt.Errorf("the view continues")
		}
		return nil
	})
}

// A part that has moved is copied before its first epoch ends.
func TestMovedPartIsCopied(t *testing.T) {
	onRank2(t, func(s *survivor, shadow *noJob) error {
		returned := agreeing(s)
		at := membership.State{Part: 0, Epoch: 5}
		s.handle(alive.Event{Message: alive.Message{From: 3, Kind: wire.PartState, Data: encode(packedState{at, nil})}})
		if err := <-returned; err != nil {
			return err
		}
		for range 1000 {
			if list := shadow.States(); len(list) > 0 {
				if len(list) != 1 || list[0] != at {
					return fmt.Errorf("the shadow has %v", list)
				}
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return fmt.Errorf("the shadow has no copy")
	})
}

package parts_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
	"siafu/ranks/world/membership"
	"siafu/ranks/world/parts"
)

// hosting is an ElasticJob that waits in one round until a process wants to join.
type hosting struct {
	*rounds
	at        int // round of part 0, in the first view
	admission parts.Admission
	invite    func(parts.Admission)
}

// RunMember implements parts.ElasticJob.
func (h *hosting) RunMember(c world.Comm, v world.View, copied func(membership.State)) error {
	return h.rounds.RunMember(c, v, func(s membership.State) {
		if v.Number == 0 && s.Part == 0 && s.Epoch == h.at {
			h.invite(h.admission)
			for late := time.Now().Add(hosttest.Patience); !h.admission.Requested() && time.Now().Before(late); {
				time.Sleep(time.Millisecond)
			}
		}
		copied(s)
	})
}

// A process joins when the members of a rank have moved away. It takes members, and exchanges short and
// long blocks with the others, in this view and in a later one in which parts move to and from it.
func TestProcessJoins(t *testing.T) {
	v := world.View{Parts: 6, Ranks: 3}
	for _, block := range []int{100, longBlock} {
		list := []turn{
			{at: 4, end: true, member: 2, proposed: func(v world.View) world.View { return v.WithoutRank(1) }},
			{at: 6, end: true, member: 0, proposed: func(v world.View) world.View { return v.Move(0, 3) }},
			{at: 8, end: true, member: 5, proposed: func(v world.View) world.View { return v.Move(3, 0) }},
		}
		vet := func(request []byte) error {
			if string(request) != "please" {
				return errors.New("no")
			}
			return nil
		}
		var joining sync.WaitGroup
		joiner := newRounds(v, 3, block, list)
		invite := func(a parts.Admission) {
			joining.Go(func() {
				e := patient
				e.Vet = vet
				err := parts.Join(parts.Joiner{Contacts: a.Contacts(), Host: "elsewhere", Request: []byte("please"), Elasticity: e},
					func(rank int) parts.ElasticJob {
						if rank != 3 {
							t.Errorf("joined as rank %d", rank)
						}
						return joiner
					})
				if err != nil {
					t.Error(err)
				}
			})
		}
		err := inproc.Run(v.Started(), func(c world.Comm) error {
			job := &hosting{rounds: newRounds(v, c.Rank(), block, list), at: 3, invite: invite}
			e := patient
			e.Vet, e.Connected = vet, func(a parts.Admission) { job.admission = a }
			if err := parts.RunViews(c, v, job, e); err != nil {
				return err
			}
			job.check(t)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		joining.Wait()
		if n := len(joiner.lived); n != 3 || joiner.lived[0].Number != 1 || len(joiner.lived[0].Carried(3)) != 2 {
			t.Errorf("block of %d bytes: the process was in %d views, from %+v on", block, n, joiner.lived)
		}
		if last := joiner.lived[len(joiner.lived)-1]; len(joiner.done) != len(last.Carried(3)) || len(joiner.done) == 0 {
			t.Errorf("it has finished %v of %+v", joiner.done, last)
		}
	}
}

// gathering is an ElasticJob without states. A view ends when a process wants to join, until the world has a
// number of ranks.
type gathering struct {
	ranks     int
	admission parts.Admission
	vetted    *atomic.Int32 // requests to join
}

// RunMember implements parts.ElasticJob.
func (g *gathering) RunMember(_ world.Comm, v world.View, _ func(membership.State)) error {
	early := func() bool { return v.Number == 0 && int(g.vetted.Load()) < v.Started()*(g.ranks-v.Started()) }
	late := time.Now().Add(hosttest.Patience)
	for ; v.Started() < g.ranks && (early() || !g.admission.Requested()); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			return errors.New("no process wants to join")
		}
	}
	if v.Number == 0 {
		time.Sleep(200 * time.Millisecond) // until all are connected
	}
	return nil
}

// Ended implements parts.ElasticJob.
func (g *gathering) Ended(v world.View) membership.Proposal {
	return membership.Proposal{Admits: v.Started() < g.ranks}
}

func (g *gathering) States() []membership.State      { return nil }
func (g *gathering) Pack(membership.State) []byte    { return nil }
func (g *gathering) Unpack(membership.State, []byte) {}
func (g *gathering) Continue(membership.Decision)    {}

// Any number of processes may join at once. Each view admits one, and the last one waits for as many views.
func TestManyProcessesJoin(t *testing.T) {
	const guests = 14
	v := world.View{Parts: 2, Ranks: 2}
	e := patient
	var vetted atomic.Int32
	e.Vet = func([]byte) error { vetted.Add(1); return nil }
	var joining sync.WaitGroup
	join := func(contacts parts.Joiner) {
		if err := parts.Join(contacts, func(int) parts.ElasticJob { return &gathering{ranks: v.Started() + guests} }); err != nil {
			t.Error(err)
		}
	}
	err := inproc.Run(v.Started(), func(c world.Comm) error {
		g, e := &gathering{ranks: v.Started() + guests, vetted: &vetted}, e
		e.Connected = func(a parts.Admission) {
			if g.admission = a; c.Rank() > 0 {
				return
			}
			for range guests {
				joiner := parts.Joiner{Contacts: a.Contacts(), Host: "elsewhere", Elasticity: e}
				joiner.Connected = nil
				joining.Go(func() { join(joiner) })
			}
		}
		return parts.RunViews(c, v, g, e)
	})
	joining.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

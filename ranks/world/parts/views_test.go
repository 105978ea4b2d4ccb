package parts_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
	"siafu/ranks/world/membership"
	"siafu/ranks/world/parts"
)

// rounds is an ElasticJob of rounds on one rank, in which each member sends all others a long
// block. The state of a part is its number of finished rounds.
type rounds struct {
	rank  int
	block int    // bytes
	views []turn // the views that this rank makes of those before, by their number

	mu      sync.Mutex
	states  map[int][]int // by part: the last rounds that it has begun
	done    map[int]bool  // members that have finished
	buffers [][]byte      // that members of the view have received into
	lived   []world.View
	shaken  int // members that were in a view which ended early
}

// turn is when a view ends: at a round, or in the middle of it where a member is
// ended, and what a rank proposes then.
type turn struct {
	at       int
	end      bool
	member   int
	proposed func(world.View) world.View
}

const lastRound = 9

// patient loses no rank on a busy machine.
var patient = parts.Elasticity{LostAfter: time.Minute}

// longBlock is just long enough to be sent separately from its packet.
const longBlock = 17 << 10

func newRounds(v world.View, rank, block int, turns []turn) *rounds {
	return &rounds{rank: rank, block: block, views: turns, states: map[int][]int{}, done: map[int]bool{}}
}

// RunMember implements parts.ElasticJob: members begin with the round that all have reached.
func (r *rounds) RunMember(c world.Comm, v world.View, copied func(membership.State)) error {
	begin := []int64{lastRound}
	if c.Rank() < v.Parts {
		begin[0] = r.newest(c.Rank())
	}
	if err := world.MinInt64s(c, begin); err != nil {
		return err
	}
	s, err := c.Sub(all(c.Size()))
	if err != nil {
		return err
	}
	for round := int(begin[0]); round < lastRound; round++ {
		if c.Rank() < v.Parts {
			at := membership.State{Part: c.Rank(), Epoch: round}
			r.Unpack(at, binary.LittleEndian.AppendUint32(nil, uint32(round)))
			copied(at)
		}
		if v.Number < len(r.views) && r.views[v.Number].at == round {
			turn := r.views[v.Number]
			if !turn.end {
				return nil
			}
			if turn.member == c.Rank() {
				parts.End(c)
			}
		}
		if err := r.round(s, round); err != nil {
			if ended := (*world.EndedError)(nil); errors.As(err, &ended) {
				r.mu.Lock()
				r.shaken++
				r.mu.Unlock()
			}
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[c.Rank()] = true
	return nil
}

// round runs two concurrent exchanges of blocks with all parts, and checks the results.
func (r *rounds) round(c world.Comm, round int) error {
	n := c.Size()
	counts := make([]int, n)
	for q := range counts {
		counts[q] = r.block
	}
	var requests [2]world.Request
	var received [2][]byte
	for k := range requests {
		send := make([]byte, n*r.block)
		received[k] = make([]byte, n*r.block)
		for i := range send {
			send[i] = byte(c.Rank() + 16*round + k)
		}
		r.mu.Lock()
		r.buffers = append(r.buffers, received[k])
		r.mu.Unlock()
		var err error
		if requests[k], err = c.Ialltoallv(send, counts, received[k], counts); err != nil {
			return err
		}
	}
	for k := range requests {
		if err := requests[k].Wait(); err != nil {
			return err
		}
		for i, b := range received[k] {
			if want := byte(i/r.block + 16*round + k); b != want {
				return fmt.Errorf("round %d: part %d has %d of part %d, want %d", round, c.Rank(), b, i/r.block, want)
			}
		}
	}
	return nil
}

// Ended implements parts.ElasticJob. After it the view's buffers must not be used.
func (r *rounds) Ended(v world.View) membership.Proposal {
	for _, b := range r.buffers {
		for i := range b {
			b[i] = 0xEE
		}
	}
	r.lived = append(r.lived, v)
	if v.Number >= len(r.views) || r.rank != 1 {
		return membership.Proposal{}
	}
	next := r.views[v.Number].proposed(v)
	return membership.Proposal{View: &next}
}

// newest returns the newest stored round of a part, 0 without one.
func (r *rounds) newest(part int) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if list := r.states[part]; len(list) > 0 {
		return int64(list[len(list)-1])
	}
	return 0
}

// States, Pack and Unpack implement parts.ElasticJob.
func (r *rounds) States() (list []membership.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for part, stored := range r.states {
		for _, round := range stored {
			list = append(list, membership.State{Part: part, Epoch: round})
		}
	}
	return list
}

func (r *rounds) Pack(at membership.State) []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(at.Epoch))
}

func (r *rounds) Unpack(at membership.State, packed []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(binary.LittleEndian.Uint32(packed)) != at.Epoch {
		panic("a state of another round")
	}
	list := slices.DeleteFunc(r.states[at.Part], func(round int) bool { return round >= at.Epoch })
	list = append(list, at.Epoch)
	r.states[at.Part] = list[max(len(list)-3, 0):]
}

// Continue implements parts.ElasticJob.
func (r *rounds) Continue(membership.Decision) {}

// check checks the result of a job.
func (r *rounds) check(t *testing.T) {
	t.Helper()
	last := r.lived[len(r.lived)-1]
	if len(r.lived) != len(r.views)+1 || len(r.done) != len(last.Carried(r.rank)) {
		t.Errorf("rank %d has lived in %d views and has finished %v, in %+v", r.rank, len(r.lived), r.done, last)
	}
	for m := range r.done {
		if last.Rank(m) != r.rank {
			t.Errorf("rank %d has finished member %d, in %+v", r.rank, m, last)
		}
	}
	for _, b := range r.buffers {
		for _, x := range b {
			if x != 0xEE {
				t.Fatalf("rank %d: a buffer was written to after its view had ended", r.rank)
			}
		}
	}
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// courseView is the first view, and turns are the changes after it. A part moves. The members
// of a rank are ended in the middle of a round, once on a rank that stays and once on a
// server. The parts of a rank move to the others.
var courseView = world.View{Parts: 5, Ranks: 3, Servers: 1}

func turns() []turn {
	return []turn{
		{at: 2, proposed: func(v world.View) world.View { return v.Move(1, 2) }},
		{at: 4, end: true, member: 2, proposed: func(v world.View) world.View { return v.WithoutRank(1) }},
		{at: 5, end: true, member: 5, proposed: func(v world.View) world.View { return v.Restart() }},
		{at: 7, end: true, member: 0, proposed: func(v world.View) world.View { return v.Move(4, 1) }},
		{at: 8, proposed: func(v world.View) world.View { return v.Move(4, 0) }},
	}
}

// Members continue in other views, on other ranks, from the state that all have reached. No
// member writes to the memory of a view that has ended.
func TestThroughViews(t *testing.T) {
	shaken := 0
	for range 3 {
		err := inproc.Run(courseView.Started(), func(c world.Comm) error {
			r := newRounds(courseView, c.Rank(), longBlock, turns())
			s := &subs{Comm: c}
			if err := parts.RunViews(s, courseView, r, patient); err != nil {
				return err
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			r.check(t)
			if err := s.left(); err != nil {
				return err
			}
			if c.Rank() == 0 {
				shaken += r.shaken
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if shaken == 0 {
		t.Error("no member of rank 0 was ever in the middle of a round")
	}
}

// subs is a communicator that remembers those made from it.
type subs struct {
	world.Comm
	made []world.Comm
}

// Sub implements world.Comm.
func (s *subs) Sub(ranks []int) (world.Comm, error) {
	c, err := s.Comm.Sub(ranks)
	s.made = append(s.made, c)
	return c, err
}

// left returns an error where something that was sent on one of them has not been received.
func (s *subs) left() error {
	for i, c := range s.made {
		if m, ok, err := c.TryRecv(world.Any, world.Any); ok || err != nil {
			return fmt.Errorf("communicator %d: %d bytes of rank %d are left: %v", i, len(m.Data), m.Source, err)
		}
	}
	return nil
}

// So they do where all ranks would be in one process.
func TestThroughViewsInProcess(t *testing.T) {
	v := courseView
	r := newRounds(v, 1, longBlock, turns())
	if err := parts.RunViews(nil, v, r, patient); err != nil {
		t.Fatal(err)
	}
	if len(r.lived) != len(r.views)+1 || len(r.done) != v.Members() {
		t.Errorf("%d views, %v", len(r.lived), r.done)
	}
}

// If no rank proposes another view, the error on every rank names the ended member. Other failures
// are returned as they are.
func TestNoOtherView(t *testing.T) {
	for name, want := range map[string]string{"ended": "part 2 of rank 1 was ended", "failed": "disk full"} {
		err := inproc.Run(courseView.Started(), func(c world.Comm) error {
			r := newRounds(courseView, c.Rank(), longBlock, nil)
			return parts.RunViews(c, courseView, &onlyLive{r, func(m world.Comm) error {
				switch {
				case m.Rank() != 2:
					return m.Barrier()
				case name == "ended":
					parts.End(m)
					return m.Barrier()
				}
				return fault.New(fault.IO, "write", "part", "disk full")
			}}, patient)
		})
		if err == nil || err.Error() != want && fault.KindOf(err) != fault.IO {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// onlyLive is an ElasticJob with another RunMember.
type onlyLive struct {
	*rounds
	live func(world.Comm) error
}

func (o *onlyLive) RunMember(c world.Comm, _ world.View, _ func(membership.State)) error {
	return o.live(c)
}

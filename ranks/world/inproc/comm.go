package inproc

import (
	"slices"
	"sync"
	"sync/atomic"

	"siafu/internal/wire"
	"siafu/ranks/world"
)

// group is the state of a communicator that its ranks in this process share.
type group struct {
	w           *universe
	id          uint64    // unique, and equal in all processes
	ranks       []int     // ranks in the world
	here        []int     // ranks of the group in this process, ascending
	remoteRanks []int     // one rank of the group in each other process that has any
	mailboxes   []mailbox // of the ranks in this process

	mu  sync.Mutex
	ops map[int]*collective // unfinished collectives, by sequence number
}

func newGroup(w *universe, ranks []int, id uint64) *group {
	g := &group{w: w, id: id, ranks: ranks, mailboxes: make([]mailbox, len(ranks)), ops: map[int]*collective{}}
	g.locate()
	w.register(g)
	return g
}

// name returns the name of a rank of the group in errors.
func (g *group) name(rank int) string { return g.w.share.Name(g.ranks[rank]) }

// comm is one rank's handle of a group.
type comm struct {
	g      *group
	rank   int
	next   int // sequence number of this rank's next collective
	limits atomic.Pointer[world.Limits]
}

func (g *group) comm(rank int, l world.Limits) *comm {
	c := &comm{g: g, rank: rank}
	c.limits.Store(&l)
	return c
}

func (c *comm) Rank() int { return c.rank }
func (c *comm) Size() int { return len(c.g.ranks) }

// me returns the caller's rank in the world.
func (c *comm) me() int { return c.g.ranks[c.rank] }

func (c *comm) Hosts() []string {
	hosts := make([]string, c.Size())
	for i, r := range c.g.ranks {
		hosts[i] = c.g.w.host(r)
	}
	return hosts
}

func (c *comm) SetLimits(l world.Limits) { c.limits.Store(&l) }

func (c *comm) Limits() world.Limits { return *c.limits.Load() }

func (c *comm) Abort(code int, cause error) {
	c.g.w.fail(c.me(), c.g.w.aborted(c.me(), code, cause))
	if far := c.g.w.far; far != nil {
		far.Abort(code, cause)
	}
}

// End ends the ranks of this process: their waits fail with a world.EndedError.
func (c *comm) End() {
	c.g.w.fail(c.me(), &world.EndedError{Member: c.me(), Name: c.g.w.share.Name})
}

func (c *comm) Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (world.Request, error) {
	world.CheckAlltoallv(c.Size(), send, sendCounts, recv, recvCounts)
	sendAt, recvAt := world.Offsets(sendCounts), world.Offsets(recvCounts)
	return c.begin(&part{
		op:  "Ialltoallv",
		out: func(to int) []byte { return send[sendAt[to]:sendAt[to+1]] },
		in:  func(from int) []byte { return recv[recvAt[from]:recvAt[from+1]] },
		far: remoteBlocks{perRank: true},
	})
}

func (c *comm) Allgatherv(send, recv []byte, counts []int) error {
	world.CheckAllgatherv(c.rank, c.Size(), send, recv, counts)
	at := world.Offsets(counts)
	return c.run(&part{
		op:  "Allgatherv",
		out: func(int) []byte { return send },
		in:  func(from int) []byte { return recv[at[from]:at[from+1]] },
	})
}

func (c *comm) Bcast(buf []byte, root int) error {
	world.CheckRank(c.Size(), root)
	// All blocks are empty except those from root to other ranks.
	between := func(from, to int) []byte {
		if from == root && to != root {
			return buf
		}
		return nil
	}
	return c.run(&part{
		op:  "Bcast",
		out: func(to int) []byte { return between(c.rank, to) },
		in:  func(from int) []byte { return between(from, c.rank) },
		far: rooted(c.rank, root),
	})
}

func (c *comm) Barrier() error {
	none := func(int) []byte { return nil }
	return c.run(&part{op: "Barrier", out: none, in: none})
}

func (c *comm) Sub(ranks []int) (world.Comm, error) {
	world.CheckSub(c.Size(), ranks)
	none := func(int) []byte { return nil }
	req, err := c.begin(&part{op: "Sub", out: none, in: none, ranks: ranks})
	if err != nil {
		return nil, err
	}
	if err := req.Wait(); err != nil {
		return nil, err
	}
	if i := slices.Index(ranks, c.rank); i >= 0 {
		return req.col.child.comm(i, *c.limits.Load()), nil
	}
	return nil, nil
}

// run runs a collective from beginning to end.
func (c *comm) run(p *part) error {
	req, err := c.begin(p)
	if err != nil {
		return err
	}
	return req.Wait()
}

func (c *comm) Isend(buf []byte, dst, tag int) (world.Request, error) {
	world.CheckSend(c.Size(), dst, tag)
	if err := c.g.w.lost("Isend", c.me()); err != nil {
		return nil, err
	}
	if c.g.isRemote(dst) {
		_, err := c.sendPacket(dst, Packet{To: dst, Seq: message, Tag: uint64(tag), Data: buf})
		return sent{}, err
	}
	c.g.mailboxes[dst].put(world.Message{Source: c.rank, Tag: tag, Data: append(wire.GetBuffer(len(buf))[:0], buf...)})
	return sent{}, nil
}

// sent is the completed request of a message that was copied, into the receiver's mailbox or
// for sending.
type sent struct{}

func (sent) Test() (bool, error) { return true, nil }
func (sent) Wait() error         { return nil }

func (c *comm) TryRecv(src, tag int) (world.Message, bool, error) {
	world.CheckRecv(c.Size(), src, tag)
	if m, ok := c.g.mailboxes[c.rank].take(src, tag); ok {
		return m, true, nil
	}
	if err := c.g.w.lost("TryRecv", c.me()); err != nil || c.g.w.far == nil {
		return world.Message{}, false, err
	}
	err := c.g.w.fetch(c.me())
	m, ok := c.g.mailboxes[c.rank].take(src, tag)
	return m, ok, err
}

func (c *comm) Recv(src, tag int) (world.Message, error) {
	world.CheckRecv(c.Size(), src, tag)
	box := &c.g.mailboxes[c.rank]
	w := c.wait("Recv", func() []int {
		if src == world.Any {
			return nil
		}
		return []int{c.g.ranks[src]}
	})
	defer w.stop()
	for {
		hopeless, arrived := w.peerLeft(), box.next()
		if err := c.g.w.fetch(c.me()); err != nil {
			return world.Message{}, err
		}
		m, ok := box.take(src, tag)
		switch {
		case ok:
			return m, nil
		case hopeless != nil:
			return world.Message{}, hopeless
		}
		if err := w.until(arrived); err != nil {
			return world.Message{}, err
		}
	}
}

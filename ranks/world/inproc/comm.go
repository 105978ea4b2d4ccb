package inproc

import (
	"sync"
	"sync/atomic"

	"siafu/ranks/world"
)

// group is a communicator as all its ranks share it.
type group struct {
	w     *universe
	ranks []int // of the world
	boxes []mailbox

	mu  sync.Mutex
	ops map[int]*collective // those that not all ranks have begun, by sequence number
}

func newGroup(w *universe, ranks []int) *group {
	return &group{w: w, ranks: ranks, boxes: make([]mailbox, len(ranks)), ops: map[int]*collective{}}
}

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

// me is the caller's rank in the world.
func (c *comm) me() int { return c.g.ranks[c.rank] }

func (c *comm) Hosts() []string {
	hosts := make([]string, c.Size())
	for r := range hosts {
		hosts[r] = c.g.w.host
	}
	return hosts
}

func (c *comm) SetLimits(l world.Limits) { c.limits.Store(&l) }

func (c *comm) Abort(code int, cause error) {
	c.g.w.fail(c.me(), aborted(c.me(), code, cause))
}

func (c *comm) Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (world.Request, error) {
	world.CheckAlltoallv(c.Size(), send, sendCounts, recv, recvCounts)
	sendAt, recvAt := world.Offsets(sendCounts), world.Offsets(recvCounts)
	return c.begin(&part{
		op:  "Ialltoallv",
		out: func(to int) []byte { return send[sendAt[to]:sendAt[to+1]] },
		in:  func(from int) []byte { return recv[recvAt[from]:recvAt[from+1]] },
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
	// Only blocks between root and others are not empty; root keeps its own.
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
	for i, r := range ranks {
		if r == c.rank {
			return req.col.child.comm(i, *c.limits.Load()), nil
		}
	}
	return nil, nil
}

// run is a collective from beginning to end.
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
	data := append(make([]byte, 0, len(buf)), buf...)
	c.g.boxes[dst].put(world.Message{Source: c.rank, Tag: tag, Data: data})
	return sent{}, nil
}

// sent is the request of a message that is in the receiver's mailbox already.
type sent struct{}

func (sent) Test() (bool, error) { return true, nil }
func (sent) Wait() error         { return nil }

func (c *comm) TryRecv(src, tag int) (world.Message, bool, error) {
	world.CheckRecv(c.Size(), src, tag)
	if m, ok := c.g.boxes[c.rank].take(src, tag); ok {
		return m, true, nil
	}
	return world.Message{}, false, c.g.w.lost("TryRecv", c.me())
}

func (c *comm) Recv(src, tag int) (world.Message, error) {
	world.CheckRecv(c.Size(), src, tag)
	box := &c.g.boxes[c.rank]
	w := c.wait("Recv", func() []int {
		if src == world.Any {
			return nil
		}
		return []int{c.g.ranks[src]}
	})
	defer w.stop()
	for {
		hopeless, arrived := w.hopeless(), box.next()
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

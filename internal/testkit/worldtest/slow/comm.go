package slow

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"siafu/ranks/world"
)

// comm is a communicator on a network. Each message begins with a stamp, the time when it is due.
// The stamps of a collective's blocks are separate messages.
type comm struct {
	world.Comm
	network *Network
	hosts   []string   // of its ranks
	stamps  world.Comm // of the same ranks, for stamps of blocks

	mu    sync.Mutex
	early []world.Message // received before they were due, in order
}

// Comm returns a communicator on the network. hosts[r] is the name of rank r's host.
// Collective.
func (n *Network) Comm(c world.Comm, hosts []string) (world.Comm, error) {
	if len(hosts) != c.Size() {
		panic("slow: each rank needs a host")
	}
	stamps, err := c.Sub(world.All(c.Size()))
	return &comm{Comm: c, network: n, hosts: hosts, stamps: stamps}, err
}

func (c *comm) Hosts() []string { return c.hosts }

func (c *comm) Sub(ranks []int) (world.Comm, error) {
	s, err := c.Comm.Sub(ranks)
	if s == nil || err != nil {
		return nil, err
	}
	hosts := make([]string, len(ranks))
	for i, r := range ranks {
		hosts[i] = c.hosts[r]
	}
	return c.network.Comm(s, hosts)
}

// stamp is the length of a stamp.
const stamp = 8

func (c *comm) Isend(buf []byte, dst, tag int) (world.Request, error) {
	world.CheckSend(c.Size(), dst, tag)
	return c.Comm.Isend(append(c.stamped(dst, len(buf)), buf...), dst, tag)
}

// stamped returns the stamp of a message of length bytes that is sent now.
func (c *comm) stamped(dst, length int) []byte {
	due := c.network.carry(c.hosts[c.Rank()], c.hosts[dst], length)
	return binary.LittleEndian.AppendUint64(make([]byte, 0, stamp+length), uint64(due.UnixNano()))
}

func (c *comm) TryRecv(src, tag int) (world.Message, bool, error) {
	if m, ok := c.take(src, tag, time.Now()); ok {
		return m, true, nil
	}
	for {
		m, ok, err := c.Comm.TryRecv(src, tag)
		if err != nil || !ok {
			return world.Message{}, false, err
		}
		c.put(m)
		if m, ok := c.take(src, tag, time.Now()); ok {
			return m, true, nil
		}
	}
}

func (c *comm) Recv(src, tag int) (world.Message, error) {
	if m, ok := c.take(src, tag, time.Time{}); ok {
		return arrive(m), nil
	}
	m, err := c.Comm.Recv(src, tag)
	if err != nil {
		return m, err
	}
	return arrive(m), nil
}

func (c *comm) put(m world.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.early = append(c.early, m)
}

// take removes and returns the first early message of src and tag. Unless now is zero, the message
// must be due, and take removes the stamp.
func (c *comm) take(src, tag int, now time.Time) (world.Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.early, func(m world.Message) bool {
		return (src == world.Any || src == m.Source) && (tag == world.Any || tag == m.Tag)
	})
	if i < 0 {
		return world.Message{}, false
	}
	m := c.early[i]
	if !now.IsZero() {
		if due(m).After(now) {
			return world.Message{}, false
		}
		m.Data = m.Data[stamp:]
	}
	c.early = slices.Delete(c.early, i, i+1)
	return m, true
}

// due returns the time in a stamp.
func due(m world.Message) time.Time {
	return time.Unix(0, int64(binary.LittleEndian.Uint64(m.Data)))
}

// arrive waits until m is due and removes its stamp.
func arrive(m world.Message) world.Message {
	time.Sleep(time.Until(due(m)))
	m.Data = m.Data[stamp:]
	return m
}

// request is a collective in progress.
type request struct {
	world.Request
	c    *comm
	from []int     // ranks whose stamps have not been received
	due  time.Time // the latest of the received stamps
}

func (r *request) Test() (bool, error) {
	done, err := r.Request.Test()
	if err == nil && done {
		err = r.receiveStamps()
	}
	return done && !time.Now().Before(r.due), err
}

func (r *request) Wait() error {
	err := r.Request.Wait()
	if err == nil {
		err = r.receiveStamps()
	}
	time.Sleep(time.Until(r.due))
	return err
}

// receiveStamps receives the stamps of the blocks. They were sent before the blocks.
func (r *request) receiveStamps() error {
	for _, q := range r.from {
		m, err := r.c.stamps.Recv(q, 0)
		if err != nil {
			return err
		}
		r.due = later(r.due, due(m))
	}
	r.from = nil
	return nil
}

// announce sends the stamps of this rank's blocks in a collective. It begins with the next rank, so
// that ranks do not all send to the same one.
func (c *comm) announce(length func(to int) int) error {
	for i := 1; i < len(c.hosts); i++ {
		to := (c.Rank() + i) % len(c.hosts)
		if n := length(to); n > 0 {
			if _, err := c.stamps.Isend(c.stamped(to, n), to, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// expected returns the other ranks that send nonempty blocks.
func (c *comm) expected(length func(from int) int) []int {
	var from []int
	for q := range c.hosts {
		if q != c.Rank() && length(q) > 0 {
			from = append(from, q)
		}
	}
	return from
}

func (c *comm) Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (world.Request, error) {
	world.CheckAlltoallv(c.Size(), send, sendCounts, recv, recvCounts)
	if err := c.announce(func(to int) int { return sendCounts[to] }); err != nil {
		return nil, err
	}
	r, err := c.Comm.Ialltoallv(send, sendCounts, recv, recvCounts)
	if err != nil {
		return nil, err
	}
	return &request{Request: r, c: c, from: c.expected(func(q int) int { return recvCounts[q] })}, nil
}

func (c *comm) Allgatherv(send, recv []byte, counts []int) error {
	world.CheckAllgatherv(c.Rank(), c.Size(), send, recv, counts)
	return c.collective(func(int) int { return len(send) }, func(q int) int { return counts[q] },
		func() error { return c.Comm.Allgatherv(send, recv, counts) })
}

func (c *comm) Bcast(buf []byte, root int) error {
	world.CheckRank(c.Size(), root)
	length := func(sender int) int {
		if sender == root {
			return len(buf)
		}
		return 0
	}
	return c.collective(func(int) int { return length(c.Rank()) }, length, func() error { return c.Comm.Bcast(buf, root) })
}

// collective runs a blocking collective.
func (c *comm) collective(out, in func(rank int) int, do func() error) error {
	if err := c.announce(out); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	r := &request{c: c, from: c.expected(in)}
	if err := r.receiveStamps(); err != nil {
		return err
	}
	time.Sleep(time.Until(r.due))
	return nil
}

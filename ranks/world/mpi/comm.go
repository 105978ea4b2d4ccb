//go:build mpi

package mpi

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"siafu/ranks/world"
)

// comm is one rank's communicator.
type comm struct {
	p          *process
	collective handle
	messages   handle
	rank       int
	ranks      []int  // ranks in the world
	id         uint64 // unique, and equal on all ranks of the communicator
	seq        uint64 // sequence number of the last collective
	limits     atomic.Pointer[world.Limits]

	sending  sync.Mutex // held while the pieces of a message are sent, which must be consecutive
	receipt  sync.Mutex // guards incoming
	incoming []*incoming
}

var (
	_ world.Comm    = (*comm)(nil)
	_ world.InPlace = (*comm)(nil)

	_ world.EagerLimiter = (*comm)(nil)
)

// eagerLimit is slightly below the maximal length that Open MPI sends over TCP without a handshake
// (btl_tcp_eager_limit, 64 KiB including its headers).
const eagerLimit = 60 << 10

// EagerLimit implements world.EagerLimiter.
func (c *comm) EagerLimit() int { return eagerLimit }

// newComm makes a communicator on h. Collective, blocking.
func newComm(p *process, h handle, ranks []int, id uint64, l world.Limits) (*comm, error) {
	messages, err := h.dup()
	if err != nil {
		return nil, err
	}
	c := &comm{p: p, collective: h, messages: messages, rank: slices.Index(ranks, p.rank), ranks: ranks, id: id}
	c.limits.Store(&l)
	return c, nil
}

func (c *comm) Rank() int { return c.rank }
func (c *comm) Size() int { return len(c.ranks) }

func (c *comm) Hosts() []string {
	hosts := make([]string, len(c.ranks))
	for i, r := range c.ranks {
		hosts[i] = c.p.host[r]
	}
	return hosts
}

func (c *comm) SetLimits(l world.Limits) { c.limits.Store(&l) }

func (c *comm) Limits() world.Limits { return *c.limits.Load() }

// Abort ends the job: the launcher kills all ranks and exits with code. The other ranks do not
// receive cause, so the caller must print it first.
func (c *comm) Abort(code int, _ error) {
	c.p.unshare()
	abortWorld(code)
	os.Exit(code) // if the library could not
}

// begins returns the stall of the next collective.
func (c *comm) begins(op string) stall {
	c.seq++
	return stall{op: op, rank: c.p.rank, seq: c.seq, peer: -1}
}

func (c *comm) Barrier() error { return c.meet(c.collective) }

// meet waits for all ranks, like Barrier, over another communicator with the same ranks.
func (c *comm) meet(h handle) error {
	r := c.request(c.begins("Barrier"), 1, 0)
	return r.whole(r.mem.ibarrier(0, h))
}

func (c *comm) Bcast(buf []byte, root int) error {
	world.CheckRank(c.Size(), root)
	limit := c.p.pieces.length
	r := c.request(c.begins("Bcast"), max(1, ceil(len(buf), limit)), 0)
	r.keep(buf)
	return r.whole(inPieces(buf, limit, func(i int, piece []byte) error {
		return r.mem.ibcast(i, c.collective, piece, root)
	}))
}

func (c *comm) Allgatherv(send, recv []byte, counts []int) error {
	world.CheckAllgatherv(c.rank, c.Size(), send, recv, counts)
	// All ranks pass the same counts, so all take the same branch.
	if len(recv) > c.p.pieces.span || slices.Max(counts) > c.p.pieces.length {
		return c.allgathervLong(send, recv, counts)
	}
	size := c.Size()
	r := c.request(c.begins("Allgatherv"), 1, 2*size)
	lengths, displs := r.mem.take(size), r.mem.take(size)
	at := 0
	for q, n := range counts {
		lengths[q], displs[q] = int32(n), int32(at)
		at += n
	}
	r.keep(send, recv)
	return r.whole(r.mem.iallgatherv(0, c.collective, send, recv, lengths, displs))
}

// allgathervLong implements Allgatherv for lengths beyond one MPI call: each rank broadcasts its
// block.
func (c *comm) allgathervLong(send, recv []byte, counts []int) error {
	at := world.Offsets(counts)
	copy(recv[at[c.rank]:], send)
	for q := range counts {
		if err := c.Bcast(recv[at[q]:at[q+1]], q); err != nil {
			return err
		}
	}
	return nil
}

func (c *comm) Sub(ranks []int) (world.Comm, error) {
	world.CheckSub(c.Size(), ranks)
	if err := c.compare(ranks); err != nil {
		return nil, err
	}
	if !slices.Contains(ranks, c.rank) {
		return nil, nil
	}
	// All ranks have called Sub, so the blocking calls end soon.
	list, worldRanks := make([]int32, len(ranks)), make([]int, len(ranks))
	for i, r := range ranks {
		list[i], worldRanks[i] = int32(r), c.ranks[r]
	}
	h, err := c.collective.subset(list)
	if err != nil {
		return nil, err
	}
	return newComm(c.p, h, worldRanks, world.Hash("", int(c.id), int(c.seq)), *c.limits.Load())
}

// compare returns when all ranks have called it. It returns an error if their lists differ.
func (c *comm) compare(ranks []int) error {
	mine := binary.LittleEndian.AppendUint64(nil, world.Hash("", ranks...))
	all := make([]byte, 8*c.Size())
	if err := c.Allgatherv(mine, all, slices.Repeat([]int{8}, c.Size())); err != nil {
		return err
	}
	for q := range c.Size() {
		if string(all[8*q:8*q+8]) != string(mine) {
			return fmt.Errorf("Sub: ranks %d and %d list different ranks", c.p.rank, c.ranks[q])
		}
	}
	return nil
}

// ceil returns n divided by limit, rounded up.
func ceil(n, limit int) int { return (n + limit - 1) / limit }

// inPieces calls do for each piece of at most limit bytes, in order. It calls do once for an empty
// buffer. It stops at the first error.
func inPieces(buf []byte, limit int, do func(i int, piece []byte) error) error {
	for i := 0; ; i++ {
		n := min(len(buf), limit)
		if err := do(i, buf[:n]); err != nil {
			return err
		}
		if buf = buf[n:]; len(buf) == 0 {
			return nil
		}
	}
}

//go:build mpi

package mpi

import (
	"encoding/binary"
	"slices"

	"siafu/ranks/world"
)

// Ranks with a long wait send the number of their current collective to the other ranks of its
// communicator, over a separate MPI communicator. Ranks that wait in the same collective respond.
// This costs nothing without long waits, and needs no separate thread.

// place is a rank in a communicator.
type place struct {
	comm uint64 // id of the communicator
	rank int    // of the world
}

// noteBytes is the length of such a message: the id of the communicator and the sequence number.
const noteBytes = 16

// tell sends the other members this rank's current collective.
func (c *comm) tell(seq uint64) error {
	note := binary.LittleEndian.AppendUint64(nil, c.id)
	note = binary.LittleEndian.AppendUint64(note, seq)
	for _, r := range c.ranks {
		if r == c.p.rank {
			continue
		}
		q := c.request(stall{op: "notice", rank: c.p.rank}, 1, 0)
		q.keep(note)
		if _, err := q.begun(q.mem.isend(0, c.p.notes, note, r, 0)); err != nil {
			return err
		}
		c.p.park(q) // no rank waits for it
	}
	return nil
}

// listen receives the other ranks' notes, and completes parked requests.
func (p *process) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reap()
	for {
		f, ok, err := p.notes.improbe(world.Any, world.Any)
		if err != nil || !ok {
			return err
		}
		note := make([]byte, f.length)
		q := p.world.request(stall{op: "notice", rank: p.rank}, 1, 0)
		q.keep(note)
		if _, err := q.begun(q.mem.imrecv(0, &f, note)); err != nil {
			return err
		}
		// A message this short has arrived when it is matched.
		for done := false; !done; {
			if done, err = q.Test(); err != nil {
				return err
			}
		}
		if len(note) == noteBytes {
			at := place{binary.LittleEndian.Uint64(note), f.source}
			p.heard[at] = max(p.heard[at], binary.LittleEndian.Uint64(note[8:]))
		}
	}
}

// askedFor reports whether another rank has reported that it waits in the collective or a later
// one.
func (p *process) askedFor(comm, seq uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, heard := range p.heard {
		if at.comm == comm && heard >= seq {
			return true
		}
	}
	return false
}

// silent returns the ranks of the world that have not reported to wait in the collective or a later
// one, in ascending order.
func (p *process) silent(c *comm, seq uint64) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ranks []int
	for _, r := range c.ranks {
		if r != p.rank && p.heard[place{c.id, r}] < seq {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// park stores a request without a waiter.
func (p *process) park(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked = append(p.parked, r)
}

// reap drops the parked requests that have ended. It does not call their function after, because
// their results are not used. The caller holds mu.
func (p *process) reap() {
	p.parked = slices.DeleteFunc(p.parked, func(r *request) bool {
		if ended, err := r.mem.test(); !ended || err != nil {
			return false
		}
		r.after = nil
		r.release()
		return true
	})
}

//go:build mpi

package mpi

import (
	"slices"

	"siafu/ranks/world"
)

// A message is sent in pieces of exactly the limit's length and ends with a shorter one, which
// may be empty: a receiver sees from a piece's length whether more follow, and no message
// needs a header.

func (c *comm) Isend(buf []byte, dst, tag int) (world.Request, error) {
	world.CheckSend(c.Size(), dst, tag)
	limit := c.p.pieces.length
	r := c.request(stall{op: "Isend", rank: c.p.rank, peer: c.ranks[dst]}, len(buf)/limit+1, 0)
	r.keep(buf)
	c.sending.Lock()
	defer c.sending.Unlock()
	var err error
	for i := 0; i < int(r.mem.n) && err == nil; i++ {
		err = r.mem.isend(i, c.messages, buf[i*limit:min((i+1)*limit, len(buf))], dst, tag)
	}
	return asRequest(r.begun(err))
}

// Irecv implements world.InPlace.
func (c *comm) Irecv(buf []byte, src, tag int) (world.Request, error) {
	world.CheckRecv(c.Size(), src, tag)
	limit := c.p.pieces.length
	r := c.request(stall{op: "Irecv", rank: c.p.rank, peer: c.ranks[src]}, len(buf)/limit+1, 0)
	r.keep(buf)
	var err error
	for i := 0; i < int(r.mem.n) && err == nil; i++ {
		err = r.mem.irecv(i, c.messages, buf[i*limit:min((i+1)*limit, len(buf))], src, tag)
	}
	return asRequest(r.begun(err))
}

func (c *comm) Recv(src, tag int) (m world.Message, err error) {
	world.CheckRecv(c.Size(), src, tag)
	s := stall{op: "Recv", rank: c.p.rank, peer: -1}
	if src != world.Any {
		s.peer = c.ranks[src]
	}
	err = c.poll(s, func() (ok bool, err error) {
		m, ok, err = c.receive(s, src, tag)
		return ok, err
	})
	return m, err
}

func (c *comm) TryRecv(src, tag int) (world.Message, bool, error) {
	world.CheckRecv(c.Size(), src, tag)
	return c.receive(stall{op: "TryRecv", rank: c.p.rank, peer: -1}, src, tag)
}

// incoming is a partially received message: MPI has matched it, so that no other call can
// receive it, but its bytes, or its later pieces, may arrive much later. It is stored here
// until a call receives it.
type incoming struct {
	source, tag int
	pieces      [][]byte
	under       []*request // of pieces in transit, in order
	more        bool       // the last piece has not been found
}

// receive returns the next message that matches and has arrived.
func (c *comm) receive(s stall, src, tag int) (m world.Message, ok bool, err error) {
	c.receipt.Lock()
	defer c.receipt.Unlock()
	for {
		if m, ok, err = c.arrived(src, tag); ok || err != nil {
			return m, ok, err
		}
		f, ok, err := c.messages.improbe(src, tag)
		if err != nil {
			c.p.failed.Store(true)
			return m, false, s.wrap(err)
		}
		if !ok {
			return m, false, nil
		}
		if err := c.accept(s, f); err != nil {
			return m, false, err
		}
	}
}

// accept begins to receive a piece that was found: the next one of a message
// that waits for it, else the first of a new one.
func (c *comm) accept(s stall, f found) error {
	i := slices.IndexFunc(c.incoming, func(in *incoming) bool {
		return in.more && in.source == f.source && in.tag == f.tag
	})
	if i < 0 {
		i = len(c.incoming)
		c.incoming = append(c.incoming, &incoming{source: f.source, tag: f.tag})
	}
	in := c.incoming[i]
	piece := make([]byte, f.length)
	r := c.request(s, 1, 0)
	r.keep(piece)
	if _, err := r.begun(r.mem.imrecv(0, &f, piece)); err != nil {
		return err
	}
	in.pieces, in.under = append(in.pieces, piece), append(in.under, r)
	in.more = f.length == c.p.pieces.length
	return nil
}

// arrived removes and returns the first incoming message that matches and is
// complete. One may overtake another that is not, unless both have the same
// source and tag.
func (c *comm) arrived(src, tag int) (m world.Message, ok bool, err error) {
	for i, in := range c.incoming {
		matches := (src == world.Any || src == in.source) && (tag == world.Any || tag == in.tag)
		if !matches || slices.ContainsFunc(c.incoming[:i], in.follows) {
			continue
		}
		if err := in.progress(); err != nil {
			return m, false, err
		}
		if len(in.under) == 0 && !in.more {
			c.incoming = slices.Delete(c.incoming, i, i+1)
			return world.Message{Source: in.source, Tag: in.tag, Data: in.join()}, true, nil
		}
	}
	return m, false, nil
}

// follows reports whether in must not overtake other.
func (in *incoming) follows(other *incoming) bool {
	return in.source == other.source && in.tag == other.tag
}

// progress drops the requests of arrived pieces.
func (in *incoming) progress() error {
	for len(in.under) > 0 {
		if ended, err := in.under[0].Test(); !ended || err != nil {
			return err
		}
		in.under = in.under[1:]
	}
	return nil
}

// join returns the message in one slice: its only piece, or all of them copied
// together.
func (in *incoming) join() []byte {
	if len(in.pieces) == 1 {
		return in.pieces[0]
	}
	return slices.Concat(in.pieces...)
}

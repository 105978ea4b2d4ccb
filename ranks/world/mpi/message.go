//go:build mpi

package mpi

import (
	"slices"

	"siafu/internal/wire"
	"siafu/ranks/world"
)

// A message is sent in pieces of exactly the limit's length, followed by a shorter piece, which may
// be empty. So a receiver knows from the length of a piece whether more follow, and messages need
// no header.

func (c *comm) Isend(buf []byte, dst, tag int) (world.Request, error) {
	world.CheckSend(c.Size(), dst, tag)
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.transfer("Isend", (*memory).isend, buf, dst, tag)
}

// Irecv implements world.InPlace.
func (c *comm) Irecv(buf []byte, src, tag int) (world.Request, error) {
	world.CheckRecv(c.Size(), src, tag)
	return c.transfer("Irecv", (*memory).irecv, buf, src, tag)
}

// transfer begins to send or receive the pieces of a message of known length.
func (c *comm) transfer(op string, begin func(m *memory, i int, h handle, piece []byte, peer, tag int) error, buf []byte,
	peer, tag int) (world.Request, error) {
	limit := c.p.pieces.length
	r := c.request(stall{op: op, rank: c.p.rank, peer: c.ranks[peer]}, len(buf)/limit+1, 0)
	r.keep(buf)
	var err error
	for i := 0; i < int(r.mem.n) && err == nil; i++ {
		err = begin(&r.mem, i, c.messages, buf[i*limit:min((i+1)*limit, len(buf))], peer, tag)
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

// incoming is a partially received message. MPI has matched its first piece, so that no other call
// can receive it. Its bytes, or its later pieces, may arrive much later. It is stored here until a
// call receives it.
type incoming struct {
	source, tag int
	pieces      [][]byte
	under       []*request // requests of pieces in transit, in order
	more        bool       // the last piece has not been matched
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

// accept begins to receive a matched piece. It is the next piece of an incomplete message with the
// same source and tag, or else the first piece of a new message.
func (c *comm) accept(s stall, f found) error {
	i := slices.IndexFunc(c.incoming, func(in *incoming) bool {
		return in.more && in.source == f.source && in.tag == f.tag
	})
	if i < 0 {
		i = len(c.incoming)
		c.incoming = append(c.incoming, &incoming{source: f.source, tag: f.tag})
	}
	in := c.incoming[i]
	piece := wire.GetBuffer(f.length)
	r := c.request(s, 1, 0)
	r.keep(piece)
	if _, err := r.begun(r.mem.imrecv(0, &f, piece)); err != nil {
		return err
	}
	in.pieces, in.under = append(in.pieces, piece), append(in.under, r)
	in.more = f.length == c.p.pieces.length
	return nil
}

// arrived removes and returns the first incoming message that matches and is complete. A complete
// message may overtake an incomplete one unless both have the same source and tag.
func (c *comm) arrived(src, tag int) (m world.Message, ok bool, err error) {
	for i, in := range c.incoming {
		matches := (src == world.Any || src == in.source) && (tag == world.Any || tag == in.tag)
		follows := func(other *incoming) bool { return in.source == other.source && in.tag == other.tag }
		if !matches || slices.ContainsFunc(c.incoming[:i], follows) {
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

// join returns the message in one slice: its only piece, or a copy of all pieces.
func (in *incoming) join() []byte {
	if len(in.pieces) == 1 {
		return in.pieces[0]
	}
	return slices.Concat(in.pieces...)
}

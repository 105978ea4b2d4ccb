package parts

import (
	"cmp"
	"errors"
	"sync/atomic"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// RunParts runs body in one goroutine for each part of this rank, or for its server. Each has a
// communicator in the world of v.Members() members. RunParts returns when all of them have
// returned and no message to this rank is in transit. Its error is the first failure of this rank
// that is not a consequence of another one, as in inproc.Run. The caller must then abort c, unless
// all ranks have the same error (world.AgreedError, world.EndedError). RunParts panics if the size
// of c is not that of the view. Collective over c.
func RunParts(c world.Comm, v world.View, body func(c world.Comm) error) error {
	if c.Size() != v.Started() {
		panic("parts: the view is of another world")
	}
	if c.Size() == 1 {
		return InProcess(v, body)
	}
	p, err := newRemoteLink(c, v)
	if err != nil {
		return err
	}
	s := inproc.Share{Size: v.Members(), Here: append([]int{}, v.Carried(c.Rank())...), Remote: p, Name: v.Name}
	for m := range v.Members() {
		s.Hosts = append(s.Hosts, c.Hosts()[v.Rank(m)])
	}
	if len(s.Here) == 0 { // this rank only waits for the end of the others
		p.packets.SetLimits(world.Limits{})
	}
	err = inproc.RunShare(s, body)
	var ended *world.EndedError
	if shared := (*world.AgreedError)(nil); err != nil && !errors.As(err, &shared) && !errors.As(err, &ended) {
		return err
	}
	if closing := p.close(ended); err == nil {
		err = closing
	}
	return err
}

// InProcess runs the parts of all ranks in this process.
func InProcess(v world.View, body func(c world.Comm) error) error {
	return inproc.RunShare(inproc.Share{Size: v.Members(), Name: v.Name}, body)
}

// remoteLink sends packets to other ranks and receives theirs.
type remoteLink struct {
	packets   world.Comm // carries packets, in order
	bulk      world.Comm // carries long blocks
	view      world.View
	outbox    *world.Outbox
	next      atomic.Uint32 // tag of the next long block
	incoming  []*incomingBlock
	finished  []bool            // by rank: whether its final packet has arrived
	ended     *world.EndedError // from a final packet of ended members
	abandoned []world.Request   // of blocks without a waiting receiver
}

// incomingBlock is a packet with a separate block.
type incomingBlock struct {
	packet  inproc.Packet // Data is the buffer of the block, nil until the receiver is ready
	block   blockRef
	from    int           // rank
	request world.Request // nil without a buffer
}

func newRemoteLink(c world.Comm, v world.View) (*remoteLink, error) {
	ranks := world.All(c.Size())
	packets, err := c.Sub(ranks)
	if err != nil {
		return nil, err
	}
	bulk, err := c.Sub(ranks)
	if err != nil {
		return nil, err
	}
	return &remoteLink{packets: packets, bulk: bulk, view: v, outbox: world.NewOutbox(packets), finished: make([]bool, c.Size())}, nil
}

// Process implements inproc.Remote.
func (p *remoteLink) Process(member int) int { return p.view.Rank(member) }

// Abandon implements inproc.Remote.
func (p *remoteLink) Abandon(r world.Request) { p.abandoned = append(p.abandoned, r) }

// Abort implements inproc.Remote.
func (p *remoteLink) Abort(code int, cause error) { p.packets.Abort(code, cause) }

// Carry implements inproc.Remote. It sends even long messages within packets, because they must not
// overtake one another.
func (p *remoteLink) Carry(to int, l inproc.Packet) (world.Request, error) {
	rank := p.view.Rank(to)
	if len(l.Data) <= inlineLimit || l.Seq < 0 {
		return nil, p.send(rank, l, blockRef{})
	}
	f := blockRef{len(l.Data), int(p.next.Add(1) % tagCount)}
	if err := p.send(rank, l, f); err != nil {
		return nil, err
	}
	return p.bulk.Isend(l.Data, rank, f.tag)
}

func (p *remoteLink) send(rank int, l inproc.Packet, f blockRef) error {
	return p.outbox.Send(rank, 0, func(b []byte) []byte { return appendPacket(b, l, f) })
}

// Fetch implements inproc.Remote.
func (p *remoteLink) Fetch(r inproc.Receiver) error {
	for {
		m, ok, err := p.packets.TryRecv(world.Any, world.Any)
		if err != nil {
			return err
		}
		if !ok {
			return p.receiveBlocks(r)
		}
		if err := p.handle(m, r); err != nil {
			return err
		}
	}
}

// handle handles a message of another rank. It returns an error for the last packet of a rank whose
// members were ended.
func (p *remoteLink) handle(m world.Message, r inproc.Receiver) error {
	l, f, err := decodePacket(m.Data, m.Source)
	switch {
	case err != nil:
		return err
	case l.Group == shutdownGroup:
		p.finished[m.Source] = true
		if l.From >= 0 {
			p.ended = &world.EndedError{Member: l.From, Name: p.view.Name}
			return p.ended
		}
		return nil
	case f.length > 0:
		p.incoming = append(p.incoming, &incomingBlock{packet: l, block: f, from: m.Source})
		return nil
	}
	return r.Deliver(l)
}

// receiveBlocks continues to receive separate blocks.
func (p *remoteLink) receiveBlocks(r inproc.Receiver) error {
	still := p.incoming[:0]
	var failed error
	for _, c := range p.incoming {
		ended, err := c.receive(p.bulk, r)
		if err == nil && ended {
			err = r.Deliver(c.packet)
		} else {
			still = append(still, c)
		}
		failed = cmp.Or(failed, err)
	}
	clear(p.incoming[len(still):])
	p.incoming = still
	return failed
}

// receive begins to receive a block when the receiver has a buffer for it, and reports whether the
// block has arrived.
func (c *incomingBlock) receive(bulk world.Comm, r inproc.Receiver) (ended bool, err error) {
	if c.request == nil {
		if c.packet.Data = r.Room(c.packet, c.block.length); c.packet.Data == nil {
			return false, nil
		}
		if c.request, err = world.Irecv(bulk, c.packet.Data, c.from, c.block.tag); err != nil {
			return false, err
		}
	}
	return c.request.Test()
}

// close sends a last packet to the other ranks and receives packets until it has their last ones.
// ended is not nil if members of this rank were ended. Then no message to this rank is in transit,
// and none of its blocks. close returns a world.EndedError if members of any rank were ended.
func (p *remoteLink) close(ended *world.EndedError) error {
	last := inproc.Packet{Group: shutdownGroup, From: noMember}
	if ended != nil {
		p.ended, last.From = ended, ended.Member
	}
	me := p.packets.Rank()
	for r := range p.finished {
		if r == me {
			continue
		}
		if err := p.send(r, last, blockRef{}); err != nil {
			return err
		}
	}
	for r := range p.finished {
		for r != me && !p.finished[r] {
			m, err := p.packets.Recv(r, world.Any)
			if err != nil {
				return err
			}
			if err := p.handle(m, discarder{}); err != nil && !p.finished[r] {
				return err
			}
		}
	}
	if err := p.settle(); err != nil {
		return err
	}
	if p.ended != nil {
		return p.ended
	}
	return nil
}

// settle returns when no block to or from this rank is in transit, including blocks for parts that
// have left.
func (p *remoteLink) settle() error {
	for _, c := range p.incoming {
		if _, err := c.receive(p.bulk, discarder{}); err != nil {
			return err
		}
	}
	for _, c := range p.incoming {
		p.abandoned = append(p.abandoned, c.request)
	}
	for _, r := range p.abandoned {
		if err := r.Wait(); err != nil {
			return err
		}
	}
	return p.outbox.Settle()
}

// discarder is the receiver of packets for parts that have left.
type discarder struct{}

func (discarder) Room(_ inproc.Packet, n int) []byte { return make([]byte, n) }

func (discarder) Deliver(inproc.Packet) error { return nil }

package parts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// RunParts runs body in one goroutine for each member that this rank carries. Each has a
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
	p, err := connect(c)
	if err != nil {
		return err
	}
	return p.run(v, body)
}

// InProcess runs the parts of all ranks in this process.
func InProcess(v world.View, body func(c world.Comm) error) error {
	return inproc.RunShare(inproc.Share{Size: v.Members(), Name: v.Name}, body)
}

// remoteLink sends packets to other ranks and receives theirs. It serves one view after another.
type remoteLink struct {
	rank   int
	hosts  []string // of all ranks
	limits func() world.Limits
	abort  func(code int, cause error)
	outbox *world.Outbox
	next   atomic.Uint32  // tag of the next long block
	gone   []*atomic.Bool // by rank: whether it is lost

	founders int       // ranks of the start, which comm connects
	comm     transport // nil on a rank that has joined later
	streams  transport // to and from ranks that have joined later, nil if none can

	// Of the current view.
	view      world.View
	lost      atomic.Pointer[world.EndedError] // set by interrupt
	incoming  []*incomingBlock
	finished  []bool            // by rank: whether its final packet has arrived
	ended     *world.EndedError // from a final packet of ended members
	abandoned []blockRequest    // of blocks without a waiting receiver
}

// incomingBlock is a packet with a separate block.
type incomingBlock struct {
	packet  inproc.Packet // Data is the buffer of the block, nil until the receiver is ready
	block   blockRef
	from    int           // rank
	request world.Request // nil without a buffer
}

// blockRequest is a request of a block to or from a rank.
type blockRequest struct {
	world.Request
	rank int
}

// connect makes the link between the ranks of c. Collective over c.
func connect(c world.Comm) (*remoteLink, error) {
	ranks := world.All(c.Size())
	packets, err := c.Sub(ranks)
	if err != nil {
		return nil, err
	}
	bulk, err := c.Sub(ranks)
	if err != nil {
		return nil, err
	}
	p := newRemoteLink(c.Rank(), c.Hosts())
	p.limits, p.abort = c.Limits, packets.Abort
	p.founders, p.comm = c.Size(), comms{packets, bulk}
	return p, nil
}

func newRemoteLink(rank int, hosts []string) *remoteLink {
	p := &remoteLink{rank: rank}
	p.outbox = world.NewOutbox(p)
	p.extend(hosts)
	return p
}

// extend adds ranks on the given hosts. It is called between two views.
func (p *remoteLink) extend(hosts []string) {
	for _, h := range hosts {
		p.hosts, p.gone = append(p.hosts, h), append(p.gone, new(atomic.Bool))
	}
}

// via returns the transport to and from a rank.
func (p *remoteLink) via(rank int) transport {
	if p.rank < p.founders && rank < p.founders {
		return p.comm
	}
	return p.streams
}

// Isend implements world.Sender.
func (p *remoteLink) Isend(b []byte, to, tag int) (world.Request, error) {
	return p.via(to).Isend(b, to, tag)
}

// tryRecv returns the next packet of a rank or of any rank, if one has arrived.
func (p *remoteLink) tryRecv(from int) (m world.Message, ok bool, err error) {
	if from != world.Any {
		return p.via(from).TryRecv(from, world.Any)
	}
	if p.comm != nil {
		m, ok, err = p.comm.TryRecv(world.Any, world.Any)
	}
	if !ok && err == nil && len(p.hosts) > p.founders {
		m, ok, err = p.streams.TryRecv(world.Any, world.Any)
	}
	return m, ok, err
}

// run runs the members of a view, like RunParts. Collective over the ranks that are not lost.
func (p *remoteLink) run(v world.View, body func(c world.Comm) error) error {
	p.view, p.finished, p.ended = v, make([]bool, v.Started()), nil
	p.incoming, p.abandoned = nil, nil
	s := inproc.Share{Size: v.Members(), Here: append([]int{}, v.Carried(p.rank)...), Remote: p, Name: v.Name}
	for m := range v.Members() {
		s.Hosts = append(s.Hosts, p.hosts[v.Rank(m)])
	}
	if c, ok := p.comm.(comms); ok && len(s.Here) == 0 { // this rank only waits for the end of the others
		c.SetLimits(world.Limits{})
	}
	err := inproc.RunShare(s, body)
	var ended *world.EndedError
	if shared := (*world.AgreedError)(nil); err != nil && !errors.As(err, &shared) && !errors.As(err, &ended) {
		return err
	}
	if closing := p.close(ended); err == nil {
		err = closing
	}
	return err
}

// lose records that a rank is lost: nothing more is received from it, and nothing waits for it.
func (p *remoteLink) lose(rank int) { p.gone[rank].Store(true) }

// interrupt ends all members here, because a member of the view is lost. A nil error ends that.
func (p *remoteLink) interrupt(lost *world.EndedError) { p.lost.Store(lost) }

// Process implements inproc.Remote.
func (p *remoteLink) Process(member int) int { return p.view.Rank(member) }

// Abandon implements inproc.Remote.
func (p *remoteLink) Abandon(r world.Request) { p.abandoned = append(p.abandoned, r.(blockRequest)) }

// Abort implements inproc.Remote.
func (p *remoteLink) Abort(code int, cause error) { p.abort(code, cause) }

// Carry implements inproc.Remote. It sends even long messages within packets, because they must not
// overtake one another.
func (p *remoteLink) Carry(to int, l inproc.Packet) (world.Request, error) {
	rank := p.view.Rank(to)
	if p.gone[rank].Load() {
		return nil, nil // this view ends
	}
	if len(l.Data) <= inlineLimit || l.Seq < 0 {
		return nil, p.send(rank, l, blockRef{})
	}
	f := blockRef{len(l.Data), int(p.next.Add(1) % tagCount)}
	if err := p.send(rank, l, f); err != nil {
		return nil, err
	}
	r, err := p.via(rank).sendBlock(l.Data, rank, f.tag)
	return blockRequest{r, rank}, err
}

func (p *remoteLink) send(rank int, l inproc.Packet, f blockRef) error {
	return p.outbox.Send(rank, 0, func(b []byte) []byte { return appendPacket(b, l, f) })
}

// Fetch implements inproc.Remote.
func (p *remoteLink) Fetch(r inproc.Receiver) error {
	for {
		if lost := p.lost.Load(); lost != nil {
			return lost
		}
		m, ok, err := p.tryRecv(world.Any)
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
	if p.gone[m.Source].Load() {
		return nil
	}
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
		if p.gone[c.from].Load() {
			continue
		}
		ended, err := c.receive(p.via(c.from), r)
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
func (c *incomingBlock) receive(via transport, r inproc.Receiver) (ended bool, err error) {
	if c.request == nil {
		if c.packet.Data = r.Room(c.packet, c.block.length); c.packet.Data == nil {
			return false, nil
		}
		if c.request, err = via.receiveBlock(c.packet.Data, c.from, c.block.tag); err != nil {
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
	others := world.All(len(p.finished))
	others = slices.Delete(others, p.rank, p.rank+1)
	for _, r := range others {
		if p.gone[r].Load() {
			continue
		}
		if err := p.send(r, last, blockRef{}); err != nil {
			return err
		}
	}
	for _, r := range others {
		if err := p.until("the last packet of", r, func() (bool, error) { return p.drain(r) }); err != nil {
			return err
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

// drain receives packets of a rank, and reports whether its last one has arrived or it is lost.
func (p *remoteLink) drain(rank int) (bool, error) {
	for !p.finished[rank] {
		if p.gone[rank].Load() {
			return true, nil
		}
		m, ok, err := p.tryRecv(rank)
		if !ok || err != nil {
			return false, err
		}
		if err := p.handle(m, discarder{}); err != nil && !p.finished[rank] {
			return false, err
		}
	}
	return true, nil
}

// closePoll is the interval in which a rank that has ended a view looks for the others' last packets.
const closePoll = 100 * time.Microsecond

// settle returns when no block to or from this rank is in transit, including blocks for parts that
// have left. It does not wait for blocks of lost ranks, whose memory stays in use.
func (p *remoteLink) settle() error {
	for _, c := range p.incoming {
		if p.gone[c.from].Load() {
			continue
		}
		if _, err := c.receive(p.via(c.from), discarder{}); err != nil {
			return err
		}
		p.abandoned = append(p.abandoned, blockRequest{c.request, c.from})
	}
	lost := func(rank int) bool { return p.gone[rank].Load() }
	for _, r := range p.abandoned {
		if err := p.until("the end of a block to or from", r.rank, func() (bool, error) {
			ended, err := r.Test()
			return ended || lost(r.rank), err
		}); err != nil {
			return err
		}
	}
	return p.until("the end of messages to", world.Any, func() (bool, error) { return p.outbox.Settled(lost) })
}

// until polls until done, an error or the limit of waits. what and rank, or world.Any, name what it
// waits for.
func (p *remoteLink) until(what string, rank int, done func() (bool, error)) error {
	limit := p.limits().Abort
	for began := time.Now(); ; time.Sleep(closePoll) {
		if ended, err := done(); ended || err != nil {
			return err
		}
		if waited := time.Since(began); limit > 0 && waited > limit {
			of := "other ranks"
			if rank != world.Any {
				of = fmt.Sprintf("rank %d on %s", rank, p.hosts[rank])
			}
			return fault.New(fault.Runtime, "parts", "", "rank %d has waited %v for %s %s", p.rank, waited.Round(time.Second), what, of)
		}
	}
}

// discarder is the receiver of packets for parts that have left.
type discarder struct{}

func (discarder) Room(_ inproc.Packet, n int) []byte { return make([]byte, n) }

func (discarder) Deliver(inproc.Packet) error { return nil }

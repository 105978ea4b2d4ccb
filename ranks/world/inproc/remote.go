package inproc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"siafu/ranks/world"
)

// A world may have ranks in other processes. Packets carry blocks and messages to them. Any waiting
// rank receives the packets for all ranks of its process. A block is copied to its receiver's
// buffer, or stored with its collective until the receiver begins it. A message is put into a
// mailbox. So the progress of a rank depends on no other rank of its process.

// Share describes the ranks of a world that are goroutines of this process.
type Share struct {
	Size   int      // of the world
	Here   []int    // its ranks in this process, possibly none; nil: all
	Hosts  []string // of all ranks; nil: this host for all
	Remote Remote   // reaches the other ranks; nil without others

	Name func(rank int) string // returns the name of a rank for errors; nil: "rank 3"
}

// Remote sends packets to ranks of other processes. Several goroutines may use it concurrently, but
// only one at a time may call Fetch.
type Remote interface {
	// Carry starts to send a Packet to the process of a rank of the world. The request is nil if
	// the caller may overwrite the data at once, which is always the case for a message. Messages
	// between two processes keep their order.
	Carry(to int, l Packet) (world.Request, error)
	// Fetch passes received Packets to r, and does not wait. A world.EndedError also ends the
	// ranks of this process.
	Fetch(r Receiver) error
	// Abandon takes ownership of a request of Carry that has no waiter.
	Abandon(r world.Request)
	// Process returns the number of the process of a rank.
	Process(rank int) int
	// Abort ends all processes.
	Abort(code int, cause error)
}

// Receiver receives Packets from a Remote.
type Receiver interface {
	// Room returns a buffer for the n bytes of data of a Packet, or nil if the receiver is not
	// ready for it.
	Room(l Packet, n int) []byte
	// Deliver handles a Packet. Its data is in the buffer from Room, or the receiver owns it.
	Deliver(l Packet) error
}

// Packet is a message to a rank of another process, or a block of a collective.
type Packet struct {
	Group    uint64 // id of the communicator
	From, To int    // its ranks; To is world.Any for a block to all ranks
	Seq      int    // sequence number of the collective; -1: a message
	Tag      uint64 // tag of a message, or the signature of a block's collective
	Data     []byte
}

// message is the Seq of a message.
const message = -1

// remoteBlocks defines a rank's exchange with the ranks of other processes in a collective.
// The zero value sends the same block to all and receives one from each.
type remoteBlocks struct {
	silent       bool             // the rank sends nothing
	perRank      bool             // a separate block to and from each rank; empty ones are not sent
	receivesFrom func(q int) bool // reports whether rank q sends a block; nil: all ranks do
}

// rooted returns the remoteBlocks of rank me if root has a block for all ranks.
func rooted(me, root int) remoteBlocks {
	return remoteBlocks{silent: me != root, receivesFrom: func(q int) bool { return q == root }}
}

// receivesFrom reports whether rank q, in another process, sends a block.
func (p *part) receivesFrom(q int) bool {
	if p.far.perRank {
		return len(p.in(q)) > 0
	}
	return p.far.receivesFrom == nil || p.far.receivesFrom(q)
}

// isRemote reports whether a rank of the group is in another process.
func (g *group) isRemote(q int) bool { return g.w.isRemote(g.ranks[q]) }

// locate finds the ranks in this process, and one rank in each other process.
func (g *group) locate() {
	seen := map[int]bool{}
	for q, r := range g.ranks {
		if !g.isRemote(q) {
			g.here = append(g.here, q)
		} else if at := g.w.far.Process(r); !seen[at] {
			seen[at] = true
			g.remoteRanks = append(g.remoteRanks, q)
		}
	}
}

// sendBlocks sends a rank's blocks of its next collective to other processes. It begins with the
// next rank, so that not all ranks send to the same rank at the same time.
func (c *comm) sendBlocks(p *part) error {
	if len(c.g.remoteRanks) == 0 || p.far.silent {
		return nil
	}
	defer c.g.w.trackPending(p)
	if !p.far.perRank {
		for _, q := range c.g.remoteRanks {
			if err := c.send(p, q, world.Any); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range c.Size() {
		if q := (c.rank + i) % c.Size(); c.g.isRemote(q) && len(p.out(q)) > 0 {
			if err := c.send(p, q, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends the block for rank q to q's process. to is q or world.Any.
func (c *comm) send(p *part, q, to int) error {
	r, err := c.sendPacket(q, Packet{To: to, Seq: c.next, Tag: p.tag, Data: p.out(q)})
	if r != nil {
		p.pendingSends = append(p.pendingSends, pendingSend{r, c.g.ranks[q]})
	}
	return err
}

// sendPacket begins to send a packet of this rank to the process of rank q.
func (c *comm) sendPacket(q int, l Packet) (world.Request, error) {
	l.Group, l.From = c.g.id, c.rank
	r, err := c.g.w.far.Carry(c.g.ranks[q], l)
	return r, c.g.w.recordFailure(c.me(), err)
}

// recordFailure returns an error of the Remote. It first records the error as the failure of the
// world, before any rank can see a consequence.
func (w *universe) recordFailure(rank int, err error) error {
	if err != nil {
		w.fail(rank, err)
	}
	return err
}

// pendingSend is a block being sent from a rank's buffer.
type pendingSend struct {
	request world.Request
	to      int // rank of the world
}

// trackPending records whether a part of a collective has blocks in transit.
func (w *universe) trackPending(p *part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(p.pendingSends) > 0 {
		w.pendingParts[p] = struct{}{}
	} else {
		delete(w.pendingParts, p)
	}
}

// sent drops sent blocks and reports whether all are sent.
func (c *comm) sent(p *part) (bool, error) {
	if len(p.pendingSends) == 0 {
		return true, nil
	}
	var failed error
	p.pendingSends = slices.DeleteFunc(p.pendingSends, func(l pendingSend) bool {
		gone, err := l.request.Test()
		failed = cmp.Or(failed, err)
		return gone
	})
	if len(p.pendingSends) > 0 {
		return false, c.g.w.recordFailure(c.me(), failed)
	}
	c.g.w.trackPending(p)
	return true, c.g.w.recordFailure(c.me(), failed)
}

// countOwed returns the number of blocks that other processes send to a rank in its next
// collective. It also sets the tag of the rank's packets.
func (c *comm) countOwed(p *part) int {
	if len(c.g.remoteRanks) == 0 {
		return 0
	}
	p.tag, p.owed = world.Hash(p.op, p.ranks...), make([]bool, c.Size())
	n := 0
	for q := range p.owed {
		if c.g.isRemote(q) && p.receivesFrom(q) {
			p.owed[q] = true
			n++
		}
	}
	return n
}

// register registers a group for the delivery of packets.
func (w *universe) register(g *group) {
	if w.far == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[g.id] = g
}

// fetch receives packets from other processes, for a rank of the world, unless another rank is
// doing so.
func (w *universe) fetch(rank int) error {
	if w.far == nil || !w.fetching.TryLock() {
		return nil
	}
	defer w.fetching.Unlock()
	err := w.far.Fetch(w)
	if ended := (*world.EndedError)(nil); errors.As(err, &ended) {
		rank = ended.Member
	}
	return w.recordFailure(rank, err)
}

// group returns the group of a packet, or nil. A group that exists in another process is registered
// here, because the ranks of this process have begun to create it.
func (w *universe) group(l Packet) *group {
	w.mu.Lock()
	g := w.groups[l.Group]
	w.mu.Unlock()
	if g == nil || l.From < 0 || l.From >= len(g.ranks) || l.To >= len(g.ranks) {
		return nil
	}
	return g
}

// Room implements Receiver. If a block has one receiver, Room returns the receiver's own buffer
// after the receiver has begun.
func (w *universe) Room(l Packet, n int) []byte {
	g := w.group(l)
	if g == nil || l.To == world.Any {
		return make([]byte, n)
	}
	col := g.collective(l.Seq)
	col.mu.Lock()
	defer col.mu.Unlock()
	p := col.parts[l.To]
	switch {
	case p == nil:
		return nil
	case p.gaveUp != nil || !p.owed[l.From] || len(p.in(l.From)) != n:
		return make([]byte, n)
	}
	return p.in(l.From)
}

// Deliver implements Receiver.
func (w *universe) Deliver(l Packet) error {
	g := w.group(l)
	if g == nil {
		return fmt.Errorf("a message from rank %d to rank %d names an unknown communicator", l.From, l.To)
	}
	if l.Seq == message {
		g.mailboxes[l.To].put(world.Message{Source: l.From, Tag: int(l.Tag), Data: slices.Clip(l.Data)})
		return nil
	}
	col := g.collective(l.Seq)
	col.deliver(l)
	g.forget(l.Seq, col)
	return nil
}

// deliver copies a block to the ranks that have begun, and stores it for the others.
func (col *collective) deliver(l Packet) {
	var begun []int
	early := false
	col.mu.Lock()
	for _, r := range col.g.here {
		switch {
		case l.To != world.Any && l.To != r:
		case col.parts[r] == nil:
			early = true
		default:
			begun = append(begun, r)
		}
	}
	if early {
		col.early = append(col.early, l)
	}
	col.mu.Unlock()
	for _, r := range begun {
		col.copyBlock(l, r)
	}
}

// earlyFor returns the blocks that arrived for a rank before it began. The caller holds mu.
func (col *collective) earlyFor(rank int) []Packet {
	var list []Packet
	for _, l := range col.early {
		if l.To == world.Any || l.To == rank {
			list = append(list, l)
		}
	}
	return list
}

// copyBlock copies a block to the buffer of a rank that has begun.
func (col *collective) copyBlock(l Packet, rank int) {
	p := col.accept(l, rank)
	if p == nil {
		return
	}
	if dst := p.in(l.From); len(dst) == len(l.Data) {
		if len(dst) > 0 && &dst[0] != &l.Data[0] { // else it was received in place
			copy(dst, l.Data)
		}
	} else {
		col.mu.Lock()
		col.refuse(fmt.Errorf("%s: %s sends %d bytes to %s, which expects %d",
			p.op, col.g.name(l.From), len(l.Data), col.g.name(rank), len(dst)))
		col.mu.Unlock()
	}
	p.copying.Done()
	p.finish()
}

// accept returns the part of a rank that waits for a block, and marks its buffers as in use. It
// returns nil if the rank has given up or the ranks' arguments do not match.
func (col *collective) accept(l Packet, rank int) *part {
	col.mu.Lock()
	defer col.mu.Unlock()
	p := col.parts[rank]
	switch {
	case l.Tag != p.tag:
		col.refuse(fmt.Errorf("%s: %s calls it, but %s calls another collective or passes another list",
			p.op, col.g.name(rank), col.g.name(l.From)))
		return nil
	case !p.owed[l.From]:
		col.refuse(fmt.Errorf("%s: %s sends %d bytes to %s, which expects none",
			p.op, col.g.name(l.From), len(l.Data), col.g.name(rank)))
		return nil
	}
	p.owed[l.From] = false
	col.due--
	if p.gaveUp != nil {
		return nil
	}
	p.copying.Add(1)
	return p
}

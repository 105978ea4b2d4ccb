package inproc

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"siafu/ranks/world"
)

// collective is one collective operation of a group. Every collective is an exchange of
// blocks, possibly empty, between all pairs of ranks.
type collective struct {
	g     *group
	seq   int
	child *group // made by Sub

	mu      sync.Mutex
	parts   []*part // by rank; nil until the rank begins, and for ranks of other processes
	begun   int
	early   []Packet      // blocks that arrived before all of their receivers began
	due     int           // blocks from other processes that are missing on ranks that have begun
	err     error         // the reason why no rank can complete it: mismatched arguments, or an *abandoned
	refused chan struct{} // closed when err is set
}

// part is one rank's contribution to a collective.
type part struct {
	op    string
	out   func(to int) []byte   // returns the block to send
	in    func(from int) []byte // returns the buffer of the block to receive
	ranks []int                 // Sub's argument
	far   remoteBlocks

	tag          uint64         // tag of this collective's packets
	owed         []bool         // by rank of another process: its block is missing; guarded by the collective
	pendingSends []pendingSend  // blocks in transit to other processes
	pending      atomic.Int32   // number of ranks whose blocks have not been exchanged yet
	done         chan struct{}  // closed when pending is 0
	copying      sync.WaitGroup // other ranks that use the buffers right now
	gaveUp       error          // the error of the wait, after which its buffers must not be used; guarded by the collective
}

// abandoned is the error of a collective that a rank of the world stopped waiting for
// before all ranks had joined.
type abandoned struct {
	rank  int
	cause error
}

func (a *abandoned) Error() string { return a.cause.Error() }

// request is one rank's side of a pending collective.
type request struct {
	c    *comm
	col  *collective
	part *part

	arrived bool // all blocks are received; sends may be pending
}

// begin joins the rank's next collective. It sends its blocks to other processes and exchanges
// blocks with all ranks of this process that have joined before.
func (c *comm) begin(p *part) (*request, error) {
	if err := c.g.w.lost(p.op, c.me()); err != nil {
		return nil, err
	}
	p.done = make(chan struct{})
	owed := c.countOwed(p)
	p.pending.Store(int32(len(c.g.here) + owed))
	col := c.g.collective(c.next)
	peers, early, err := col.join(c.rank, p, owed)
	if err != nil {
		return nil, c.failure(p.op, err)
	}
	// Send after join: a receiver of the packet then knows that the group exists here.
	posted := c.sendBlocks(p)
	for _, q := range peers {
		col.exchange(c.rank, q)
	}
	for _, l := range early {
		col.copyBlock(l, c.rank)
	}
	c.g.forget(c.next, col)
	c.next++
	r := &request{c: c, col: col, part: p}
	if posted != nil {
		return nil, r.fail(posted)
	}
	return r, nil
}

// collective finds or begins the collective with a sequence number.
func (g *group) collective(seq int) *collective {
	g.mu.Lock()
	defer g.mu.Unlock()
	col := g.ops[seq]
	if col == nil {
		col = &collective{g: g, seq: seq, parts: make([]*part, len(g.ranks)), refused: make(chan struct{})}
		g.ops[seq] = col
	}
	return col
}

// sub returns the group of some of g's ranks that collective number seq creates.
func (g *group) sub(seq int, ranks []int) *group {
	worldRanks := make([]int, len(ranks))
	for i, r := range ranks {
		worldRanks[i] = g.ranks[r]
	}
	return newGroup(g.w, worldRanks, world.Hash("", append([]int{int(g.id), seq}, ranks...)...))
}

// forget drops a collective that all ranks have begun and that misses no block.
func (g *group) forget(seq int, col *collective) {
	if col.complete() {
		g.mu.Lock()
		delete(g.ops, seq)
		g.mu.Unlock()
	}
}

// join enters a rank's part. It returns the ranks to exchange blocks with: all that joined before,
// and the rank itself. Their buffers stay in use until exchange. early are the blocks that have
// already arrived for the rank from other processes. owed is the number of all such blocks.
func (col *collective) join(rank int, p *part, owed int) (peers []int, early []Packet, err error) {
	col.mu.Lock()
	defer col.mu.Unlock()
	if p.op == "Sub" && col.child == nil {
		col.child = col.g.sub(col.seq, p.ranks)
	}
	for q, other := range col.parts {
		switch {
		case other == nil:
			continue
		case other.op != p.op:
			col.refuse(fmt.Errorf("%s: %s calls it, but %s calls %s", p.op, col.g.name(rank), col.g.name(q), other.op))
		case !slices.Equal(other.ranks, p.ranks):
			col.refuse(fmt.Errorf("Sub: %s lists %v, but %s lists %v", col.g.name(rank), p.ranks, col.g.name(q), other.ranks))
		case other.gaveUp != nil:
			col.refuse(&abandoned{col.g.ranks[q], other.gaveUp})
		}
		peers = append(peers, q)
	}
	col.parts[rank] = p
	col.begun++
	if col.err != nil {
		return nil, nil, col.err
	}
	col.due += owed
	peers = append(peers, rank)
	for _, q := range peers {
		col.parts[q].copying.Add(1)
		p.copying.Add(1)
	}
	return peers, col.earlyFor(rank), nil
}

// exchange copies the blocks between two ranks that have both joined.
func (col *collective) exchange(me, peer int) {
	a, b := col.parts[me], col.parts[peer]
	err := col.move(me, peer)
	if err == nil && me != peer {
		err = col.move(peer, me)
	}
	if err != nil {
		col.mu.Lock()
		col.refuse(err)
		col.mu.Unlock()
	}
	a.copying.Done()
	b.copying.Done()
	a.finish()
	if me != peer {
		b.finish()
	}
}

// finish decrements the number of ranks to exchange blocks with.
func (p *part) finish() {
	if p.pending.Add(-1) == 0 {
		close(p.done)
	}
}

// move copies one block.
func (col *collective) move(from, to int) error {
	src, dst := col.parts[from].out(to), col.parts[to].in(from)
	if len(src) != len(dst) {
		return fmt.Errorf("%s: %s sends %d bytes to %s, which expects %d",
			col.parts[to].op, col.g.name(from), len(src), col.g.name(to), len(dst))
	}
	copy(dst, src)
	return nil
}

// refuse ends the collective for all its ranks. The caller holds mu.
func (col *collective) refuse(err error) {
	if col.err == nil {
		col.err = err
		close(col.refused)
	}
}

// complete reports whether all ranks of this process have begun and no block is missing.
func (col *collective) complete() bool {
	col.mu.Lock()
	defer col.mu.Unlock()
	return col.begun == len(col.g.here) && col.due == 0
}

// missing returns the ranks of the world that have not begun. In other processes, these are the
// ranks whose block is missing, and those that have not received this rank's block.
func (r *request) missing() []int {
	col := r.col
	col.mu.Lock()
	defer col.mu.Unlock()
	var ranks []int
	for _, q := range col.g.here {
		if col.parts[q] == nil {
			ranks = append(ranks, col.g.ranks[q])
		}
	}
	for q, owes := range r.part.owed {
		if owes {
			ranks = append(ranks, col.g.ranks[q])
		}
	}
	for _, l := range r.part.pendingSends {
		if !slices.Contains(ranks, l.to) {
			ranks = append(ranks, l.to)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// refusal returns the error with which the collective was refused, or nil.
func (col *collective) refusal() error {
	col.mu.Lock()
	defer col.mu.Unlock()
	return col.err
}

func (r *request) Test() (bool, error) {
	ended, err := r.look()
	if ended || err != nil || r.c.g.w.far == nil {
		return ended, err
	}
	if err := r.c.g.w.fetch(r.c.me()); err != nil {
		return false, r.fail(err)
	}
	return r.look()
}

// look tests for completion with the packets received so far.
func (r *request) look() (bool, error) {
	if err := r.col.refusal(); err != nil {
		return false, r.fail(r.c.failure(r.part.op, err))
	}
	select {
	case <-r.part.done:
		r.arrived = true
	default:
	}
	if gone, err := r.c.sent(r.part); err != nil {
		return false, r.fail(err)
	} else if gone && r.arrived {
		return true, nil
	}
	if err := r.c.g.w.lost(r.part.op, r.c.me()); err != nil {
		return false, r.fail(err)
	}
	return false, nil
}

func (r *request) Wait() error {
	w := r.c.wait(r.part.op, r.missing)
	defer w.stop()
	for {
		hopeless := w.peerLeft()
		done, err := r.Test()
		switch {
		case done || err != nil:
			return err
		case hopeless != nil:
			return r.fail(hopeless)
		}
		arrival := r.part.done
		if r.arrived {
			arrival = nil
		}
		if err := w.until(arrival, r.col.refused); err != nil {
			return r.fail(err)
		}
	}
}

// failure returns a rank's error for the error of a collective. For an abandoned collective, it
// wraps the failure of the world if there is one, and otherwise the reason of the rank that gave
// up.
func (c *comm) failure(op string, err error) error {
	gone := (*abandoned)(nil)
	if !errors.As(err, &gone) {
		return err
	}
	if lost := c.g.w.lost(op, c.me()); lost != nil {
		return lost
	}
	return &world.LostError{Op: op, Rank: c.me(), Lost: gone.rank, Cause: gone.cause, Name: c.g.w.share.Name}
}

// fail removes the rank's buffers from the collective, so that the caller may use them again,
// and returns err. Ranks that join later get the reason.
func (r *request) fail(err error) error {
	r.col.mu.Lock()
	r.part.gaveUp = err
	r.col.mu.Unlock()
	r.part.copying.Wait()
	return err
}

var _ world.Comm = (*comm)(nil)

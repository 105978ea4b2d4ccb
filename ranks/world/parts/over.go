package parts

import (
	"cmp"
	"errors"
	"sync/atomic"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Over runs body for each part, or for the server, that this rank carries, each a
// goroutine with its communicator in the world of v.Members() members, and returns
// when all of them have returned and nothing is on its way to this rank. Its error
// is the first failure here that is not the consequence of another, as of
// inproc.Run; the caller then aborts c, unless all ranks have the same error
// (world.AgreedError, world.EndedError). It panics if c has another size than the
// view. Collective over c.
func Over(c world.Comm, v world.View, body func(c world.Comm) error) error {
	if c.Size() != v.Started() {
		panic("parts: the view is of another world")
	}
	if c.Size() == 1 {
		return InProcess(v, body)
	}
	p, err := newPost(c, v)
	if err != nil {
		return err
	}
	s := inproc.Share{Size: v.Members(), Here: append([]int{}, v.Carried(c.Rank())...), Far: p, Name: v.Name}
	for m := range v.Members() {
		s.Hosts = append(s.Hosts, c.Hosts()[v.Rank(m)])
	}
	if len(s.Here) == 0 { // it waits for the others' end alone, however far that is
		p.letters.SetLimits(world.Limits{})
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

// InProcess is Over of ranks that would all be in this process: they need not be
// there for their parts to run.
func InProcess(v world.View, body func(c world.Comm) error) error {
	return inproc.RunShare(inproc.Share{Size: v.Members(), Name: v.Name}, body)
}

// post takes letters to other ranks and fetches those that come.
type post struct {
	letters world.Comm // carries letters, in their order
	freight world.Comm // carries long blocks
	view    world.View
	outbox  *world.Outbox
	next    atomic.Uint32 // tag of the next long block
	coming  []*coming
	left    []bool            // by rank: whether its farewell has come
	ended   *world.EndedError // by a farewell, that of members which were ended
	alone   []world.Request   // of blocks that nobody waits for any more
}

// coming is a letter whose block follows.
type coming struct {
	letter  inproc.Letter // with the room for the block, nil until the receiver is ready
	block   follower
	from    int           // rank
	request world.Request // nil as long as there is no room
}

func newPost(c world.Comm, v world.View) (*post, error) {
	ranks := make([]int, c.Size())
	for r := range ranks {
		ranks[r] = r
	}
	letters, err := c.Sub(ranks)
	if err != nil {
		return nil, err
	}
	freight, err := c.Sub(ranks)
	if err != nil {
		return nil, err
	}
	return &post{letters: letters, freight: freight, view: v, outbox: world.NewOutbox(letters), left: make([]bool, c.Size())}, nil
}

// Process implements inproc.Far.
func (p *post) Process(member int) int { return p.view.Rank(member) }

// Abandon implements inproc.Far.
func (p *post) Abandon(r world.Request) { p.alone = append(p.alone, r) }

// Abort implements inproc.Far.
func (p *post) Abort(code int, cause error) { p.letters.Abort(code, cause) }

// Carry implements inproc.Far. Messages are copied, whatever their length: they
// must not overtake one another.
func (p *post) Carry(to int, l inproc.Letter) (world.Request, error) {
	rank := p.view.Rank(to)
	if len(l.Data) <= inside || l.Seq < 0 {
		return nil, p.send(rank, l, follower{})
	}
	f := follower{len(l.Data), int(p.next.Add(1) % tags)}
	if err := p.send(rank, l, f); err != nil {
		return nil, err
	}
	return p.freight.Isend(l.Data, rank, f.tag)
}

func (p *post) send(rank int, l inproc.Letter, f follower) error {
	b, err := p.outbox.Buffer()
	if err != nil {
		return err
	}
	return p.outbox.Post(appendLetter(b, l, f), rank, 0)
}

// Fetch implements inproc.Far.
func (p *post) Fetch(r inproc.Receiver) error {
	for {
		m, ok, err := p.letters.TryRecv(world.Any, world.Any)
		if err != nil {
			return err
		}
		if !ok {
			return p.unload(r)
		}
		if err := p.open(m, r); err != nil {
			return err
		}
	}
}

// open reads a message. Nothing follows a farewell. That of a rank whose members
// were ended is an error.
func (p *post) open(m world.Message, r inproc.Receiver) error {
	l, f, err := readLetter(m.Data, m.Source)
	switch {
	case err != nil:
		return err
	case l.Group == farewell:
		p.left[m.Source] = true
		if l.From >= 0 {
			p.ended = &world.EndedError{Member: l.From, Name: p.view.Name}
			return p.ended
		}
		return nil
	case f.length > 0:
		p.coming = append(p.coming, &coming{letter: l, block: f, from: m.Source})
		return nil
	}
	return r.Deliver(l)
}

// unload continues with the blocks that follow letters.
func (p *post) unload(r inproc.Receiver) error {
	still := p.coming[:0]
	var failed error
	for _, c := range p.coming {
		ended, err := c.unload(p.freight, r)
		if err == nil && ended {
			err = r.Deliver(c.letter)
		} else {
			still = append(still, c)
		}
		failed = cmp.Or(failed, err)
	}
	clear(p.coming[len(still):])
	p.coming = still
	return failed
}

// unload begins to receive a block once there is room for it, and reports whether
// it has come.
func (c *coming) unload(freight world.Comm, r inproc.Receiver) (ended bool, err error) {
	if c.request == nil {
		if c.letter.Data = r.Room(c.letter, c.block.length); c.letter.Data == nil {
			return false, nil
		}
		if c.request, err = world.Irecv(freight, c.letter.Data, c.from, c.block.tag); err != nil {
			return false, err
		}
	}
	return c.request.Test()
}

// close says farewell, as one whose members were ended or not, and takes in what
// others still send, until they have said farewell too: nobody leaves while
// something is under way to it, or while a block of its own is. It fails with a
// world.EndedError where members of any rank were ended.
func (p *post) close(ended *world.EndedError) error {
	bye := inproc.Letter{Group: farewell, From: nobodyEnded}
	if ended != nil {
		p.ended, bye.From = ended, ended.Member
	}
	me := p.letters.Rank()
	for r := range p.left {
		if r == me {
			continue
		}
		if err := p.send(r, bye, follower{}); err != nil {
			return err
		}
	}
	for r := range p.left {
		for r != me && !p.left[r] {
			m, err := p.letters.Recv(r, world.Any)
			if err != nil {
				return err
			}
			if err := p.open(m, nobody{}); err != nil && !p.left[r] {
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

// settle returns when the blocks that are under way have come to their end: those
// that this rank was sent, whoever wanted them, and its own.
func (p *post) settle() error {
	for _, c := range p.coming {
		if _, err := c.unload(p.freight, nobody{}); err != nil {
			return err
		}
	}
	for _, c := range p.coming {
		p.alone = append(p.alone, c.request)
	}
	for _, r := range p.alone {
		if err := r.Wait(); err != nil {
			return err
		}
	}
	return p.outbox.Settle()
}

// nobody is the receiver of letters for parts that have left.
type nobody struct{}

func (nobody) Room(_ inproc.Letter, n int) []byte { return make([]byte, n) }

func (nobody) Deliver(inproc.Letter) error { return nil }

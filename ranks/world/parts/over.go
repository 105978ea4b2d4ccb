package parts

import (
	"errors"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Over runs body for each part, or for the server, that this rank carries, each a
// goroutine with its communicator in the world of v.Members() members, and returns
// when all of them have returned and nothing is on its way to this rank. Its error
// is the first failure here that is not the consequence of another, as of
// inproc.Run; the caller then aborts c, unless all ranks have the same error
// (world.AgreedError). It panics if c has another size than the view. Collective
// over c.
func Over(c world.Comm, v world.View, body func(c world.Comm) error) error {
	if c.Size() != v.Started() {
		panic("parts: the view is of another world")
	}
	if c.Size() == 1 {
		return inproc.Run(v.Members(), body)
	}
	p, err := newPost(c, v)
	if err != nil {
		return err
	}
	s := inproc.Share{Size: v.Members(), Far: p}
	s.Lo, s.Hi = v.Block(c.Rank())
	for m := range v.Members() {
		s.Hosts = append(s.Hosts, c.Hosts()[v.Rank(m)])
	}
	err = inproc.RunShare(s, body)
	if shared := (*world.AgreedError)(nil); err != nil && !errors.As(err, &shared) {
		return err
	}
	if closing := p.close(); err == nil {
		err = closing
	}
	return err
}

// post takes letters to other ranks and fetches those that come.
type post struct {
	below  world.Comm // for letters alone
	view   world.View
	outbox *world.Outbox
	ended  []bool // by rank: whether its farewell has come
}

func newPost(c world.Comm, v world.View) (*post, error) {
	ranks := make([]int, c.Size())
	for r := range ranks {
		ranks[r] = r
	}
	below, err := c.Sub(ranks)
	if err != nil {
		return nil, err
	}
	return &post{below: below, view: v, outbox: world.NewOutbox(below), ended: make([]bool, c.Size())}, nil
}

// Process implements inproc.Far.
func (p *post) Process(member int) int { return p.view.Rank(member) }

// Abort implements inproc.Far.
func (p *post) Abort(code int, cause error) { p.below.Abort(code, cause) }

// Carry implements inproc.Far.
func (p *post) Carry(to int, l inproc.Letter) error { return p.send(p.view.Rank(to), l) }

func (p *post) send(rank int, l inproc.Letter) error {
	b, err := p.outbox.Buffer()
	if err != nil {
		return err
	}
	return p.outbox.Post(appendLetter(b, l), rank, 0)
}

// Fetch implements inproc.Far.
func (p *post) Fetch(deliver func(inproc.Letter) error) error {
	for {
		m, ok, err := p.below.TryRecv(world.Any, world.Any)
		if err != nil || !ok {
			return err
		}
		if err := p.open(m, deliver); err != nil {
			return err
		}
	}
}

// open reads a message. Nothing follows a farewell.
func (p *post) open(m world.Message, deliver func(inproc.Letter) error) error {
	l, err := readLetter(m.Data, m.Source)
	switch {
	case err != nil:
		return err
	case l.Group == farewell:
		p.ended[m.Source] = true
		return nil
	}
	return deliver(l)
}

// close says farewell and takes in what others still send, until they have said
// farewell too: nobody leaves while a letter to it is under way.
func (p *post) close() error {
	for r := range p.ended {
		if r == p.below.Rank() {
			continue
		}
		if err := p.send(r, inproc.Letter{Group: farewell}); err != nil {
			return err
		}
	}
	nobody := func(inproc.Letter) error { return nil } // its receiver has left
	for r := range p.ended {
		for r != p.below.Rank() && !p.ended[r] {
			m, err := p.below.Recv(r, world.Any)
			if err != nil {
				return err
			}
			if err := p.open(m, nobody); err != nil {
				return err
			}
		}
	}
	return p.outbox.Settle()
}

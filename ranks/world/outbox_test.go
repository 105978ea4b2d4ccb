package world_test

import (
	"errors"
	"testing"

	"siafu/ranks/world"
)

// letters is a communicator whose sends complete on command.
type letters struct {
	world.Comm
	sent []*letter
}

type letter struct {
	gone bool
	err  error
}

func (l *letter) Test() (bool, error) { return l.gone, l.err }
func (l *letter) Wait() error         { return l.err }

func (c *letters) Isend([]byte, int, int) (world.Request, error) {
	c.sent = append(c.sent, &letter{})
	return c.sent[len(c.sent)-1], nil
}

// Memory is reused only after its message is sent. The memory of a failed message is never
// reused, and the next call returns the error.
func TestOutbox(t *testing.T) {
	c := &letters{}
	o := world.NewOutbox(c)
	first := make([]byte, 8)
	if err := o.Post(first, 1, 0); err != nil {
		t.Fatal(err)
	}
	if b, err := o.Buffer(); err != nil || cap(b) != 0 {
		t.Fatalf("memory of %d bytes while its message is under way, %v", cap(b), err)
	}
	c.sent[0].gone = true
	b, err := o.Buffer()
	if err != nil || cap(b) != 8 || &b[:1][0] != &first[0] {
		t.Fatalf("memory of %d bytes, %v, where the message has left", cap(b), err)
	}
	if err := o.Post(b, 1, 0); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	c.sent[1].err = lost
	if b, err := o.Buffer(); !errors.Is(err, lost) || b != nil {
		t.Fatalf("memory of %d bytes, %v, of a message that has failed", cap(b), err)
	}
	if b, err := o.Buffer(); err != nil || cap(b) != 0 {
		t.Fatalf("memory of %d bytes, %v, of a message that had failed", cap(b), err)
	}
}

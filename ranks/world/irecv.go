package world

import (
	"fmt"

	"siafu/internal/wire"
)

// InPlace is a communicator that receives into the caller's memory.
type InPlace interface {
	// Irecv begins to receive the next message from src with tag into buf, which has the
	// message's length. No other call may receive messages of this source and tag meanwhile.
	Irecv(buf []byte, src, tag int) (Request, error)
}

// Irecv begins to receive a message of known length into buf. If c is not an InPlace, the message
// is copied.
func Irecv(c Comm, buf []byte, src, tag int) (Request, error) {
	if in, ok := c.(InPlace); ok {
		return in.Irecv(buf, src, tag)
	}
	CheckRecv(c.Size(), src, tag)
	return &copyRequest{c, buf, src, tag, false}, nil
}

// copyRequest is a receive that copies the message when it has arrived.
type copyRequest struct {
	c        Comm
	buf      []byte
	src, tag int
	ended    bool
}

func (r *copyRequest) Test() (bool, error) {
	if r.ended {
		return true, nil
	}
	m, ok, err := r.c.TryRecv(r.src, r.tag)
	if !ok || err != nil {
		return false, err
	}
	return r.take(m)
}

func (r *copyRequest) Wait() error {
	if r.ended {
		return nil
	}
	m, err := r.c.Recv(r.src, r.tag)
	if err == nil {
		_, err = r.take(m)
	}
	return err
}

func (r *copyRequest) take(m Message) (bool, error) {
	if len(m.Data) != len(r.buf) {
		return false, fmt.Errorf("Irecv: rank %d sent %d bytes, want %d", m.Source, len(m.Data), len(r.buf))
	}
	copy(r.buf, m.Data)
	wire.PutBuffer(m.Data)
	r.ended = true
	return true, nil
}

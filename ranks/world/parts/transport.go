package parts

import (
	"siafu/ranks/world"
	"siafu/ranks/world/alive"
)

// transport carries packets and blocks to and from some of the other ranks.
type transport interface {
	// Isend starts to send a packet. Packets to a rank keep their order.
	Isend(b []byte, to, tag int) (world.Request, error)
	// TryRecv returns the next packet of a rank or of any rank, if one has arrived.
	TryRecv(from, tag int) (world.Message, bool, error)
	// sendBlock starts to send a block. It uses b until the request has ended.
	sendBlock(b []byte, to, tag int) (world.Request, error)
	// receiveBlock starts to receive a block of len(b) bytes.
	receiveBlock(b []byte, from, tag int) (world.Request, error)
}

// comms is the transport between ranks of one world.Comm.
type comms struct {
	world.Comm            // carries packets, in order
	bulk       world.Comm // carries blocks
}

func (c comms) sendBlock(b []byte, to, tag int) (world.Request, error) {
	return c.bulk.Isend(b, to, tag)
}

func (c comms) receiveBlock(b []byte, from, tag int) (world.Request, error) {
	return world.Irecv(c.bulk, b, from, tag)
}

// streams is the transport to and from ranks that have joined later. A lost rank has no stream: then
// requests end at once, because nothing waits for them.
type streams struct {
	mesh  *alive.Mesh
	first int // lowest rank that may have a stream to this rank
}

// Isend implements transport.
func (s streams) Isend(b []byte, to, _ int) (world.Request, error) {
	if at := s.mesh.Stream(to); at != nil {
		return at.Send(b), nil
	}
	return done{}, nil
}

// TryRecv implements transport.
func (s streams) TryRecv(from, _ int) (m world.Message, ok bool, err error) {
	first, end := from, from+1
	if from == world.Any {
		first, end = s.first, s.mesh.Size()
	}
	for r := first; r < end && !ok; r++ {
		if at := s.mesh.Stream(r); at != nil {
			m.Source = r
			m.Data, ok = at.Receive()
		}
	}
	return m, ok, nil
}

func (s streams) sendBlock(b []byte, to, tag int) (world.Request, error) {
	if at := s.mesh.Stream(to); at != nil {
		return at.SendBlock(b, tag), nil
	}
	return done{}, nil
}

func (s streams) receiveBlock(b []byte, from, tag int) (world.Request, error) {
	if at := s.mesh.Stream(from); at != nil {
		return at.ReceiveBlock(b, tag), nil
	}
	return done{}, nil
}

// done is a request that has ended.
type done struct{}

func (done) Test() (bool, error) { return true, nil }
func (done) Wait() error         { return nil }

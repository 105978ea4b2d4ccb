package alive

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"siafu/internal/wire"
	"siafu/ranks/world"
)

// Stream carries packets and blocks between two ranks, one of which has joined the world later. It has
// its own connection: data that the receiver does not accept yet must not delay heartbeats.
//
// Packets arrive in the order in which they were sent. The receiver stores at most a few of them, and
// then stops reading, so that TCP stops the sender. A block has a tag. It is sent when the receiver has
// requested it with a buffer, from memory to memory. So a block delays no packet that its receiver
// needs first.
type Stream struct {
	conn net.Conn

	mu       sync.Mutex
	changed  *sync.Cond // of any of the following
	closed   bool
	outgoing []*transfer
	parked   map[int]*transfer // blocks that the receiver has not requested, by tag
	wanted   map[int]bool      // tags that the receiver has requested before the block was sent
	expected map[int]*transfer // requested blocks
	arrived  [][]byte          // packets
	bytes    int               // of arrived
}

// transfer is data in transit. It implements world.Request.
type transfer struct {
	kind  wire.Kind
	tag   int
	data  []byte
	ended atomic.Bool
}

// mostStored is the number of bytes of packets that a receiver stores before it stops reading.
const mostStored = 16 << 20

// Test implements world.Request.
func (t *transfer) Test() (bool, error) { return t.ended.Load(), nil }

// Wait implements world.Request.
func (t *transfer) Wait() error { panic("alive: a transfer is polled") }

// startStream begins to receive and send data of a peer.
func (m *Mesh) startStream(p *peer, conn net.Conn) {
	s := &Stream{conn: conn, parked: map[int]*transfer{}, wanted: map[int]bool{}, expected: map[int]*transfer{}}
	s.changed = sync.NewCond(&s.mu)
	p.stream.Store(s)
	select {
	case <-p.gone:
		s.close()
	default:
	}
	ended := func(err error) {
		s.close()
		select { // messages that the peer has sent before its end are still arriving
		case <-p.gone:
		case <-m.closed:
		case <-time.After(m.silent):
			m.lose(p, err)
		}
	}
	go func() { ended(s.read()) }()
	go func() {
		if err := s.write(); err != nil {
			ended(err)
		}
	}()
}

// Stream returns the stream to a rank, or nil without one, between two ranks of the start.
func (m *Mesh) Stream(rank int) *Stream {
	if p := m.peer(rank); p != nil {
		return p.stream.Load()
	}
	return nil
}

// close ends the connection. When it returns, no memory of a transfer is in use.
func (s *Stream) close() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.conn.Close()
}

// post adds a transfer to the outgoing ones. The caller holds mu.
func (s *Stream) post(t *transfer) {
	s.outgoing = append(s.outgoing, t)
	s.changed.Broadcast()
}

// Send starts to send a packet. It uses b until the request has ended.
func (s *Stream) Send(b []byte) world.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &transfer{kind: wire.StreamPacket, data: b}
	s.post(t)
	return t
}

// Receive returns the next packet, if one has arrived.
func (s *Stream) Receive() (b []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrived) == 0 {
		return nil, false
	}
	b, s.arrived[0] = s.arrived[0], nil
	if s.arrived = s.arrived[1:]; len(s.arrived) == 0 {
		s.arrived = nil
	}
	if s.bytes -= len(b); s.bytes < mostStored {
		s.changed.Broadcast()
	}
	return b, true
}

// SendBlock starts to send a block. It uses b until the request has ended. A tag can be used again
// after that.
func (s *Stream) SendBlock(b []byte, tag int) world.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &transfer{kind: wire.Block, tag: tag, data: b}
	if s.wanted[tag] {
		delete(s.wanted, tag)
		s.post(t)
	} else {
		s.parked[tag] = t
	}
	return t
}

// ReceiveBlock starts to receive a block of len(b) bytes. It uses b until the request has ended.
func (s *Stream) ReceiveBlock(b []byte, tag int) world.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &transfer{tag: tag, data: b}
	s.expected[tag] = t
	s.post(&transfer{kind: wire.BlockRequest, tag: tag})
	return t
}

// write sends outgoing transfers until the stream is closed.
func (s *Stream) write() error {
	var header []byte
	var list []*transfer
	var both [2][]byte
	var frame net.Buffers
	for {
		s.mu.Lock()
		for len(s.outgoing) == 0 && !s.closed {
			s.changed.Wait()
		}
		if s.closed {
			s.mu.Unlock()
			return nil
		}
		clear(list)
		list, s.outgoing = s.outgoing, list[:0]
		s.mu.Unlock()
		for _, t := range list {
			h := wire.Message{Kind: t.kind, Numbers: wire.Numbers{t.tag}}
			header = h.AppendHeader(header[:0], len(t.data))
			both = [2][]byte{header, t.data}
			frame = both[:]
			if _, err := frame.WriteTo(s.conn); err != nil {
				return err
			}
			t.ended.Store(true)
		}
	}
}

// read receives packets and blocks until the connection ends.
func (s *Stream) read() error {
	in := bufio.NewReader(s.conn)
	for header := make([]byte, wire.Block.HeaderBytes()); ; {
		if _, err := io.ReadFull(in, header); err != nil {
			return err
		}
		h, n, err := wire.Header("alive", guestRank, header, wire.StreamPacket, wire.Block)
		if err != nil {
			return err
		}
		switch tag := h.Numbers[0]; {
		case h.Kind == wire.StreamPacket:
			err = s.readPacket(in, n)
		case h.Kind == wire.Block:
			err = s.readBlock(in, n, tag)
		case n == 0:
			s.request(tag)
		default:
			err = errors.New("malformed frame")
		}
		if err != nil {
			return err
		}
	}
}

// readPacket waits until there is room for a packet, and stores it.
func (s *Stream) readPacket(in io.Reader, n int) error {
	s.mu.Lock()
	for s.bytes >= mostStored && !s.closed {
		s.changed.Wait()
	}
	s.mu.Unlock()
	b := make([]byte, n) // the receiver owns it
	if _, err := io.ReadFull(in, b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived, s.bytes = append(s.arrived, b), s.bytes+n
	return nil
}

// request sends a block that the other rank is ready to receive, or will when it is posted.
func (s *Stream) request(tag int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.parked[tag]; t != nil {
		delete(s.parked, tag)
		s.post(t)
	} else {
		s.wanted[tag] = true
	}
}

func (s *Stream) readBlock(in io.Reader, n, tag int) error {
	s.mu.Lock()
	t := s.expected[tag]
	delete(s.expected, tag)
	s.mu.Unlock()
	if t == nil || len(t.data) != n {
		return errors.New("malformed block")
	}
	if _, err := io.ReadFull(in, t.data); err != nil {
		return err
	}
	t.ended.Store(true)
	return nil
}

package alive

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"siafu/internal/wire"
)

// Message is a message of another rank, of a kind from wire.Report to wire.Ask.
type Message struct {
	From int
	Kind wire.Kind
	Data []byte
}

// Event is a received message, or the loss of a rank or guest, or the arrival or refusal of a guest.
type Event struct {
	Message
	Lost    bool // of rank From, or of the guest
	Certain bool // the process of that rank has ended

	Guest   uint64 // the guest that has sent the message, also after its admission; 0: none. From is -1.
	Host    string // of the guest, if it has arrived or is refused
	Arrived bool   // the guest is connected; Data is for Admit
	Refused error
}

// Mesh is one rank's connections to all others.
type Mesh struct {
	silent   time.Duration // after which a rank is lost
	network  netip.Prefix  // in which ranks listen; zero: see Connect
	token    token
	events   chan Event
	closed   chan struct{}
	accepted chan struct{} // receives a value for each connection of a higher rank
	listen   net.Listener
	founders int // ranks of the start
	self     location
	vet      func(request []byte) error
	id       uint64 // of this guest, also after its admission; 0: a rank of the start
	request  []byte // of this guest

	writers sync.WaitGroup

	mu     sync.Mutex // guards the following fields, and closed
	rank   int        // -1: a guest
	where  []location // of all ranks
	peers  []*peer    // by rank; nil: this rank, or no connection
	guests map[uint64]*peer

	waiting []net.Conn // accepted connections without a hello, the oldest first
}

// peer is the connection to a rank or a guest.
type peer struct {
	rank   int    // -1: a guest; the mesh's mu guards it
	guest  uint64 // 0: none
	at     *location
	conn   net.Conn
	stream atomic.Pointer[Stream] // nil between two ranks of the start
	queue  chan []byte
	gone   chan struct{} // closed when the rank is lost or dropped
	once   sync.Once
}

func newPeer(rank int, conn net.Conn, at *location) *peer {
	return &peer{rank: rank, at: at, conn: conn, queue: make(chan []byte, queued), gone: make(chan struct{})}
}

// end closes the connections of a peer.
func (p *peer) end() {
	close(p.gone)
	p.conn.Close()
	if s := p.stream.Load(); s != nil {
		s.close()
	}
}

// start begins to receive and send messages.
func (m *Mesh) start(p *peer) {
	m.writers.Add(1)
	go m.read(p)
	go m.write(p)
}

// peer returns the connection to a rank, nil without one.
func (m *Mesh) peer(rank int) *peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers[rank]
}

const (
	chunk    = 256 << 10 // bytes of a message that must be sent before the peer counts as silent
	queued   = 1024      // messages to a peer
	beats    = 8         // heartbeats in the time after which a silent rank is lost
	starting = 4         // times this time: limit of connecting
)

// silenceReader reads from a connection, and fails after a silence. A long message may take any time.
type silenceReader struct {
	conn  net.Conn
	limit time.Duration
}

func (r silenceReader) Read(b []byte) (int, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(r.limit)); err != nil {
		return 0, err
	}
	return r.conn.Read(b)
}

// read receives the messages of a rank until it is lost.
func (m *Mesh) read(p *peer) {
	in := bufio.NewReader(silenceReader{p.conn, m.silent})
	var err error
	for header := make([]byte, wire.Heartbeat.HeaderBytes()); ; {
		if _, err = io.ReadFull(in, header); err != nil {
			break
		}
		var h wire.Message
		var n int
		if h, n, err = wire.Header("alive", p.event(Event{}).From, header, wire.Heartbeat, wire.Ask); err != nil {
			break
		}
		if h.Kind == wire.Heartbeat {
			continue
		}
		data := make([]byte, n)
		if _, err = io.ReadFull(in, data); err != nil {
			break
		}
		m.tell(p.event(Event{Message: Message{Kind: h.Kind, Data: data}}))
	}
	m.lose(p, err)
}

// event completes an event of a peer.
func (p *peer) event(e Event) Event {
	e.Guest, e.From = p.guest, -1
	if p.guest == 0 {
		e.From = p.rank
	}
	return e
}

// lose reports the loss of a rank, unless this rank has dropped it.
func (m *Mesh) lose(p *peer, err error) {
	p.once.Do(func() {
		p.end()
		m.mu.Lock()
		delete(m.guests, p.guest)
		m.mu.Unlock()
		timeout := net.Error(nil)
		silent := errors.As(err, &timeout) && timeout.Timeout()
		m.tell(p.event(Event{Lost: true, Certain: !silent && m.ended(p)}))
	})
}

// ended reports whether the process of a rank has ended: its port is closed, on a host that
// responds. Only the address of the lost connection is certain to be that of the rank.
func (m *Mesh) ended(p *peer) bool {
	select {
	case <-m.closed:
		return false
	default:
	}
	host, _, err := net.SplitHostPort(p.conn.RemoteAddr().String())
	if err != nil {
		return false
	}
	m.mu.Lock()
	own := p.at.Own
	m.mu.Unlock()
	_, port, err := net.SplitHostPort(own)
	if err != nil {
		return false
	}
	for range 20 { // the kernel may close the connection before the port
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), m.silent)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return true
		}
		if err != nil {
			return false
		}
		conn.Close()
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

func (m *Mesh) tell(e Event) {
	select {
	case m.events <- e:
	case <-m.closed:
	}
}

// write sends queued messages to a rank, and heartbeats between them.
func (m *Mesh) write(p *peer) {
	defer m.writers.Done()
	beat := time.NewTicker(m.silent / beats)
	defer beat.Stop()
	idle := (&wire.Message{Kind: wire.Heartbeat}).Append(nil)
	for {
		var next []byte
		select {
		case <-p.gone:
			return
		case next = <-p.queue:
		case <-beat.C:
			next = idle
		}
		if next == nil { // the last one
			return
		}
		for part := range slices.Chunk(next, chunk) {
			p.conn.SetWriteDeadline(time.Now().Add(m.silent))
			if _, err := p.conn.Write(part); err != nil {
				m.lose(p, err)
				return
			}
		}
	}
}

// Next returns the next received message or loss, in order for each rank. ok is false after Close
// or Break.
func (m *Mesh) Next() (e Event, ok bool) {
	select {
	case e = <-m.events:
		return e, true
	case <-m.closed:
		return e, false
	}
}

// Send sends a message. Messages to a lost rank are dropped. It copies data.
func (m *Mesh) Send(to int, kind wire.Kind, data []byte) { m.send(m.peer(to), kind, data) }

func (m *Mesh) send(p *peer, kind wire.Kind, data []byte) {
	if p == nil {
		return
	}
	select {
	case p.queue <- (&wire.Message{Kind: kind, Body: data}).Append(nil):
	case <-p.gone:
	case <-m.closed:
	}
}

// Drop ends the connection to a rank that others have lost. If its process is on this machine, Drop
// kills it, because a stopped process may continue later.
func (m *Mesh) Drop(rank int) {
	p := m.peer(rank)
	if p == nil {
		return
	}
	p.once.Do(p.end)
	if l := p.at; l.PID != os.Getpid() && l.Machine == m.self.Machine && l.Started != 0 && startTime(l.PID) == l.Started {
		syscall.Kill(l.PID, syscall.SIGKILL)
	}
}

// Close sends all queued messages, and ends the connections.
func (m *Mesh) Close() {
	for _, p := range m.all() {
		select {
		case p.queue <- nil:
		case <-p.gone:
		}
	}
	m.writers.Wait()
	m.Break()
}

// Break ends the connections at once, as the end of this process would.
func (m *Mesh) Break() {
	m.mu.Lock()
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
	m.mu.Unlock()
	m.listen.Close()
	for _, p := range m.all() {
		p.once.Do(p.end)
	}
}

// all returns all peers.
func (m *Mesh) all() []*peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Collect(maps.Values(m.guests))
	return append(list, slices.DeleteFunc(slices.Clone(m.peers), func(p *peer) bool { return p == nil })...)
}

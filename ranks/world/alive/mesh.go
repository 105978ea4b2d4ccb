package alive

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// Message is a message of another rank. Kinds are chosen by the caller, from 0 on.
type Message struct {
	From int
	Kind byte
	Data []byte
}

// Event is a received message, or the loss of a rank.
type Event struct {
	Message
	Lost    bool // of rank From
	Certain bool // the process of that rank has ended
}

// Mesh is one rank's connections to all others.
type Mesh struct {
	rank   int
	silent time.Duration // after which a rank is lost
	token  token
	events chan Event
	closed chan struct{}
	listen net.Listener
	where  []location // of all ranks

	peers []*peer // by rank; nil: this rank

	writers sync.WaitGroup
	mu      sync.Mutex // guards peers while connections are made, and closed
}

// token proves that a connection belongs to this world.
type token [16]byte

// location tells how to reach a rank.
type location struct {
	Machine   string   // the same for processes that reach each other by the loopback interface
	Addresses []string // host:port
	PID       int
	Started   uint64 // start time of the process, 0 if unknown
}

// peer is the connection to a rank.
type peer struct {
	rank  int
	conn  net.Conn
	queue chan []byte
	gone  chan struct{} // closed when the rank is lost or dropped
	once  sync.Once
}

const (
	headerBytes = 5 // length of the data, kind
	heartbeat   = 0xFF
	mostBytes   = 1 << 31 // of a message
	queued      = 1024    // messages to a peer
	beats       = 8       // heartbeats in the time after which a silent rank is lost
)

// Connect connects this rank to all others of c. A rank is lost if it has been silent for the given
// time. Collective over c, blocking.
func Connect(c world.Comm, silent time.Duration) (*Mesh, error) {
	m := &Mesh{rank: c.Rank(), silent: silent, events: make(chan Event, queued), closed: make(chan struct{}), peers: make([]*peer, c.Size())}
	var err error
	if m.listen, err = net.Listen("tcp", ":0"); err != nil {
		err = fault.System("alive", "tcp", err)
	}
	if err := world.Agree(c, err); err != nil {
		return nil, err
	}
	if err := m.exchange(c); err != nil {
		m.listen.Close()
		return nil, err
	}
	if err := world.Agree(c, m.connect()); err != nil {
		m.Break()
		return nil, err
	}
	for _, p := range m.peers {
		if p != nil {
			m.writers.Add(1)
			go m.read(p)
			go m.write(p)
		}
	}
	return m, nil
}

// exchange tells all ranks where the others are. Collective over c.
func (m *Mesh) exchange(c world.Comm) error {
	secret := make([]byte, len(m.token))
	if c.Rank() == 0 {
		rand.Read(secret)
	}
	if err := c.Bcast(secret, 0); err != nil {
		return err
	}
	m.token = token(secret)
	list, err := world.GatherValues(c, 0, m.location())
	if err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if text, err = world.BcastBlob(c, text, 0); err != nil {
		return err
	}
	return json.Unmarshal(text, &m.where)
}

// location returns where this rank is.
func (m *Mesh) location() location {
	l := location{Machine: machine(), PID: os.Getpid(), Started: startTime(os.Getpid())}
	_, port, _ := net.SplitHostPort(m.listen.Addr().String())
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			l.Addresses = append(l.Addresses, net.JoinHostPort(ip.IP.String(), port))
		}
	}
	l.Addresses = append(l.Addresses, net.JoinHostPort("127.0.0.1", port))
	return l
}

// machine identifies this kernel and network namespace.
func machine() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, _ := os.Readlink("/proc/self/ns/net")
	host, _ := os.Hostname()
	return strings.TrimSpace(string(boot)) + " " + network + " " + host
}

// connect dials the ranks below this one, and accepts those above.
func (m *Mesh) connect() error {
	accepted := make(chan error, 1)
	go func() { accepted <- m.accept(len(m.peers) - 1 - m.rank) }()
	for r := range m.rank {
		conn, err := m.dial(r, m.silent)
		if err != nil {
			m.listen.Close()
			<-accepted
			return fault.New(fault.Runtime, "alive", m.where[r].Addresses[0], "cannot connect to rank %d: %v", r, err).
				Then("allow TCP connections between the hosts, or leave --survive out")
		}
		m.add(r, conn)
	}
	if err := <-accepted; err != nil {
		return fault.New(fault.Runtime, "alive", m.listen.Addr().String(), "no connection of another rank: %v", err).
			Then("allow TCP connections between the hosts, or leave --survive out")
	}
	return nil
}

// dial connects to a rank and introduces this one.
func (m *Mesh) dial(rank int, limit time.Duration) (conn net.Conn, err error) {
	addresses := m.where[rank].Addresses
	if m.where[rank].Machine == m.where[m.rank].Machine {
		addresses = addresses[len(addresses)-1:]
	} else if len(addresses) > 1 {
		addresses = addresses[:len(addresses)-1]
	}
	for _, a := range addresses {
		if conn, err = net.DialTimeout("tcp", a, limit); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	hello := binary.LittleEndian.AppendUint32(m.token[:], uint32(m.rank))
	if _, err = conn.Write(hello); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// accept waits for connections of n ranks. It ignores connections of others.
func (m *Mesh) accept(n int) error {
	deadline := time.Now().Add(4 * m.silent)
	m.listen.(*net.TCPListener).SetDeadline(deadline)
	for n > 0 {
		conn, err := m.listen.Accept()
		if err != nil {
			return err
		}
		var hello [len(m.token) + 4]byte
		conn.SetReadDeadline(deadline)
		_, err = io.ReadFull(conn, hello[:])
		rank := int(binary.LittleEndian.Uint32(hello[len(m.token):]))
		if err != nil || token(hello[:len(m.token)]) != m.token || rank <= m.rank || rank >= len(m.peers) {
			conn.Close()
			continue
		}
		m.add(rank, conn)
		n--
	}
	return nil
}

func (m *Mesh) add(rank int, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peers[rank] = &peer{rank: rank, conn: conn, queue: make(chan []byte, queued), gone: make(chan struct{})}
}

// read receives the messages of a rank until it is lost.
func (m *Mesh) read(p *peer) {
	in := bufio.NewReader(p.conn)
	var err error
	for {
		var header [headerBytes]byte
		p.conn.SetReadDeadline(time.Now().Add(m.silent))
		if _, err = io.ReadFull(in, header[:]); err != nil {
			break
		}
		kind, n := header[4], binary.LittleEndian.Uint32(header[:])
		if kind == heartbeat {
			continue
		}
		if n > mostBytes {
			err = errors.New("malformed message")
			break
		}
		data := make([]byte, n)
		p.conn.SetReadDeadline(time.Now().Add(m.silent + transferTime(int(n))))
		if _, err = io.ReadFull(in, data); err != nil {
			break
		}
		m.tell(Event{Message: Message{From: p.rank, Kind: kind, Data: data}})
	}
	m.lose(p, err)
}

// lose reports the loss of a rank, unless this rank has dropped it.
func (m *Mesh) lose(p *peer, err error) {
	p.once.Do(func() {
		close(p.gone)
		p.conn.Close()
		timeout := net.Error(nil)
		silent := errors.As(err, &timeout) && timeout.Timeout()
		m.tell(Event{Message: Message{From: p.rank}, Lost: true, Certain: !silent && m.ended(p.rank)})
	})
}

// ended reports whether the process of a rank has ended: its port is closed, on a host that
// responds.
func (m *Mesh) ended(rank int) bool {
	select {
	case <-m.closed:
		return false
	default:
	}
	for range 20 { // the kernel may close the connection before the port
		conn, err := m.dial(rank, m.silent)
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
	idle := frame(heartbeat, nil)
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
		p.conn.SetWriteDeadline(time.Now().Add(m.silent + transferTime(len(next))))
		if _, err := p.conn.Write(next); err != nil {
			m.lose(p, err)
			return
		}
	}
}

// transferTime is the additional time for long messages: that of 1 MB/s.
func transferTime(bytes int) time.Duration { return time.Duration(bytes) * time.Microsecond }

func frame(kind byte, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, headerBytes+len(data)), uint32(len(data)))
	return append(append(b, kind), data...)
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
func (m *Mesh) Send(to int, kind byte, data []byte) {
	p := m.peers[to]
	if p == nil {
		return
	}
	select {
	case p.queue <- frame(kind, data):
	case <-p.gone:
	case <-m.closed:
	}
}

// Drop ends the connection to a rank that others have lost. If its process is on this machine, Drop
// kills it, because a stopped process may continue later.
func (m *Mesh) Drop(rank int) {
	p, l := m.peers[rank], m.where[rank]
	if p == nil {
		return
	}
	p.once.Do(func() {
		close(p.gone)
		p.conn.Close()
	})
	if l.PID != os.Getpid() && l.Machine == m.where[m.rank].Machine && l.Started != 0 && startTime(l.PID) == l.Started {
		syscall.Kill(l.PID, syscall.SIGKILL)
	}
}

// Close sends all queued messages, and ends the connections.
func (m *Mesh) Close() {
	for _, p := range m.peers {
		if p == nil {
			continue
		}
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
	defer m.mu.Unlock()
	select {
	case <-m.closed:
		return
	default:
	}
	close(m.closed)
	m.listen.Close()
	for _, p := range m.peers {
		if p != nil {
			p.once.Do(func() {
				close(p.gone)
				p.conn.Close()
			})
		}
	}
}

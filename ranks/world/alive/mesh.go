package alive

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
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
	headerBytes = 9 // length of the data, kind
	heartbeat   = 0xFF
	mostBytes   = 1 << 40   // of a message
	chunk       = 256 << 10 // bytes of a message that must be sent before the peer counts as silent
	queued      = 1024      // messages to a peer
	beats       = 8         // heartbeats in the time after which a silent rank is lost
	starting    = 4         // times this time: limit of connecting
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

// machine identifies this kernel and its namespaces of networks and processes: in another namespace, a
// process id is that of another process.
func machine() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, _ := os.Readlink("/proc/self/ns/net")
	processes, _ := os.Readlink("/proc/self/ns/pid")
	host, _ := os.Hostname()
	return strings.Join([]string{strings.TrimSpace(string(boot)), network, processes, host}, " ")
}

// connect dials the ranks below this one, and accepts those above.
func (m *Mesh) connect() error {
	accepted := make(chan error, 1)
	go func() { accepted <- m.accept(len(m.peers) - 1 - m.rank) }()
	for r := range m.rank {
		conn, err := m.dial(r)
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

// hello begins a connection. It names both ranks: an address such as that of a bridge for containers may
// lead to another rank on this host.
type hello struct {
	Token    token
	From, To uint32
}

// helloBytes is the encoded size of hello. The other rank replies with one byte.
const helloBytes = len(token{}) + 8

func (h hello) encode() []byte {
	b := binary.LittleEndian.AppendUint32(h.Token[:], h.From)
	return binary.LittleEndian.AppendUint32(b, h.To)
}

// dial connects to a rank by the first of its addresses that leads there.
func (m *Mesh) dial(rank int) (net.Conn, error) {
	addresses := m.where[rank].Addresses
	if m.where[rank].Machine == m.where[m.rank].Machine {
		addresses = addresses[len(addresses)-1:]
	} else if len(addresses) > 1 {
		addresses = addresses[:len(addresses)-1]
	}
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(addresses))
	for _, a := range addresses {
		go func() {
			conn, err := m.introduce(a, rank)
			results <- result{conn, err}
		}()
	}
	var failed error
	for n := range addresses {
		r := <-results
		if r.err == nil {
			go func() { // the other rank accepts only one connection
				for range len(addresses) - n - 1 {
					if other := <-results; other.conn != nil {
						other.conn.Close()
					}
				}
			}()
			return r.conn, nil
		}
		failed = cmp.Or(failed, r.err)
	}
	return nil, failed
}

// introduce connects to an address, and waits for the reply of a rank there.
func (m *Mesh) introduce(address string, rank int) (net.Conn, error) {
	deadline := time.Now().Add(starting * m.silent)
	conn, err := net.DialTimeout("tcp", address, m.silent)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(deadline)
	_, err = conn.Write(hello{m.token, uint32(m.rank), uint32(rank)}.encode())
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

// accept waits for connections of n ranks. It ignores connections of others.
func (m *Mesh) accept(n int) error {
	deadline := time.Now().Add(starting * m.silent)
	listener := m.listen.(*net.TCPListener)
	listener.SetDeadline(deadline)
	joined, failed := make(chan struct{}, n), make(chan error, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				failed <- err
				return
			}
			go func() {
				if !m.admit(conn, deadline) {
					conn.Close()
					return
				}
				joined <- struct{}{}
			}()
		}
	}()
	for range n {
		select {
		case <-joined:
		case err := <-failed:
			return err
		}
	}
	listener.SetDeadline(time.Now()) // later connections only test whether this process exists
	return nil
}

// admit reports whether a connection is the first one of a higher rank to this one.
func (m *Mesh) admit(conn net.Conn, deadline time.Time) bool {
	conn.SetDeadline(deadline)
	b := make([]byte, helloBytes)
	if _, err := io.ReadFull(conn, b); err != nil {
		return false
	}
	rank := int(binary.LittleEndian.Uint32(b[len(m.token):]))
	if rank <= m.rank || rank >= len(m.peers) || !bytes.Equal(b, hello{m.token, uint32(rank), uint32(m.rank)}.encode()) || !m.add(rank, conn) {
		return false
	}
	_, err := conn.Write([]byte{1})
	return err == nil && conn.SetDeadline(time.Time{}) == nil
}

// add records the connection to a rank. It returns false if there is one already.
func (m *Mesh) add(rank int, conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers[rank] != nil {
		return false
	}
	m.peers[rank] = &peer{rank: rank, conn: conn, queue: make(chan []byte, queued), gone: make(chan struct{})}
	return true
}

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
	for {
		var header [headerBytes]byte
		if _, err = io.ReadFull(in, header[:]); err != nil {
			break
		}
		kind, n := header[headerBytes-1], binary.LittleEndian.Uint64(header[:])
		if kind == heartbeat {
			continue
		}
		if n > mostBytes {
			err = errors.New("malformed message")
			break
		}
		data := make([]byte, n)
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
		m.tell(Event{Message: Message{From: p.rank}, Lost: true, Certain: !silent && m.ended(p)})
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
	_, port, err := net.SplitHostPort(m.where[p.rank].Addresses[0])
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
		for part := range slices.Chunk(next, chunk) {
			p.conn.SetWriteDeadline(time.Now().Add(m.silent))
			if _, err := p.conn.Write(part); err != nil {
				m.lose(p, err)
				return
			}
		}
	}
}

func frame(kind byte, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, headerBytes+len(data)), uint64(len(data)))
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

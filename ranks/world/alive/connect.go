package alive

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// token proves that a connection belongs to this world.
type token [16]byte

// location tells how to reach a rank.
type location struct {
	Host      string
	Machine   string   // the same for processes that reach each other by the loopback interface
	Addresses []string // host:port
	PID       int
	Started   uint64 // start time of the process, 0 if unknown
}

const remedy = "allow TCP connections between the hosts, or leave --survive out"

// Connect connects this rank to all others of c. A rank is lost if it has been silent for the given
// time. vet returns an error for a request of a guest that must be refused; nil: all are refused.
// Collective over c, blocking.
func Connect(c world.Comm, silent time.Duration, vet func(request []byte) error) (*Mesh, error) {
	m := newMesh(c.Rank(), c.Size(), silent)
	m.vet = vet
	if err := world.Agree(c, m.open(":0")); err != nil {
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
			m.start(p)
		}
	}
	return m, nil
}

func newMesh(rank, size int, silent time.Duration) *Mesh {
	return &Mesh{
		rank: rank, silent: silent, events: make(chan Event, queued), closed: make(chan struct{}),
		founders: size, peers: make([]*peer, size), guests: map[uint64]*peer{}, accepted: make(chan struct{}, size),
	}
}

// open begins to listen at an address.
func (m *Mesh) open(address string) (err error) {
	if m.listen, err = net.Listen("tcp", address); err != nil {
		return fault.System("alive", "tcp", err)
	}
	return nil
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
	m.token, m.self = token(secret), m.location(c.Hosts()[c.Rank()])
	list, err := world.GatherValues(c, 0, m.self)
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

// location returns where this rank is, on a host of the given name.
func (m *Mesh) location(host string) location {
	l := location{Host: host, Machine: machine(), PID: os.Getpid(), Started: startTime(os.Getpid())}
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

// connect dials the ranks below this one, and waits for those above. It begins to accept connections.
func (m *Mesh) connect() error {
	go m.accept()
	late := time.After(starting * m.silent)
	for r := range m.rank {
		conn, err := m.dial(&m.where[r], hello{Token: m.token, From: uint32(m.rank), To: uint32(r)}, nil)
		if err != nil {
			m.listen.Close()
			return fault.New(fault.Runtime, "alive", m.where[r].Addresses[0], "cannot connect to rank %d: %v", r, err).Then(remedy)
		}
		m.add(r, conn)
	}
	for range m.founders - 1 - m.rank {
		select {
		case <-m.accepted:
		case <-late:
			return fault.New(fault.Runtime, "alive", m.listen.Addr().String(), "no connection of another rank: %v", os.ErrDeadlineExceeded).Then(remedy)
		}
	}
	return nil
}

// dial connects to a rank by the first of its addresses that leads there.
func (m *Mesh) dial(to *location, h hello, more []byte) (net.Conn, error) {
	addresses := to.Addresses
	if to.Machine == m.self.Machine {
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
			conn, err := m.introduce(a, h, more)
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
		if refused := (*Refusal)(nil); errors.As(r.err, &refused) {
			return nil, r.err
		}
		failed = cmp.Or(failed, r.err)
	}
	return nil, failed
}

// introduce connects to an address, and waits for the reply of a rank there.
func (m *Mesh) introduce(address string, h hello, more []byte) (net.Conn, error) {
	deadline := time.Now().Add(starting * m.silent)
	conn, err := net.DialTimeout("tcp", address, m.silent)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(deadline)
	_, err = conn.Write(append(h.encode(len(more)), more...))
	if err == nil {
		err = readReply(conn)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

// accept accepts connections until the mesh is closed. It ignores those of other programs.
func (m *Mesh) accept() {
	for {
		conn, err := m.listen.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files
			time.Sleep(m.silent / beats)
			continue
		}
		go func() {
			conn.SetDeadline(time.Now().Add(starting * m.silent))
			if !m.admit(conn) {
				conn.Close()
			}
		}()
	}
}

// admit reports whether a connection is the first one of a higher rank or of a guest to this rank.
func (m *Mesh) admit(conn net.Conn) bool {
	h, more, err := readHello(conn)
	m.mu.Lock()
	rank := m.rank
	m.mu.Unlock()
	switch {
	case err != nil || h.Token != m.token || int(h.To) != rank:
		return false
	case h.From == guestRank:
		return m.admitGuest(conn, h, more)
	case int(h.From) <= rank || int(h.From) >= m.founders || !m.add(int(h.From), conn):
		return false
	}
	if accept(conn) != nil {
		return false
	}
	m.accepted <- struct{}{}
	return true
}

// add records the connection to a rank. It returns false if there is one already.
func (m *Mesh) add(rank int, conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers[rank] != nil {
		return false
	}
	m.peers[rank] = newPeer(rank, conn, &m.where[rank])
	return true
}

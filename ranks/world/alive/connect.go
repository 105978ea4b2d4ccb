package alive

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
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
	Own       string   // host:port for processes of the same machine; empty: the rank is lost
	Addresses []string // host:port for other machines; none: the rank listens only on its own
	PID       int
	Started   uint64 // start time of the process, 0 if unknown
}

// from returns the addresses for a process on a machine.
func (l *location) from(machine string) []string {
	if l.Machine == machine {
		return []string{l.Own}
	}
	return l.Addresses
}

const remedy = "allow TCP connections between the hosts, or leave --survive out"

// Connect connects this rank to all others of c. A rank is lost if it has been silent for the given
// time. Ranks listen on their address in network. If network is the zero value, they listen only on
// the loopback interface if all are on one machine, else on all addresses. vet returns an error for a
// request of a guest that must be refused; nil: all are refused. Collective over c, blocking.
func Connect(c world.Comm, silent time.Duration, network netip.Prefix, vet func(request []byte) error) (*Mesh, error) {
	m := newMesh(c.Rank(), c.Size(), silent)
	m.network, m.vet = network, vet
	machines, err := allgather(c, machine())
	if err != nil {
		return nil, err
	}
	if err := world.Agree(c, m.open(len(slices.Compact(machines)) == 1)); err != nil {
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

// open begins to listen. local means that all ranks are on this machine.
func (m *Mesh) open(local bool) error {
	host := ""
	if m.network.IsValid() {
		ip, ok := addressIn(m.network)
		if !ok {
			return fault.New(fault.Config, "alive", "", "this host has no address in the network %v", m.network).
				Then("set --survive listen=CIDR to a network of all hosts")
		}
		host = ip.String()
	} else if local {
		host = "127.0.0.1"
	}
	var err error
	if m.listen, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return fault.System("alive", "tcp", err)
	}
	return nil
}

// addressIn returns an address of this host in a network.
func addressIn(network netip.Prefix) (netip.Addr, bool) {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && network.Contains(p.Addr()) {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
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
	var err error
	m.where, err = allgather(c, m.self)
	return err
}

// allgather returns the values of all ranks. Collective over c.
func allgather[T any](c world.Comm, v T) (list []T, err error) {
	if list, err = world.GatherValues(c, 0, v); err != nil {
		return nil, err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	if text, err = world.BcastBlob(c, text, 0); err != nil {
		return nil, err
	}
	list = nil
	return list, json.Unmarshal(text, &list)
}

// location returns where this rank is, on a host of the given name.
func (m *Mesh) location(host string) location {
	l := location{Host: host, Machine: machine(), Own: m.listen.Addr().String(), PID: os.Getpid(), Started: startTime(os.Getpid())}
	at, _ := netip.ParseAddrPort(l.Own)
	switch ip := at.Addr(); {
	case ip.IsLoopback():
		return l
	case !ip.IsUnspecified():
		l.Addresses = []string{l.Own}
		return l
	}
	port := strconv.Itoa(int(at.Port()))
	l.Own = net.JoinHostPort("127.0.0.1", port)
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			l.Addresses = append(l.Addresses, net.JoinHostPort(ip.IP.String(), port))
		}
	}
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
		conn, err := m.dial(&m.where[r], hello{Token: m.token, From: m.rank, To: r}, nil)
		if err != nil {
			m.listen.Close()
			return fault.New(fault.Runtime, "alive", m.where[r].Own, "cannot connect to rank %d: %v", r, err).Then(remedy)
		}
		m.add(r, conn)
	}
	for range m.founders - 1 - m.rank {
		select {
		case <-m.accepted:
		case <-late:
			return fault.New(fault.Runtime, "alive", m.listen.Addr().String(), "no connection of another rank: %v",
				os.ErrDeadlineExceeded).Then(remedy)
		}
	}
	return nil
}

// errElsewhere is the error of a connection to a rank that listens only on another machine.
var errElsewhere = errors.New("it listens only on its own machine")

// dial connects to a rank by the first of its addresses that leads there.
func (m *Mesh) dial(to *location, h hello, more []byte) (net.Conn, error) {
	addresses := to.from(m.self.Machine)
	if len(addresses) == 0 {
		return nil, errElsewhere
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

// mostWaiting is the number of connections, in addition to those of all ranks, that may wait for their hello.
const mostWaiting = 64

// accept accepts connections until the mesh is closed. It ignores those of other programs: they cannot
// hold more than a few connections and their hello's memory.
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
		conn.SetDeadline(time.Now().Add(starting * m.silent))
		m.enqueue(conn)
		go func() {
			if !m.admit(conn) {
				conn.Close()
			}
		}()
	}
}

// enqueue adds a connection to those that wait for their hello. If there are too many, it closes the
// oldest one: ranks send their hello at once.
func (m *Mesh) enqueue(conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting = append(m.waiting, conn); len(m.waiting) > mostWaiting+len(m.peers) {
		m.waiting[0].Close()
		m.waiting = slices.Delete(m.waiting, 0, 1)
	}
}

// dequeue ends the wait of a connection. It returns false if the connection was closed.
func (m *Mesh) dequeue(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.Index(m.waiting, conn)
	if at < 0 {
		return false
	}
	m.waiting = slices.Delete(m.waiting, at, at+1)
	return true
}

// admit reports whether a connection is the first one of a higher rank or of a guest to this rank.
func (m *Mesh) admit(conn net.Conn) bool {
	h, more, err := readHello(conn, m.token)
	waited := m.dequeue(conn)
	m.mu.Lock()
	rank := m.rank
	m.mu.Unlock()
	switch {
	case err != nil || !waited || h.To != rank:
		return false
	case h.From == guestRank:
		return m.admitGuest(conn, h, more)
	case h.From <= rank || h.From >= m.founders || !m.add(h.From, conn):
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

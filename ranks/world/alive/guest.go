package alive

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"siafu/internal/fault"
	"siafu/internal/wire"
)

// Contacts tells a guest how to reach the ranks of a world. They prove to the ranks that it may join.
type Contacts struct {
	Token    []byte
	Ranks    []location   // without addresses for lost ranks
	Founders int          // ranks of the start
	Network  netip.Prefix // of Connect
}

// Hosts returns the hosts of the ranks.
func (c Contacts) Hosts() (list []string) {
	for _, l := range c.Ranks {
		list = append(list, l.Host)
	}
	return list
}

// LiveHosts returns the hosts of the ranks that are not lost, sorted.
func (c Contacts) LiveHosts() (list []string) {
	for _, l := range c.Ranks {
		if l.Own != "" {
			list = append(list, l.Host)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// greeting is the request of a guest.
type greeting struct {
	Contact location
	Request []byte
}

// Contacts returns the contacts of this world. live are the ranks that are not lost.
func (m *Mesh) Contacts(live []int) Contacts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Contacts{Token: m.token[:], Ranks: slices.Clone(m.where), Founders: m.founders, Network: m.network}
	for r := range c.Ranks {
		if !slices.Contains(live, r) {
			c.Ranks[r].Own, c.Ranks[r].Addresses = "", nil
		}
	}
	return c
}

// Join connects this process to the ranks of a world as a guest. The ranks check request with their
// function vet; vet checks the requests of later guests. unreachable lists ranks that cannot be reached.
// Join fails if a rank refuses the request (Refusal), or none can be reached.
func Join(c Contacts, host string, request []byte, silent time.Duration, vet func(request []byte) error) (m *Mesh,
	unreachable []int, err error) {
	if len(c.Token) != len(m.token) {
		return nil, nil, fault.New(fault.Data, "join", "", "the contacts of the ranks are incomplete")
	}
	m = newMesh(-1, len(c.Ranks), silent)
	m.founders, m.network = c.Founders, c.Network
	m.token, m.where, m.id, m.vet = token(c.Token), c.Ranks, rand.Uint64(), vet
	elsewhere := func(l location) bool { return l.Machine != machine() }
	if err := m.open(!slices.ContainsFunc(c.Ranks, elsewhere)); err != nil {
		return nil, nil, err
	}
	m.self = m.location(host)
	if m.request, err = json.Marshal(greeting{m.self, request}); err != nil {
		return nil, nil, err
	}
	go m.accept()
	for r := range m.where {
		if m.where[r].Own == "" {
			continue
		}
		err := m.visit(r)
		if refused := (*Refusal)(nil); errors.As(err, &refused) {
			m.Break()
			return nil, nil, err
		}
		if err != nil {
			unreachable = append(unreachable, r)
		}
	}
	if !slices.ContainsFunc(m.peers, func(p *peer) bool { return p != nil }) {
		m.Break()
		if slices.ContainsFunc(c.Ranks, func(l location) bool { return l.Own != "" && len(l.from(m.self.Machine)) == 0 }) {
			return nil, nil, fault.New(fault.Config, "join", "", "the ranks listen only on their own machine, %s", c.Ranks[0].Host).
				Then("start the run with --survive listen=CIDR and a network of both machines")
		}
		return nil, nil, fault.New(fault.Stopped, "join", "", "none of the ranks %v responds", unreachable).
			Then("start the run again if it has ended: it resumes from its last checkpoint; else allow TCP connections to its hosts")
	}
	return m, unreachable, nil
}

// ID identifies this guest.
func (m *Mesh) ID() uint64 { return m.id }

// visit connects this guest to a rank, with a connection for messages and a Stream.
func (m *Mesh) visit(rank int) error {
	h := hello{Token: m.token, From: guestRank, To: rank, Guest: m.id}
	conn, err := m.dial(&m.where[rank], h, m.request)
	if err != nil {
		return err
	}
	h.Stream = true
	stream, err := m.introduce(conn.RemoteAddr().String(), h, nil)
	if err != nil {
		conn.Close()
		return err
	}
	p := newPeer(rank, conn, &m.where[rank])
	m.mu.Lock()
	m.peers[rank] = p
	m.mu.Unlock()
	m.start(p)
	m.startStream(p, stream)
	return nil
}

// admitGuest handles a connection of a guest: the first one with its request, or its Stream.
func (m *Mesh) admitGuest(conn net.Conn, h hello, more []byte) bool {
	if h.Stream {
		m.mu.Lock()
		p := m.guests[h.Guest]
		m.mu.Unlock()
		if p == nil || p.stream.Load() != nil || accept(conn) != nil {
			return false
		}
		m.startStream(p, conn)
		contact, _ := json.Marshal(p.at)
		m.tell(Event{Message: Message{From: -1, Data: contact}, Guest: p.guest, Host: p.at.Host, Arrived: true})
		return true
	}
	var g greeting
	if h.Guest == 0 || json.Unmarshal(more, &g) != nil || g.Contact.Own == "" {
		return false
	}
	err := errors.New("this rank admits no guests")
	if m.vet != nil {
		err = m.vet(g.Request)
	}
	if err != nil {
		refuse(conn, err.Error())
		m.tell(Event{Message: Message{From: -1}, Guest: h.Guest, Host: g.Contact.Host, Refused: err})
		return false
	}
	p := newPeer(-1, conn, &g.Contact)
	p.guest = h.Guest
	m.mu.Lock()
	known := m.guests[p.guest] != nil
	if !known {
		m.guests[p.guest] = p
	}
	m.mu.Unlock()
	if known || accept(conn) != nil {
		return false
	}
	m.start(p)
	return true
}

// SendGuest sends a message to a guest, like Send.
func (m *Mesh) SendGuest(id uint64, kind wire.Kind, data []byte) {
	m.mu.Lock()
	p := m.guests[id]
	m.mu.Unlock()
	m.send(p, kind, data)
}

// Admit makes a guest the next rank. contact is the data of the event of its arrival. If this process
// is the guest, it becomes that rank. A guest that is not yet connected to the new rank connects to it.
// It returns false without a connection to the new rank.
func (m *Mesh) Admit(id uint64, contact []byte) bool {
	var at location
	if err := json.Unmarshal(contact, &at); err != nil {
		return false
	}
	m.mu.Lock()
	rank := len(m.peers)
	p := m.guests[id]
	delete(m.guests, id)
	m.where, m.peers = append(m.where, at), append(m.peers, p)
	guest, own := m.rank < 0, id == m.id
	if own {
		m.rank = rank
	} else if p != nil {
		p.rank = rank
	}
	m.mu.Unlock()
	return own || p != nil || guest && m.visitNew(rank) == nil
}

// visitNew connects this guest to a rank that has just joined, and may not know its number yet. It then
// ends a connection without a reply.
func (m *Mesh) visitNew(rank int) error {
	for late := time.Now().Add(starting * m.silent); ; time.Sleep(m.silent / beats / 4) {
		if err := m.visit(rank); !errors.Is(err, io.EOF) || time.Now().After(late) {
			return err
		}
	}
}

// Size returns the number of ranks, including lost ones.
func (m *Mesh) Size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.peers)
}

// Hosts returns the hosts of all ranks.
func (m *Mesh) Hosts() (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Contacts{Ranks: m.where}.Hosts()
}

// Missing reports whether this process has never been connected to a rank.
func (m *Mesh) Missing(rank int) bool { return m.peer(rank) == nil }

// Connected reports whether the connection to a rank exists. It does not for this rank.
func (m *Mesh) Connected(rank int) bool {
	p := m.peer(rank)
	if p == nil {
		return false
	}
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// Founders returns the number of ranks of the start.
func (m *Mesh) Founders() int { return m.founders }

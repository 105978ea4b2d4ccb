package alive

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/wire"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// meshes connects n ranks in this process, which accept the requests of guests that vet accepts.
func meshes(t *testing.T, n int, silent time.Duration, vet func(request []byte) error) []*Mesh {
	t.Helper()
	list := make([]*Mesh, n)
	err := inproc.Run(n, func(c world.Comm) error {
		m, err := Connect(c, silent, netip.Prefix{}, vet)
		list[c.Rank()] = m
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range list {
			m.Break()
		}
	})
	return list
}

// next returns the next event, which must come within hosttest.Patience.
func next(t *testing.T, m *Mesh) Event {
	t.Helper()
	late := time.AfterFunc(hosttest.Patience, m.Break)
	defer late.Stop()
	e, ok := m.Next()
	if !ok {
		t.Fatal("no event")
	}
	return e
}

// Messages arrive in order, however long, also those that were sent just before the end.
func TestMessages(t *testing.T) {
	list := meshes(t, 3, time.Minute, nil)
	const messages = 200
	for i := range messages {
		list[2].Send(0, wire.Report+wire.Kind(i%6), make([]byte, i*i*7))
	}
	var closing sync.WaitGroup
	closing.Go(list[2].Close)
	for i := range messages {
		if e := next(t, list[0]); e.Lost || e.From != 2 || e.Kind != wire.Report+wire.Kind(i%6) || len(e.Data) != i*i*7 {
			t.Fatalf("message %d: rank %d, kind %v, %d bytes, lost %t", i, e.From, e.Kind, len(e.Data), e.Lost)
		}
	}
	closing.Wait()
	if e := next(t, list[0]); !e.Lost || e.From != 2 || !e.Certain {
		t.Errorf("%+v", e)
	}
}

// The end of a rank is noticed by all others at once, and with certainty. Messages to it are dropped.
func TestEnd(t *testing.T) {
	list := meshes(t, 4, hosttest.Patience, nil)
	began := time.Now()
	list[1].Break()
	for _, r := range []int{0, 2, 3} {
		if e := next(t, list[r]); !e.Lost || e.From != 1 || !e.Certain {
			t.Errorf("rank %d: %+v", r, e)
		}
	}
	if took := time.Since(began); took > hosttest.Patience/2 {
		t.Errorf("noticed after %v", took)
	}
	for range 2 * queued {
		list[0].Send(1, wire.Report, nil)
	}
}

// A rank that neither ends nor sends anything is lost, but may still compute.
func TestSilence(t *testing.T) {
	list := meshes(t, 3, 400*time.Millisecond, nil)
	quiet := list[1].peers[0]
	// Stop the heartbeats of rank 1 to rank 0 as a stopped process would: its writer ends, its
	// connection stays.
	quiet.queue <- nil
	e := next(t, list[0])
	if !e.Lost || e.From != 1 || e.Certain {
		t.Errorf("%+v", e)
	}
}

// A rank that is cut off in the middle of a long message is noticed as soon as one that is idle.
func TestCutInMessage(t *testing.T) {
	h := wire.Message{Kind: wire.Report}
	message := append(h.AppendHeader(nil, 100<<20), make([]byte, 1<<20)...)
	list := meshes(t, 2, 2*time.Second, nil) // in which a busy host writes the message
	cut := list[1].peers[0]
	cut.queue <- nil // ends the heartbeats
	began := time.Now()
	if _, err := cut.conn.Write(message); err != nil {
		t.Fatal(err)
	}
	if e := next(t, list[0]); !e.Lost || e.Certain {
		t.Errorf("%+v", e)
	}
	if took := time.Since(began); took > hosttest.Patience/2 {
		t.Errorf("noticed after %v", took)
	}
}

// A refused connection to another host does not prove that the process of a rank has ended: hosts of
// containers or virtual machines often have the same private address.
func TestRefusedElsewhere(t *testing.T) {
	list := meshes(t, 2, 5*time.Second, nil)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	l := &list[0].where[1]
	list[0].mu.Lock()
	l.Machine, l.Addresses = "another", []string{l.Own, closed.Addr().String()}
	list[0].mu.Unlock()
	list[1].peers[0].conn.Close() // the process and its port exist
	if e := next(t, list[0]); !e.Lost || e.Certain {
		t.Errorf("%+v", e)
	}
	// The same if the first address does not respond, and the second is that of this host.
	list = meshes(t, 2, 5*time.Second, nil)
	l = &list[0].where[1]
	_, port, _ := net.SplitHostPort(l.Own)
	list[0].mu.Lock()
	l.Machine, l.Addresses = "another", []string{"255.255.255.255:" + port, closed.Addr().String()}
	list[0].mu.Unlock()
	list[1].peers[0].conn.Close()
	if e := next(t, list[0]); !e.Lost || e.Certain {
		t.Errorf("%+v", e)
	}
}

// An address of a rank may lead to another rank. The connection is then made by the next address.
func TestAddressOfAnotherRank(t *testing.T) {
	err := inproc.Run(3, func(c world.Comm) error {
		m := newMesh(c.Rank(), 3, 5*time.Second)
		if err := m.open(true); err != nil {
			return err
		}
		defer m.Break()
		if err := m.exchange(c); err != nil {
			return err
		}
		other, own := m.where[1].Own, m.where[0].Own
		if c.Rank() == 2 {
			m.where[0] = location{Machine: "another", Addresses: []string{other, own}}
		}
		if err := m.connect(); err != nil {
			return err
		}
		if c.Rank() == 2 && m.peers[0].conn.RemoteAddr().String() != own {
			return fmt.Errorf("rank 0 is at %s, but the connection is to %s", own, m.peers[0].conn.RemoteAddr())
		}
		return c.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
}

// Connections of other programs do no harm, even if they stay open.
func TestStrangers(t *testing.T) {
	err := inproc.Run(2, func(c world.Comm) error {
		m := newMesh(c.Rank(), 2, 5*time.Second)
		if err := m.open(true); err != nil {
			return err
		}
		defer m.Break()
		if err := m.exchange(c); err != nil {
			return err
		}
		if c.Rank() == 0 {
			return m.connect()
		}
		for k, hello := range []string{"", "GET / HTTP/1.1\r\n\r\n", string(make([]byte, 20))} {
			conn, err := net.Dial("tcp", m.where[0].Own)
			if err != nil {
				return fmt.Errorf("stranger %d: %w", k, err)
			}
			fmt.Fprint(conn, hello)
			if k > 0 {
				conn.Close()
			} else {
				defer conn.Close()
			}
		}
		return m.connect()
	})
	if err != nil {
		t.Error(err)
	}
}

// Strangers hold a bounded number of connections, and do not prevent the connection of a rank.
func TestManyStrangers(t *testing.T) {
	list := meshes(t, 1, 15*time.Second, vet)
	first, err := net.Dial("tcp", list[0].self.Own)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for range mostWaiting + 1 {
		conn, err := net.Dial("tcp", list[0].self.Own)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first.SetReadDeadline(time.Now().Add(20 * time.Second)) // a hello may take 60 s
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest of %d connections is not closed: %v", mostWaiting+2, err)
	}
	join(t, list, 0)
}

// fixedPart fails if more than the fixed part of a hello is read from it.
type fixedPart struct {
	t *testing.T
	b []byte
}

func (f *fixedPart) Read(b []byte) (int, error) {
	if len(b) > helloBytes {
		f.t.Errorf("%d bytes are allocated", len(b))
	}
	n := copy(b, f.b)
	f.b = f.b[n:]
	return n, nil
}

// A stranger cannot make a rank allocate memory: the token comes first.
func TestTokenBeforeMemory(t *testing.T) {
	h := hello{Token: token{1}, From: guestRank}
	if _, _, err := readHello(&fixedPart{t, h.encode(mostRequest)}, token{2}); err == nil {
		t.Error("another token is accepted")
	}
}

// Ranks on one machine listen on the loopback interface, and ranks in a network on their address in it.
func TestListensWhereNeeded(t *testing.T) {
	list := meshes(t, 2, time.Minute, nil)
	if at, err := netip.ParseAddrPort(list[0].listen.Addr().String()); err != nil || !at.Addr().IsLoopback() ||
		len(list[0].where[1].Addresses) > 0 {
		t.Errorf("listens at %v, other machines connect to %v: %v", at, list[0].where[1].Addresses, err)
	}
	m := newMesh(0, 1, time.Minute)
	if err := m.open(false); err != nil {
		t.Fatal(err)
	}
	if m.where = []location{m.location("a")}; !m.listen.Addr().(*net.TCPAddr).IP.IsUnspecified() {
		t.Errorf("ranks on several machines listen at %v", m.listen.Addr())
	}
	m.Break()
	m.network = netip.MustParsePrefix("127.0.0.0/30")
	if err := m.open(false); err != nil {
		t.Fatal(err)
	}
	if at := m.listen.Addr().(*net.TCPAddr); !m.network.Contains(at.AddrPort().Addr().Unmap()) {
		t.Errorf("listens at %v, outside %v", at, m.network)
	}
	m.listen.Close()
	m.network = netip.MustParsePrefix("192.0.2.128/32") // reserved for documentation (RFC 5737)
	if err := m.open(false); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "--survive listen=CIDR") {
		t.Errorf("%v", err)
	}
}

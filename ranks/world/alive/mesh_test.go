package alive

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// meshes connects n ranks in this process.
func meshes(t *testing.T, n int, silent time.Duration) []*Mesh {
	t.Helper()
	list := make([]*Mesh, n)
	err := inproc.Run(n, func(c world.Comm) error {
		m, err := Connect(c, silent)
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

// next returns the next event, which must come within a minute.
func next(t *testing.T, m *Mesh) Event {
	t.Helper()
	late := time.AfterFunc(time.Minute, m.Break)
	defer late.Stop()
	e, ok := m.Next()
	if !ok {
		t.Fatal("no event")
	}
	return e
}

// Messages arrive in order, however long, also those that were sent just before the end.
func TestMessages(t *testing.T) {
	list := meshes(t, 3, time.Minute)
	const messages = 200
	for i := range messages {
		list[2].Send(0, byte(i), make([]byte, i*i*7))
	}
	var closing sync.WaitGroup
	closing.Go(list[2].Close)
	for i := range messages {
		if e := next(t, list[0]); e.Lost || e.From != 2 || e.Kind != byte(i) || len(e.Data) != i*i*7 {
			t.Fatalf("message %d: rank %d, kind %d, %d bytes, lost %t", i, e.From, e.Kind, len(e.Data), e.Lost)
		}
	}
	closing.Wait()
	if e := next(t, list[0]); !e.Lost || e.From != 2 || !e.Certain {
		t.Errorf("%+v", e)
	}
}

// The end of a rank is noticed by all others at once, and with certainty. Messages to it are dropped.
func TestEnd(t *testing.T) {
	list := meshes(t, 4, time.Minute)
	began := time.Now()
	list[1].Break()
	for _, r := range []int{0, 2, 3} {
		if e := next(t, list[r]); !e.Lost || e.From != 1 || !e.Certain {
			t.Errorf("rank %d: %+v", r, e)
		}
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("noticed after %v", took)
	}
	for range 2 * queued {
		list[0].Send(1, 0, nil)
	}
}

// A rank that neither ends nor sends anything is lost, but may still compute.
func TestSilence(t *testing.T) {
	list := meshes(t, 3, 400*time.Millisecond)
	quiet := list[1].peers[0]
	// Stop the heartbeats of rank 1 to rank 0 as a stopped process would: its writer ends, its
	// connection stays.
	quiet.queue <- nil
	e := next(t, list[0])
	if !e.Lost || e.From != 1 || e.Certain {
		t.Errorf("%+v", e)
	}
}

// Connections of other programs do no harm.
func TestStrangers(t *testing.T) {
	err := inproc.Run(2, func(c world.Comm) error {
		m := &Mesh{rank: c.Rank(), silent: 5 * time.Second, events: make(chan Event, 1), closed: make(chan struct{}), peers: make([]*peer, 2)}
		var err error
		if m.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
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
			conn, err := net.Dial("tcp", m.where[0].Addresses[len(m.where[0].Addresses)-1])
			if err != nil {
				return fmt.Errorf("stranger %d: %w", k, err)
			}
			fmt.Fprint(conn, hello)
			conn.Close()
		}
		return m.connect()
	})
	if err != nil {
		t.Error(err)
	}
}

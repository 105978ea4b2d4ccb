package endpoint

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

// limited is a listener that closes connections above the limit before their TLS handshake.
type limited struct {
	net.Listener
	e *Endpoint
}

type connection struct {
	net.Conn
	asked atomic.Bool // it has carried a request
}

func (d limited) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if d.e.admit() {
			return &connection{Conn: c}, nil
		}
		_ = c.Close()
	}
}

// admit counts a connection, unless the limit is reached.
func (e *Endpoint) admit() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stats.Connections >= e.o.Connections {
		e.stats.Refused[Crowded]++
		return false
	}
	e.stats.Connections++
	e.stats.PeakConnections = max(e.stats.PeakConnections, e.stats.Connections)
	e.running.Add(1)
	return true
}

type connectionKey struct{}

func unwrap(c net.Conn) *connection { return c.(*tls.Conn).NetConn().(*connection) }

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, unwrap(c))
}

func (e *Endpoint) watch(c net.Conn, s http.ConnState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s {
	case http.StateNew:
		if e.closed { // accepted while Close was closing the others
			_ = unwrap(c).Close()
		}
	case http.StateClosed:
		e.stats.Connections--
		if !unwrap(c).asked.Load() && !e.closed {
			e.stats.Refused[Silent]++
		}
		e.running.Done()
	}
}

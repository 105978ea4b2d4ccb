package endpoint

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

// door rejects connections above the bound, so that they cost no handshake.
type door struct {
	net.Listener
	e *Endpoint
}

// visitor is a connection.
type visitor struct {
	net.Conn
	asked atomic.Bool // it has sent a request
}

// Accept implements net.Listener.
func (d door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if d.e.admit() {
			return &visitor{Conn: c}, nil
		}
		_ = c.Close()
	}
}

// admit accepts a connection below the bound.
func (e *Endpoint) admit() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stats.Connections >= e.o.Connections {
		e.stats.Refused[Crowded]++
		return false
	}
	e.stats.Connections++
	e.stats.AtMost = max(e.stats.AtMost, e.stats.Connections)
	e.running.Add(1)
	return true
}

// visitorKey finds the connection of a request.
type visitorKey struct{}

func of(c net.Conn) *visitor { return c.(*tls.Conn).NetConn().(*visitor) }

func withVisitor(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, of(c))
}

// watch follows connections until their goroutines end.
func (e *Endpoint) watch(c net.Conn, s http.ConnState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s {
	case http.StateNew:
		if e.closed { // accepted while Close was closing the others
			_ = of(c).Close()
		}
	case http.StateClosed:
		e.stats.Connections--
		if !of(c).asked.Load() && !e.closed {
			e.stats.Refused[Silent]++
		}
		e.running.Done()
	}
}

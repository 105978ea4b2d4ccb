package endpoint

import (
	"cmp"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"siafu/internal/fault"
	"siafu/kernels/task"
)

// Options are the options of an endpoint. A zero value selects the default.
type Options struct {
	Listen string // host:port; empty: a free port of 127.0.0.1
	// host:port for functions; port 0: the port of Listen; empty: the address of Listen, or the outgoing
	// address if Listen is all addresses
	Advertise   string
	Memory      int64         // bytes: half for tasks, half for results; 0: 1 GiB
	Connections int           // maximum; 0: 256
	Life        time.Duration // of a ticket; 0: 15 minutes, the maximum of an invocation
	Grace       time.Duration // for a request's headers, and for its body in addition to the time from Rate; 0: 10 s
	Rate        int64         // minimum rate of a body in bytes per second; 0: 64 KiB
}

// Endpoint is a listening data endpoint. Its methods are safe for several goroutines.
type Endpoint struct {
	o              Options
	address        string // for functions
	fingerprint    string
	server         *http.Server
	tasks, answers *memory
	context        context.Context // ends with Close
	cancel         context.CancelFunc
	served         chan struct{}  // closed when the listener has ended
	running        sync.WaitGroup // connections, and running calls of ticket.take

	mu     sync.Mutex
	byName map[task.Name]*ticket // open tickets
	tokens map[string]*ticket    // open tickets
	ended  reasons
	closed bool
	stats  Stats
}

// leastRate is low, because a hundred functions may share the link of a host.
const leastRate = 64 << 10

const headerBytes = 8 << 10

// idleTime is the time for which an idle connection stays open for the next task of a warm
// function.
const idleTime = 2 * time.Minute

// Start starts an endpoint on the requested address.
func Start(o Options) (*Endpoint, error) {
	o.Listen, o.Memory, o.Connections = cmp.Or(o.Listen, "127.0.0.1:0"), cmp.Or(o.Memory, 1<<30), cmp.Or(o.Connections, 256)
	o.Life, o.Grace, o.Rate = cmp.Or(o.Life, 15*time.Minute), cmp.Or(o.Grace, 10*time.Second), cmp.Or(o.Rate, leastRate)
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fault.New(fault.Config, "lambda", "", "the data endpoint cannot listen on %s: %v", o.Listen, err).
			Then("give an address of this machine, with port 0 (any free port) for several ranks on one machine")
	}
	address, err := advertised(l.Addr().String(), o.Advertise, outward)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	identity, fingerprint, err := newIdentity()
	if err != nil {
		_ = l.Close()
		return nil, fault.System("lambda", "", err)
	}
	e := &Endpoint{
		o: o, address: address, fingerprint: fingerprint, served: make(chan struct{}),
		tasks: newMemory(o.Memory / 2), answers: newMemory(o.Memory / 2),
		byName: map[task.Name]*ticket{}, tokens: map[string]*ticket{}, ended: reasons{why: map[string]Refusal{}},
	}
	e.context, e.cancel = context.WithCancel(context.Background())
	e.server = &http.Server{
		Handler: http.HandlerFunc(e.serve), TLSConfig: identity, ErrorLog: log.New(io.Discard, "", 0), // failed connections are counted
		ReadHeaderTimeout: o.Grace, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ConnContext: withConnection, ConnState: e.watch, Protocols: &http.Protocols{},
	}
	e.server.Protocols.SetHTTP1(true) // only HTTP/1, so that the limit of connections is a limit of requests
	go func() {
		defer close(e.served)
		_ = e.server.ServeTLS(limited{l, e}, "", "") // until Close
	}()
	return e, nil
}

// advertised returns the address that functions connect to. If the endpoint listens on all
// addresses of this machine, it is the address from own.
func advertised(listens, advertise string, own func() (string, error)) (string, error) {
	_, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "", fault.System("lambda", "", err)
	}
	host, other, err := net.SplitHostPort(cmp.Or(advertise, listens))
	if err != nil {
		return "", fault.New(fault.Config, "lambda", "", "functions cannot connect to %q: %v", advertise, err).Then("give host:port")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = own(); err != nil {
			return "", fault.New(fault.Config, "lambda", "",
				"the data endpoint listens on %s, but no address of this machine is reachable for functions: %v", listens, err).
				Then("give a reachable address after a comma: LISTEN,ADVERTISED")
		}
	}
	if other != "0" {
		port = other
	}
	return net.JoinHostPort(host, port), nil
}

// outward returns the outgoing address of this machine. It sends nothing.
func outward() (string, error) {
	c, err := net.Dial("udp4", "203.0.113.1:9") // a documentation address (RFC 5737)
	if err != nil {
		return "", err
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}

// Address returns the address that functions connect to.
func (e *Endpoint) Address() string { return e.address }

// Stats returns the current statistics.
func (e *Endpoint) Stats() Stats {
	e.mu.Lock()
	s := e.stats
	s.Open = len(e.byName)
	e.mu.Unlock()
	for _, r := range []*memory{e.tasks, e.answers} {
		held, most := r.now()
		s.Held += held
		s.MostHeld += most
	}
	return s
}

// Close ends the endpoint with all tickets, connections, waits and goroutines. It waits for running
// calls of ticket.take.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	e.closed = true
	for _, t := range e.byName {
		e.close(t, Closed)
	}
	e.mu.Unlock()
	e.cancel()
	err := e.server.Close()
	<-e.served
	e.running.Wait()
	return err
}

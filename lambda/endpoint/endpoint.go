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

// Options are the options of an endpoint. Zero values select the defaults below.
type Options struct {
	Listen      string        // host:port; empty: a free port of 127.0.0.1
	Advertise   string        // host:port that functions connect to, port 0 being the one listened on; empty: Listen's, or of all addresses the one outward
	Memory      int64         // bytes of tasks and of results, a half each; 0: 1 GiB
	Connections int           // at a time; 0: 256
	Life        time.Duration // of a ticket; 0: 15 minutes, as an invocation's at most
	Grace       time.Duration // for a request's headers, and for its body beside what Rate gives; 0: 10 s
	Rate        int64         // bytes a second that a body must come or go with; 0: 64 KiB
}

// Endpoint is a listening data endpoint. Its methods are safe for several goroutines.
type Endpoint struct {
	o              Options
	address        string // that is advertised
	fingerprint    string
	server         *http.Server
	tasks, answers *room
	context        context.Context // ends with Close
	cancel         context.CancelFunc
	served         chan struct{}  // closed when the listener has ended
	running        sync.WaitGroup // connections, and running calls of take

	mu     sync.Mutex
	byName map[task.Name]*ticket // open ones
	tokens map[string]*ticket    // the same
	ended  graves
	closed bool
	stats  Stats
}

// leastRate is low, because a hundred functions share a host's link.
const leastRate = 64 << 10

// headerBytes bounds the headers of a request.
const headerBytes = 8 << 10

// idleTime is the time that an idle connection is kept open for a warm function's next task.
const idleTime = 2 * time.Minute

// Start begins to listen, on the address that was asked for and no other one.
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
		tasks: &room{size: o.Memory / 2}, answers: &room{size: o.Memory / 2},
		byName: map[task.Name]*ticket{}, tokens: map[string]*ticket{}, ended: graves{why: map[string]Refusal{}},
	}
	e.context, e.cancel = context.WithCancel(context.Background())
	e.server = &http.Server{
		Handler: http.HandlerFunc(e.serve), TLSConfig: identity, ErrorLog: log.New(io.Discard, "", 0), // failed connections are counted
		ReadHeaderTimeout: o.Grace, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ConnContext: withVisitor, ConnState: e.watch, Protocols: &http.Protocols{},
	}
	e.server.Protocols.SetHTTP1(true) // and no other, so that the bound of connections is one of requests
	go func() {
		defer close(e.served)
		_ = e.server.ServeTLS(door{l, e}, "", "") // until Close
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
			return "", fault.New(fault.Config, "lambda", "", "the data endpoint listens on %s, but no address of this machine is reachable for functions: %v", listens, err).
				Then("give a reachable address after a comma: LISTEN,ADVERTISED")
		}
	}
	if other != "0" {
		port = other
	}
	return net.JoinHostPort(host, port), nil
}

// outward returns the address from which this machine would send to others. Nothing is sent.
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
	for _, r := range []*room{e.tasks, e.answers} {
		held, most := r.now()
		s.Held += held
		s.MostHeld += most
	}
	return s
}

// refused counts a refusal.
func (e *Endpoint) refused(why Refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Refused[why]++
}

// Close ends the endpoint with all tickets, connections, waits and goroutines. It waits for
// running calls of take.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	e.closed = true
	for _, t := range e.byName {
		e.bury(t, Closed)
	}
	e.mu.Unlock()
	e.cancel()
	err := e.server.Close()
	<-e.served
	e.running.Wait()
	return err
}

package local

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"siafu/internal/fault"
	"siafu/lambda"
)

// Options are the options of a service.
type Options struct {
	Function    string        // path of the executable
	Name        string        // of the function, which invocations name
	Address     string        // to listen on; empty: a free port of 127.0.0.1
	Concurrency int           // invocations at a time, at least 1
	Timeout     time.Duration // of an invocation; 0: a minute
	Memory      int           // of a sandbox, in MB; 0: 192
	Targets     []string      // HOST:PORT that the relay connects to, in addition to loopback addresses
	Limits      Limits
	Faults      Faults
}

// defaultMemory is the memory of Dorylus's functions, in MB (OSDI'21, §7).
const defaultMemory = 192

// Region is the region that the service reports.
const Region = "local"

// Service is a running service. Its methods are safe for several goroutines.
type Service struct {
	o      Options
	key    string
	server *http.Server
	url    string
	burst  *bucket       // limits new sandboxes; nil: no limit
	ended  chan struct{} // closed by Close

	drawn    atomic.Uint64  // invocations whose fault was sampled
	relayed  atomic.Int64   // bytes through relays
	commands chan *exec.Cmd // of sandboxes for startSandboxes to start
	begun    chan error     // the result of each start

	mu        sync.Mutex
	sandboxes map[string]*sandbox // by token; their processes have not ended
	warm      []*sandbox          // the sandboxes without an invocation
	running   int                 // number of invocations, at most Concurrency
	closed    bool
	stats     Stats
	processes sync.WaitGroup
}

// Stats are the statistics of a service.
type Stats struct {
	Invocations int               // accepted
	Throttled   int               // rejected for lack of a slot or a sandbox
	Failed      int               // accepted, and failed
	Refused     int               // requests without the key or token, and malformed requests
	Started     int               // sandboxes
	Relayed     int64             // bytes, in both directions
	Struck      [lambda.Kinds]int // invocations by their injected fault
}

// Start starts a service. It returns a fault of kind Missing if there is no function.
func Start(o Options) (*Service, error) {
	if info, err := os.Stat(o.Function); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return nil, fault.New(fault.Missing, "lambda", o.Function, "the function does not exist or is not executable").
			Then(`"make function" builds it; --lambda function=NAME says where it is`)
	}
	o.Address, o.Timeout = cmp.Or(o.Address, "127.0.0.1:0"), cmp.Or(o.Timeout, time.Minute)
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fault.System("lambda", o.Address, err)
	}
	s := &Service{
		o: o, key: rand.Text(), url: "http://" + l.Addr().String(), burst: o.Limits.newBurst(),
		ended: make(chan struct{}), commands: make(chan *exec.Cmd), begun: make(chan error), sandboxes: map[string]*sandbox{},
	}
	s.o.Concurrency = max(o.Concurrency, 1)
	s.server = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	go s.startSandboxes()
	go func() { _ = s.server.Serve(l) }() // until Close
	return s, nil
}

// URL returns the URL of the Invoke API.
func (s *Service) URL() string { return s.url }

// Key returns the access key of invocations. The secret key may be any.
func (s *Service) Key() string { return s.key }

// Stats returns the current statistics.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Relayed = s.relayed.Load()
	return stats
}

func (s *Service) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// countOpen counts like count, but not after Close: failures that Close causes do not count. An
// example is an invocation whose result has already come through an endpoint.
func (s *Service) countOpen(f func(*Stats)) {
	select {
	case <-s.ended:
	default:
		s.count(f)
	}
}

// Close ends the service. Running invocations fail, and all processes have ended when it returns.
func (s *Service) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.ended)
	close(s.commands) // under the lock: no other goroutine starts a sandbox any more
	for _, b := range s.sandboxes {
		b.kill()
	}
	s.mu.Unlock()
	s.processes.Wait()
	return s.server.Close()
}

func (s *Service) acquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.running >= s.o.Concurrency {
		s.stats.Throttled++
		return false
	}
	s.running++
	return true
}

func (s *Service) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// newBucket returns one direction of a sandbox's network, whose bandwidth depends on the number of
// running invocations.
func (s *Service) newBucket(b *sandbox) *bucket {
	return &bucket{depth: lateness, rate: func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		bytes := Bandwidth(s.running) / 8
		if b.current != nil && b.current.fault == lambda.Straggle {
			bytes /= lambda.Slowness
		}
		return bytes
	}}
}

// dispatch sends an invocation to a sandbox, preferably a warm one.
func (s *Service) dispatch(inv *invocation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.assign(inv)
	if !errors.Is(err, errThrottled) {
		s.stats.Invocations++
	}
	return err
}

// assign dispatches under the lock.
func (s *Service) assign(inv *invocation) error {
	if s.closed {
		return errClosed
	}
	var b *sandbox
	if n := len(s.warm); n > 0 && inv.fault != lambda.Start {
		b, s.warm = s.warm[n-1], s.warm[:n-1]
	} else if s.burst != nil && !s.burst.has(time.Now()) {
		return errThrottled
	} else {
		var err error
		if b, err = s.start(); err != nil {
			return err
		}
	}
	b.current, inv.on = inv, b
	b.work <- inv // its capacity is 1
	if inv.fault == lambda.Start {
		b.kill()
	}
	return nil
}

var (
	errClosed    = errors.New("the service has been closed")
	errThrottled = errors.New("too many new sandboxes")
)

// finish ends the invocation with this id in a sandbox, which is warm then. It reports false if the
// sandbox does not run that invocation.
func (s *Service) finish(b *sandbox, id string, a answer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv := b.current
	if inv == nil || inv.id != id || !inv.taken {
		return false
	}
	b.current = nil
	a.usage = b.usage(inv)
	inv.done <- a
	if s.sandboxes[b.token] == b {
		s.warm = append(s.warm, b)
	}
	return true
}

// remove removes a sandbox whose process has ended. Its invocation fails. But if a warm sandbox
// ended before it received the invocation, another sandbox gets the invocation.
func (s *Service) remove(b *sandbox, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, b.token)
	s.warm = slices.DeleteFunc(s.warm, func(w *sandbox) bool { return w == b })
	inv := b.current
	if inv == nil {
		return
	}
	b.current = nil
	if b.ready && !inv.taken && b.why == "" {
		err := s.assign(inv)
		if err == nil {
			return
		}
		why = err
	}
	if b.why == outOfMemory {
		why = fmt.Errorf("%w: it used %d MB of memory, and the limit is %d MB", why, megabytes(b.peak), s.o.Memory)
	}
	a := failure(cmp.Or(b.why, "Runtime.ExitError"), fmt.Sprintf("RequestId: %s Error: %v%s", inv.id, why, b.output.tail()))
	a.usage = b.usage(inv)
	inv.done <- a
}

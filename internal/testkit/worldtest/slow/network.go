package slow

import (
	"sync"
	"time"
)

// Network simulates hosts and their links.
type Network struct {
	latency time.Duration

	mu    sync.Mutex
	rate  float64 // bytes per second, 0: no limit
	hosts map[string]*host
}

// host has the times when a host's link is free, in each direction.
type host struct{ out, in time.Time }

// NewNetwork returns a network whose links have a rate, in bytes per second and direction, and
// whose messages have a latency.
func NewNetwork(rate float64, latency time.Duration) *Network {
	return &Network{latency: latency, rate: rate, hosts: map[string]*host{}}
}

// SetRate changes the rate of all links for later messages.
func (n *Network) SetRate(rate float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rate = rate
}

// host returns the state of a host's link; the caller holds the lock.
func (n *Network) host(name string) *host {
	h := n.hosts[name]
	if h == nil {
		h = &host{}
		n.hosts[name] = h
	}
	return h
}

// carry returns the time when bytes that one host sends now arrive at another.
func (n *Network) carry(from, to string, bytes int) time.Time {
	now := time.Now()
	if from == to {
		return now
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var length time.Duration
	if n.rate > 0 {
		length = time.Duration(float64(bytes) / n.rate * float64(time.Second))
	}
	out, in := n.host(from), n.host(to)
	out.out = later(now, out.out).Add(length)
	// The first byte arrives before the last one is sent.
	in.in = later(out.out.Add(-length), in.in).Add(length)
	return later(out.out, in.in).Add(n.latency)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

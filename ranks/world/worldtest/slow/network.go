package slow

import (
	"sync"
	"time"
)

// Network is hosts behind links.
type Network struct {
	latency time.Duration

	mu    sync.Mutex
	rate  float64 // bytes a second, 0: no limit
	hosts map[string]*host
}

// host is when a host's link is free, in either direction.
type host struct{ out, in time.Time }

// NewNetwork gives every host a link of rate bytes a second in each direction,
// and every message between hosts a latency.
func NewNetwork(rate float64, latency time.Duration) *Network {
	return &Network{latency: latency, rate: rate, hosts: map[string]*host{}}
}

// SetRate changes the rate of all links, for what is sent from then on.
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

// carry is when bytes that one host sends to another now will have arrived.
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
	// The first byte comes in while the last ones go out.
	in.in = later(out.out.Add(-length), in.in).Add(length)
	return later(out.out, in.in).Add(n.latency)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

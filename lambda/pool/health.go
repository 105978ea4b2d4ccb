package pool

import (
	"fmt"
	"time"
)

// health is a Pool's estimate of the service.
type health struct {
	failures int           // consecutive counted failures
	starts   int           // of these, failures to start
	counted  int           // number of invocations at the newest counted failure
	until    time.Duration // no invocation before this time
	open     bool          // the breaker is open: the CPU computes all tasks
	openings int           // consecutive
	rested   time.Duration // earliest time of a probe
	probe    int           // serial number of the running probe; 0: none runs
	reason   string        // why it is open
}

// probes reports whether a probe is due.
func (h *health) probes(now time.Duration) bool { return h.open && h.probe == 0 && now >= h.rested }

// succeeded records a result, used or not.
func (p *Pool[K]) succeeded(a *attempt) {
	h := &p.health
	switch {
	case h.open && h.probe != a.serial: // it began before the failures
		return
	case h.open:
		p.say("the function responds again")
		p.window = 1
	default:
		p.window = min(p.window+1, p.s.Limit)
	}
	*h = health{counted: h.counted, until: h.until}
}

// failed records a failure and returns its description. Of concurrent attempts only the first
// failure counts.
func (p *Pool[K]) failed(a *attempt, why Failure, detail string) string {
	h, text := &p.health, why.Error()
	if detail != "" {
		text += ": " + detail
	}
	switch {
	case h.open && h.probe == a.serial:
		p.breaks("a probe failed: " + text)
	case !h.open && a.serial > h.counted:
		p.worsen(why, text)
	}
	return text
}

// worsen records a counted failure.
func (p *Pool[K]) worsen(why Failure, text string) {
	h := &p.health
	h.failures++
	h.counted = p.counts.Invoked
	p.window = max(p.window/2, 1)
	if why == Throttled || why == NotStarted {
		h.starts++
		h.until = p.now + p.s.Backoff.draw(h.starts, p.rng)
	}
	if p.s.Breaker.Failures > 0 && h.failures >= p.s.Breaker.Failures {
		p.breaks(fmt.Sprintf("%d failures in a row, the last: %s", h.failures, text))
	}
}

// breaks opens the breaker, or keeps it open after a probe.
func (p *Pool[K]) breaks(reason string) {
	h := &p.health
	h.open, h.probe, h.until, h.reason = true, 0, 0, reason
	h.openings++
	rest := p.s.Breaker.Rest.draw(h.openings, p.rng)
	h.rested = p.now + rest
	p.counts.Opened++
	p.say(fmt.Sprintf("the CPU takes over the work: %s; the function is retried in %v", reason, rest.Round(time.Millisecond)))
}

func (p *Pool[K]) say(text string) {
	p.orders = append(p.orders, Order[K]{Do: Say, Reason: text})
}

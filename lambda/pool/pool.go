package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Do is the kind of an order.
type Do uint8

// Orders.
const (
	Invoke Do = iota // start an attempt at a task
	Local            // compute the task on the CPU; the last order of the task
	Say              // print Reason
)

// Order is an action that a Pool requests.
type Order[K comparable] struct {
	Do      Do
	Task    K      // except for Say
	Attempt int    // of Invoke, from 1; unique among the running invocations of the task
	Reason  string // of Local and Say
}

// Pool is the state of the invocations of a function. K identifies tasks. Times are relative to any
// fixed moment. A time before the newest one counts as the newest one.
//
//	0 <= running <= Limit, unless SetLimit has just lowered it
//	0 <= awaited <= running: late invocations run without being awaited
//	1 <= window <= Limit
type Pool[K comparable] struct {
	s       Settings
	rng     *rand.Rand
	now     time.Duration
	byKey   map[K]*task[K]
	live    []*task[K] // open or with running invocations, in order of arrival
	running int
	awaited int // tasks with a current invocation
	window  int // maximum of awaited
	kinds   map[int]*durations
	health  health
	orders  []Order[K]
	counts  Counts
}

// task is open from Expect or Submit until a result is used or the CPU computes it.
type task[K comparable] struct {
	key     K
	kind    int
	ready   bool // the task was submitted: its input exists
	done    bool
	tries   int           // number of attempts
	last    int           // number of the newest attempt
	crashes int           // number of crashed attempts
	failure string        // reason of the newest failure
	until   time.Duration // not invoked before this time
	current *attempt      // awaited; nil: the task waits for a slot
	alive   []*attempt    // running
}

// attempt is a running invocation.
type attempt struct {
	number   int
	began    time.Duration
	from     time.Duration // time from which it ran with an input
	deadline time.Duration // valid once the input exists
	nth      int           // position among the task's attempts, from 1
	stale    bool          // the attempt belongs to an earlier task of the same name
	serial   int           // number of the invocation, from 1
}

// New returns a Pool without tasks. It panics on invalid settings.
func New[K comparable](s Settings) *Pool[K] {
	s.check()
	return &Pool[K]{
		s: s, rng: rand.New(rand.NewPCG(s.Seed, 0x706f6f6c)), window: s.Limit,
		byKey: map[K]*task[K]{}, kinds: map[int]*durations{},
	}
}

// Expect announces a task, so that a function can be started for it: at the time its previous task
// starts executing (§6). At most one function is started before the task is submitted.
func (p *Pool[K]) Expect(now time.Duration, key K, kind int) []Order[K] {
	p.arrive(now)
	p.enter(key, kind)
	return p.settle()
}

// Submit adds a task. Tasks of the same kind have similar durations. The task must not be
// open.
func (p *Pool[K]) Submit(now time.Duration, key K, kind int) []Order[K] {
	p.arrive(now)
	t := p.byKey[key]
	if t == nil || t.done {
		t = p.enter(key, kind)
	}
	if t.ready {
		panic("pool: a task was submitted twice")
	}
	t.ready = true
	p.counts.Submitted++
	if a := t.current; a != nil {
		a.from = p.now
		a.deadline = p.now + p.of(t.kind).timeout(p.s.Timeout, a.nth)
	}
	return p.settle()
}

// Wants reports whether the result of an attempt would be used.
func (p *Pool[K]) Wants(key K, number int) bool {
	t := p.byKey[key]
	return t != nil && t.ready && !t.done &&
		slices.ContainsFunc(t.alive, func(a *attempt) bool { return a.number == number && !a.stale })
}

// Result records the result of an attempt. It reports whether to use the result: only the first
// result of a task is used.
func (p *Pool[K]) Result(now time.Duration, key K, number int) (first bool, _ []Order[K]) {
	p.arrive(now)
	t, a := p.end(key, number)
	if a == nil {
		return false, p.settle()
	}
	took := p.now - a.began
	if t.ready && !a.stale {
		p.of(t.kind).add(p.now-a.from, p.s.Timeout.Window)
	}
	first = t.ready && !t.done && !a.stale
	p.succeeded(a)
	if !first {
		p.counts.Dropped++
		p.counts.WastedTime += took
	} else {
		t.done, t.current = true, nil // another attempt may be the awaited one
		p.counts.Used++
		p.counts.UsedTime += took
		if a.nth > 1 {
			p.counts.Retried++
		}
	}
	return first, p.settle()
}

// Failed records a failed attempt; detail is for messages.
func (p *Pool[K]) Failed(now time.Duration, key K, number int, why Failure, detail string) []Order[K] {
	p.arrive(now)
	t, a := p.end(key, number)
	if a == nil {
		return p.settle()
	}
	if why == Throttled {
		p.counts.Throttled++
	} else {
		p.counts.Failed++
		p.counts.WastedTime += p.now - a.began
	}
	if why == Crashed && !a.stale {
		t.crashes++
		t.until = p.now + p.s.Backoff.draw(t.crashes, p.rng)
	}
	t.failure = p.failed(a, why, detail)
	return p.settle()
}

// Tick advances the time. Next returns when it is needed.
func (p *Pool[K]) Tick(now time.Duration) []Order[K] {
	p.arrive(now)
	return p.settle()
}

// SetLimit changes how many invocations may run at once, at least 1. Running ones continue.
func (p *Pool[K]) SetLimit(now time.Duration, n int) []Order[K] {
	p.arrive(now)
	if p.window == p.s.Limit { // nothing has failed
		p.window = n
	}
	p.s.Limit = max(n, 1)
	p.window = max(min(p.window, p.s.Limit), 1)
	return p.settle()
}

// Counts returns the current counts.
func (p *Pool[K]) Counts() Counts { return p.counts }

// Running returns the number of invocations that have not ended.
func (p *Pool[K]) Running() int { return p.running }

// Open returns the number of submitted tasks that have not ended.
func (p *Pool[K]) Open() int { return p.counts.Submitted - p.counts.Used - p.counts.Local }

func (p *Pool[K]) arrive(now time.Duration) { p.now = max(p.now, now) }

func (p *Pool[K]) of(kind int) *durations {
	if p.kinds[kind] == nil {
		p.kinds[kind] = &durations{}
	}
	return p.kinds[kind]
}

// enter creates a task. Running invocations of an earlier task of the same name are ignored. The
// attempts of the new task are numbered after them.
func (p *Pool[K]) enter(key K, kind int) *task[K] {
	t := &task[K]{key: key, kind: kind}
	if old := p.byKey[key]; old != nil {
		if !old.done {
			panic("pool: a task is open already")
		}
		t.last, t.alive = old.last, old.alive
		for _, a := range t.alive {
			a.stale = true
		}
		old.alive = nil
	}
	p.byKey[key] = t
	p.live = append(p.live, t)
	return t
}

// end ends an invocation. It returns nil if the invocation had already ended.
func (p *Pool[K]) end(key K, number int) (*task[K], *attempt) {
	t := p.byKey[key]
	if t != nil {
		if i := slices.IndexFunc(t.alive, func(a *attempt) bool { return a.number == number }); i >= 0 {
			a := t.alive[i]
			t.alive = slices.Delete(t.alive, i, i+1)
			if t.current == a {
				t.current = nil
			}
			p.running--
			return t, a
		}
	}
	p.counts.Strays++
	return nil, nil
}

// settle executes due actions and returns the orders.
func (p *Pool[K]) settle() []Order[K] {
	for _, t := range p.live {
		p.expire(t)
	}
	p.awaited = 0
	for _, t := range p.live {
		if t.current != nil {
			p.awaited++
		}
	}
	for _, t := range p.live {
		p.schedule(t)
	}
	p.live = slices.DeleteFunc(p.live, func(t *task[K]) bool {
		over := len(t.alive) == 0 && t.done
		if over && p.byKey[t.key] == t {
			delete(p.byKey, t.key)
		}
		return over
	})
	orders := p.orders
	p.orders = nil
	return orders
}

// expire ends invocations that exceeded InvocationLimit. If the current invocation of t exceeds its
// timeout, the task no longer waits for it.
func (p *Pool[K]) expire(t *task[K]) {
	if a := t.current; a != nil && t.ready && p.now >= a.deadline {
		t.current = nil
		p.counts.Late++
		t.failure = p.failed(a, late, "")
	}
	t.alive = slices.DeleteFunc(t.alive, func(a *attempt) bool {
		if p.now < a.began+p.s.InvocationLimit {
			return false
		}
		if t.current == a { // the invocation was started ahead, and its task was never submitted
			t.current = nil
		}
		p.running--
		p.counts.Lost++
		p.counts.WastedTime += p.s.InvocationLimit
		if p.health.probe == a.serial { // its task has ended
			p.failed(a, late, "")
		}
		return true
	})
}

// schedule invokes a task if a slot is free, or orders the CPU to compute the task.
func (p *Pool[K]) schedule(t *task[K]) {
	switch {
	case t.done || t.current != nil:
	case !t.ready && (t.tries > 0 || p.health.open):
	case t.tries == p.s.Attempts:
		p.local(t, fmt.Sprintf("no result after %d attempts, the last: %s", t.tries, t.failure))
	case p.health.probes(p.now) && p.now >= t.until && p.running < p.s.Limit:
		p.health.probe = p.invoke(t)
	case p.health.open:
		p.local(t, p.health.reason)
	case p.now >= max(t.until, p.health.until) && p.freeSlots() > 0:
		p.invoke(t)
	}
}

func (p *Pool[K]) local(t *task[K], reason string) {
	t.done = true
	p.counts.Local++
	p.orders = append(p.orders, Order[K]{Do: Local, Task: t.key, Reason: reason})
}

// freeSlots returns the number of free slots. Each running invocation occupies a slot. After failures
// the window limits the number of awaited invocations.
func (p *Pool[K]) freeSlots() int { return min(p.s.Limit-p.running, p.window-p.awaited) }

// invoke starts the next attempt, and returns its serial number.
func (p *Pool[K]) invoke(t *task[K]) int {
	t.last++
	t.tries++
	a := &attempt{number: t.last, nth: t.tries, began: p.now, from: p.now}
	a.deadline = p.now + p.of(t.kind).timeout(p.s.Timeout, t.tries)
	t.current, t.alive = a, append(t.alive, a)
	p.running++
	p.awaited++
	p.counts.Invoked++
	a.serial = p.counts.Invoked
	p.orders = append(p.orders, Order[K]{Do: Invoke, Task: t.key, Attempt: a.number})
	return a.serial
}

// Next returns the time of the next due action, if any.
func (p *Pool[K]) Next() (at time.Duration, ok bool) {
	due := func(x time.Duration) {
		if !ok || x < at {
			at, ok = x, true
		}
	}
	for _, t := range p.live {
		for _, a := range t.alive {
			due(a.began + p.s.InvocationLimit)
		}
		switch {
		case t.current != nil && t.ready:
			due(t.current.deadline)
		case t.done || t.current != nil || !t.ready && (t.tries > 0 || p.health.open):
		case p.freeSlots() > 0:
			due(max(t.until, p.health.until))
		}
	}
	return at, ok
}

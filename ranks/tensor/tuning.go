package tensor

import (
	"sync"
	"time"

	"siafu/lambda/pool"
)

// Queue returns the number of tasks that wait for a CPU, and whether any tasks run.
type Queue func() (waiting int, working bool)

// Tuning is the history of the number of concurrent invocations.
//
//	1 <= Least <= First, Last <= Most
type Tuning struct {
	First, Last, Least, Most int
	Changes                  int
	Checks                   []Check // the newest checks, oldest first
}

// Check is a sample of the queue, and the number of invocations from then on.
type Check struct {
	At            time.Time
	Queue, Number int
}

// checkEvery is the time between two checks. It is about the duration of an invocation: before
// that, a change of the number has little effect on the queue. A decision takes four checks,
// still less than an epoch that is worth functions.
const checkEvery = 100 * time.Millisecond

// mostChecks is the number of stored checks, of an hour and three quarters.
const mostChecks = 1 << 16

// tuning is the tuning state of a Remote, under its lock.
type tuning struct {
	tuner *pool.Tuner // nil: the number is fixed
	seen  Tuning
	count int // of checks
	ended sync.WaitGroup
}

// Tune lets a tuner decide the number of concurrent invocations. Call it before Follow.
func (r *Remote) Tune(t *pool.Tuner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tuning.tuner = t
	r.begin(t.Number())
	r.applyOrders(nil, r.pool.SetLimit(r.now(), t.Number()))
}

// begin sets the initial number of concurrent invocations.
func (r *Remote) begin(n int) {
	r.tuning.seen = Tuning{First: n, Last: n, Least: n, Most: n}
}

// Follow implements Backend.
func (r *Remote) Follow(q Queue) {
	if r.tuning.tuner == nil {
		return
	}
	r.tuning.ended.Go(func() {
		every := time.NewTicker(checkEvery)
		defer every.Stop()
		for {
			select {
			case <-r.closed:
				return
			case <-every.C:
				r.follow(q)
			}
		}
	})
}

// follow samples the queue. Between two passes the queue is empty because nothing is
// requested; such samples are ignored.
func (r *Remote) follow(q Queue) {
	if waiting, working := q(); working {
		r.check(waiting)
	}
}

// check processes a queue size.
func (r *Remote) check(waiting int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.tuning
	number, seen := t.tuner.Check(waiting), &t.seen
	c := Check{time.Now(), waiting, number}
	if len(seen.Checks) < mostChecks {
		seen.Checks = append(seen.Checks, c)
	} else {
		seen.Checks[t.count%mostChecks] = c
	}
	t.count++
	if number == seen.Last {
		return
	}
	seen.Last, seen.Least, seen.Most = number, min(seen.Least, number), max(seen.Most, number)
	seen.Changes++
	r.applyOrders(nil, r.pool.SetLimit(r.now(), number))
}

// Tuning implements Backend.
func (r *Remote) Tuning() *Tuning {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, oldest := r.tuning.seen, 0
	if len(all.Checks) == mostChecks {
		oldest = r.tuning.count % mostChecks
	}
	all.Checks = append(append([]Check{}, all.Checks[oldest:]...), all.Checks[:oldest]...)
	return &all
}

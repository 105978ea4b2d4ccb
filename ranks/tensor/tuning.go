package tensor

import (
	"sync"
	"time"

	"siafu/lambda/pool"
)

// Queue returns how many tasks wait for a CPU, and whether tasks run at all.
type Queue func() (waiting int, working bool)

// Tuned is a backend whose number of invocations at once may follow the queue of tasks
// that wait for a CPU (Dorylus, OSDI'21, §6).
type Tuned interface {
	// Follow begins to look at the queue, until Close. It is called once.
	Follow(q Queue)
	// Tuning returns the history of the tuned number.
	Tuning() Tuning
}

// Follow has a backend follow a queue, if it can.
func Follow(b Backend, q Queue) {
	if t, ok := b.(Tuned); ok {
		t.Follow(q)
	}
}

// TuningOf is that of a backend, nil where it has no invocations.
func TuningOf(b Backend) *Tuning {
	t, ok := b.(Tuned)
	if !ok {
		return nil
	}
	all := t.Tuning()
	return &all
}

// Tuning is how the number of invocations at once has followed the queue.
//
//	1 <= Least <= First, Last <= Most
type Tuning struct {
	First, Last, Least, Most int
	Changes                  int
	Checks                   []Check // the newest of them, the oldest first
}

// Check is a look at the queue, and the number from then on.
type Check struct {
	At            time.Time
	Queue, Number int
}

// checkEvery is the time between two checks. It is about as long as an invocation takes:
// a queue has hardly felt a change of the number before, and four checks, which make a
// decision, are still shorter than an epoch that is worth functions.
const checkEvery = 100 * time.Millisecond

// mostChecks is how many are kept, those of an hour and three quarters.
const mostChecks = 1 << 16

// tuning is a Remote's, under its lock.
type tuning struct {
	tuner *pool.Tuner // nil: the number stays
	seen  Tuning
	count int // of checks
	ended sync.WaitGroup
}

// Tune lets a tuner decide how many invocations there are at once. It is called before
// Follow.
func (r *Remote) Tune(t *pool.Tuner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tuning.tuner = t
	r.begin(t.Number())
	r.applyOrders(nil, r.pool.SetLimit(r.now(), t.Number()))
}

// begin takes the first number of invocations at once.
func (r *Remote) begin(n int) {
	r.tuning.seen = Tuning{First: n, Last: n, Least: n, Most: n}
}

// Follow implements Tuned.
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

// follow looks at the queue. Between two passes nothing waits because nothing is asked
// for, which says nothing of the number.
func (r *Remote) follow(q Queue) {
	if waiting, working := q(); working {
		r.check(waiting)
	}
}

// check takes the size of the queue.
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

// Tuning implements Tuned.
func (r *Remote) Tuning() Tuning {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, oldest := r.tuning.seen, 0
	if len(all.Checks) == mostChecks {
		oldest = r.tuning.count % mostChecks
	}
	all.Checks = append(append([]Check{}, all.Checks[oldest:]...), all.Checks[:oldest]...)
	return all
}

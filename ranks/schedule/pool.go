package schedule

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"siafu/internal/mapped"
)

// Flow decides what a Pool runs. One worker at a time calls its methods, except Run.
type Flow interface {
	// Next returns a task that may run now, once.
	Next() (Task, bool)
	// Run runs a task on a worker, concurrently with other tasks. If done is false, the task
	// runs elsewhere, and the caller of Pool.Complete reports its end.
	Run(worker int, t Task) (done bool, err error)
	// Done records that a task has run.
	Done(t Task) error
	// Poll processes messages of other ranks without waiting, and reports whether there
	// were any.
	Poll() (bool, error)
	// Wait returns when Poll will find a message, or with an error when other ranks take too
	// long. It is called while no task runs or may run, without the lock of other methods, and
	// changes nothing that they read.
	Wait() error
	// Listens reports whether other ranks may send something now.
	Listens() bool
	// Awaited returns the next event that other ranks must trigger, if any.
	Awaited() (Task, bool)
	// Waiting returns the number of tasks that wait for a worker.
	Waiting() int
	// Idle records that a worker had no task to run while t was awaited.
	Idle(worker int, t Task, began, ended time.Time)
	// Finished reports whether no further task will run.
	Finished() bool
}

// Pool has the workers of a rank. They sleep between two calls of Run.
type Pool struct {
	workers int
	wake    chan Flow // nil ends a worker
	done    sync.WaitGroup

	mu      sync.Mutex
	flow    Flow       // the running one
	idle    *sync.Cond // signals workers without a task
	asleep  int
	running int  // tasks
	handed  int  // tasks that run elsewhere
	polling bool // a worker polls for messages
	err     error
	waited  []atomic.Int64 // by worker: idle nanoseconds
}

// NewPool starts workers-1 goroutines, because the caller of Run is a worker too. Close ends them.
func NewPool(workers int) *Pool {
	p := &Pool{workers: max(workers, 1)}
	p.wake = make(chan Flow, p.workers)
	p.idle = sync.NewCond(&p.mu)
	p.waited = make([]atomic.Int64, p.workers)
	for w := range p.workers - 1 {
		go p.serve(w + 1)
	}
	return p
}

// Workers returns the number of workers, the caller included.
func (p *Pool) Workers() int { return p.workers }

// Close ends the workers. The Pool must not be used again.
func (p *Pool) Close() { close(p.wake) }

// TakeWaited returns the mean idle time of the workers since the last call, before the end of a
// flow.
func (p *Pool) TakeWaited() time.Duration {
	sum := int64(0)
	for w := range p.waited {
		sum += p.waited[w].Swap(0)
	}
	return time.Duration(sum / int64(p.workers))
}

// AddWaited adds idle time that TakeWaited has returned.
func (p *Pool) AddWaited(d time.Duration) { p.waited[0].Add(int64(d) * int64(p.workers)) }

func (p *Pool) serve(worker int) {
	for {
		f := p.next()
		if f == nil {
			return
		}
		p.work(worker, f)
		p.done.Done()
	}
}

// next returns the next flow, nil after Close. The next one often follows at once, and to wake a
// worker that sleeps takes as long as a task of a small graph.
func (p *Pool) next() Flow {
	for began := time.Now(); time.Since(began) < restless; runtime.Gosched() {
		select {
		case f := <-p.wake:
			return f
		default:
		}
	}
	return <-p.wake
}

// withdraw takes back the calls of workers that have not come.
func (p *Pool) withdraw() {
	for {
		select {
		case <-p.wake:
			p.done.Done()
		default:
			return
		}
	}
}

// Run runs the tasks of f until it has finished. If a task fails, Run returns its error when the
// running tasks have ended.
func (p *Pool) Run(f Flow) error {
	p.setFlow(f)
	defer p.setFlow(nil)
	p.err, p.handed = nil, 0
	p.done.Add(p.workers - 1)
	for range p.workers - 1 {
		p.wake <- f
	}
	p.work(0, f)
	p.withdraw()
	p.done.Wait()
	return p.err
}

// setFlow sets the running flow, nil for none.
func (p *Pool) setFlow(f Flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flow = f
}

// Queue returns the number of tasks that wait for a worker, and whether a flow runs. It may be
// called at any time.
func (p *Pool) Queue() (waiting int, runs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flow == nil {
		return 0, false
	}
	return p.flow.Waiting(), true
}

// Complete records the end of a task that ran elsewhere. finish stores its results, with
// exclusive use of f, and returns the task. Call Complete during Run.
func (p *Pool) Complete(f Flow, finish func() (Task, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handed--
	t, err := finish()
	if err == nil {
		err = f.Done(t)
	}
	p.fail(err)
	p.idle.Broadcast()
}

// work runs the tasks of f on one worker until f has finished or a task fails.
func (p *Pool) work(worker int, f Flow) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // pages of files may be unreadable
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := idleSpan{worker: worker}
	for p.err == nil && !f.Finished() {
		if t, ok := f.Next(); ok {
			p.endIdle(&idle, f)
			p.run(f, worker, t)
			continue
		}
		idle.begin(f)
		if p.polling {
			p.sleep()
		} else {
			p.poll(f, &idle)
		}
	}
	p.endIdle(&idle, f)
	p.idle.Broadcast()
}

// idleSpan is a time span in which a worker has no task to run.
type idleSpan struct {
	worker int
	began  time.Time // zero outside of a span
	polls  int       // that found no message
	task   Task
	known  bool // task is the awaited one
}

func (i *idleSpan) begin(f Flow) {
	if i.began.IsZero() {
		i.began = time.Now()
	}
	if !i.known {
		i.task, i.known = f.Awaited()
	}
}

// endIdle counts the span, if there is one.
func (p *Pool) endIdle(i *idleSpan, f Flow) {
	if i.began.IsZero() {
		return
	}
	ended := time.Now()
	p.waited[i.worker].Add(int64(ended.Sub(i.began)))
	if i.known {
		f.Idle(i.worker, i.task, i.began, ended)
	}
	*i = idleSpan{worker: i.worker}
}

// run runs a task without the lock, and polls for messages after it.
func (p *Pool) run(f Flow, worker int, t Task) {
	if p.asleep > 0 {
		p.idle.Signal() // another task may be ready
	}
	p.running++
	done, err := p.runUnlocked(f, worker, t)
	p.running--
	switch {
	case err != nil:
	case done:
		err = f.Done(t)
	default:
		p.handed++
	}
	if err == nil && !p.polling {
		_, err = f.Poll()
	}
	p.fail(err)
}

// runUnlocked runs a task without the lock, and takes the lock again even after a panic. If the
// system refuses memory, that is the task's error.
func (p *Pool) runUnlocked(f Flow, worker int, t Task) (done bool, err error) {
	p.mu.Unlock()
	defer p.mu.Lock()
	defer mapped.Catch(&err)
	return f.Run(worker, t)
}

// fail stores the first error.
func (p *Pool) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *Pool) sleep() {
	p.asleep++
	p.idle.Wait()
	p.asleep--
}

// A worker without a task polls eagerPolls times at full speed, and then pauses between two polls.
// While no task runs at all, Flow.Wait waits instead.
const (
	eagerPolls = 400
	rest       = 20 * time.Microsecond
	restless   = 200 * time.Microsecond // of a worker between two calls of Run
)

// poll polls for messages once. If only tasks elsewhere are missing, Complete wakes the waiting
// worker.
func (p *Pool) poll(f Flow, i *idleSpan) {
	found, err := f.Poll()
	if err == nil && !found && p.running == 0 {
		switch {
		case p.handed == 0:
			p.pollUnlocked(func() { err = f.Wait() })
			found = true
		case !f.Listens():
			p.sleep()
			return
		}
	}
	p.fail(err)
	if found || err != nil {
		return
	}
	i.polls++
	p.pollUnlocked(func() { pause(i.polls) })
}

// pause sleeps between two polls.
func pause(polls int) {
	if polls < eagerPolls {
		runtime.Gosched()
	} else {
		time.Sleep(rest)
	}
}

// pollUnlocked runs do without the lock, while no other worker polls.
func (p *Pool) pollUnlocked(do func()) {
	p.polling = true
	p.mu.Unlock()
	do()
	p.mu.Lock()
	p.polling = false
}

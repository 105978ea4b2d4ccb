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

// Pool has the workers of a rank. They sleep between two calls of Run. A worker without a task assists
// the workers that run tasks.
type Pool struct {
	workers int
	assist  Assist
	most    int       // workers that look for work at once: one per processor
	wake    chan Flow // nil ends a worker
	done    sync.WaitGroup
	due     atomic.Bool // a worker that looks for work must take the lock

	mu      sync.Mutex
	flow    Flow       // the running one
	idle    *sync.Cond // signals workers without a task
	asleep  int
	looking int  // workers for tasks to assist
	running int  // tasks
	handed  int  // tasks that run elsewhere
	polling bool // a worker polls for messages
	err     error
	waited  []atomic.Int64 // by worker: idle nanoseconds
}

// Assist does a small part of a task that another worker runs, and returns the time that it took, 0 if no
// task can be divided now. Results must not depend on it. Nil: tasks cannot be divided.
type Assist func(worker int) time.Duration

// NewPool starts workers-1 goroutines, because the caller of Run is a worker too. Close ends them.
func NewPool(workers int, assist Assist) *Pool {
	p := &Pool{workers: max(workers, 1), assist: assist, most: runtime.GOMAXPROCS(0)}
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
// worker that sleeps takes as long as a task of a small graph. Workers beyond the number of processors sleep at once.
func (p *Pool) next() Flow {
	for began := time.Now(); p.workers <= p.most && time.Since(began) < restless; runtime.Gosched() {
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
	p.notify(f)
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
		switch {
		case !p.polling && (p.running == 0 || f.Listens()):
			p.poll(f, &idle)
		case p.mayLook():
			p.look(f, &idle)
		default:
			p.sleep(f)
		}
	}
	p.endIdle(&idle, f)
	p.notify(f)
	p.idle.Broadcast()
}

// mayLook reports whether one more worker may look for work: a task runs, and a processor is free.
func (p *Pool) mayLook() bool {
	busy := p.running + p.looking
	if p.polling {
		busy++
	}
	return p.assist != nil && p.running > 0 && busy < p.most
}

// look assists the workers that run tasks until a task may be ready.
func (p *Pool) look(f Flow, i *idleSpan) {
	p.looking++
	p.fail(p.unlocked(f, func() error {
		for polls := 0; !p.due.Load(); polls++ {
			if p.assists(i) {
				polls = 0
			} else {
				pause(polls)
			}
		}
		return nil
	}))
	p.looking--
}

// assists runs a part of another worker's task, if possible. Its time is not idle time.
func (p *Pool) assists(i *idleSpan) bool {
	if p.assist == nil {
		return false
	}
	took := p.assist(i.worker)
	i.began = i.began.Add(took)
	return took > 0
}

// wanted reports whether a worker without a task has something to do that needs the lock.
func (p *Pool) wanted(f Flow) bool { return f.Waiting() > 0 || !p.polling && f.Listens() }

// notify sets due. Every holder of the lock calls it before it releases the lock.
func (p *Pool) notify(f Flow) {
	due := p.err != nil || p.running == 0 || p.wanted(f) || f.Finished()
	if due != p.due.Load() {
		p.due.Store(due)
	}
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
	p.running++
	if p.asleep > 0 && (p.wanted(f) || p.mayLook()) {
		p.idle.Signal()
	}
	done := false
	err := p.unlocked(f, func() (err error) {
		done, err = f.Run(worker, t)
		return err
	})
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

// unlocked calls do without the lock, and takes the lock again even after a panic. If the system refuses memory
// or a page of a file, that is the error.
func (p *Pool) unlocked(f Flow, do func() error) (err error) {
	p.notify(f)
	p.mu.Unlock()
	defer p.mu.Lock()
	defer mapped.Catch(&err)
	return do()
}

// fail stores the first error.
func (p *Pool) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *Pool) sleep(f Flow) {
	p.asleep++
	p.notify(f)
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
			err = p.pollUnlocked(f, f.Wait)
			found = true
		case !f.Listens():
			p.sleep(f)
			return
		}
	}
	p.fail(err)
	if found || err != nil {
		return
	}
	i.polls++
	p.fail(p.pollUnlocked(f, func() error {
		if !p.assists(i) {
			pause(i.polls)
		}
		return nil
	}))
}

// pause sleeps between two polls.
func pause(polls int) {
	if polls < eagerPolls {
		runtime.Gosched()
	} else {
		time.Sleep(rest)
	}
}

// pollUnlocked calls do without the lock, while no other worker polls.
func (p *Pool) pollUnlocked(f Flow, do func() error) error {
	p.polling = true
	err := p.unlocked(f, do)
	p.polling = false
	return err
}

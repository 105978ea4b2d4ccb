package tensor

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"siafu/graph/fault"
	"siafu/kernels"
	"siafu/kernels/task"
)

// Transport carries tasks to those who do them, and results back. It may lose,
// delay, double or damage either.
type Transport interface {
	// Send sends off a task. It does not wait for the result, and may keep message.
	Send(message []byte) error
	// Results brings what comes back.
	Results() <-chan []byte
	// Close ends the transport, after which nothing comes.
	Close() error
}

// Failing is a Transport that knows of attempts that will have no result.
type Failing interface {
	Failures() <-chan task.Failure
}

// Remote has tasks done elsewhere. A task whose result stays away is sent again, as
// the next attempt; the first good result counts, and those that come later are
// dropped. Where the transport says that an attempt has failed, the next one waits a
// while that doubles with each (backoff), so that what fails at once does not begin
// all the time.
type Remote struct {
	transport Transport
	wishes    Wishes
	patience  time.Duration
	attempts  int
	finished  chan Finished
	closed    chan struct{}
	heard     chan struct{} // no result is looked at any more

	mu      sync.Mutex
	pending map[task.Name]*pending // by the name of the task
	counts  Counts
}

// pending is a task without a result.
type pending struct {
	task    *task.Task
	ops     kernels.Ops
	attempt int
	again   *time.Timer
}

// Counts say what a Remote has seen.
type Counts struct {
	Sent, Again      int   // tasks, and attempts after the first
	Failed           int   // attempts of which the transport said so
	Dropped, Damaged int   // results: of tasks that were done, and that could not be used
	Bytes            int64 // of messages
}

// NewRemote has tasks done over a transport. patience is how long an attempt may take,
// and attempts how many there may be.
func NewRemote(t Transport, w Wishes, patience time.Duration, attempts int) *Remote {
	r := &Remote{
		transport: t, wishes: w, patience: patience, attempts: attempts, finished: make(chan Finished),
		closed: make(chan struct{}), heard: make(chan struct{}), pending: map[task.Name]*pending{},
	}
	go r.hear()
	return r
}

// Start implements Backend.
func (r *Remote) Start(own kernels.Ops, t *task.Task) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &pending{task: t, ops: own}
	r.pending[t.Name.Of()] = p
	r.counts.Sent++
	return false, r.send(p)
}

// send sends the next attempt at a task, with the lock.
func (r *Remote) send(p *pending) error {
	p.attempt++
	p.task.Attempt = p.attempt
	message := p.task.Encode(nil, p.ops)
	r.counts.Bytes += int64(len(message))
	name := p.task.Name
	p.again = time.AfterFunc(r.patience, func() {
		r.retry(name, fault.New(fault.Runtime, "train", "", "%s has had no result after %v", name, r.patience))
	})
	return r.transport.Send(message)
}

// retry sends a task again whose result has not come; why is the end of the run where
// that was the last attempt.
func (r *Remote) retry(name task.Name, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.awaited(name)
	if p == nil {
		return
	}
	r.counts.Again++
	if p.attempt < r.attempts {
		if why = r.send(p); why == nil {
			return
		}
	}
	r.giveUp(p, why)
}

// awaited is the task whose newest attempt has a name, nil where that is not awaited;
// with the lock.
func (r *Remote) awaited(name task.Name) *pending {
	if p := r.pending[name.Of()]; p != nil && p.attempt == name.Attempt {
		return p
	}
	return nil
}

// giveUp ends a task without a result, with the lock.
func (r *Remote) giveUp(p *pending, why error) {
	p.again.Stop()
	delete(r.pending, p.task.Name.Of())
	go r.tell(Finished{Task: p.task.Name, Err: why})
}

// leastPause and mostPause bound the wait between a failure and the next attempt.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// backoff is the wait after so many attempts: with jitter, so that tasks that failed
// together do not come back together.
func backoff(attempts int) time.Duration {
	most := min(leastPause<<min(attempts-1, 16), mostPause)
	return most/2 + rand.N(most/2)
}

// fail takes that an attempt has failed.
func (r *Remote) fail(f task.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Failed++
	p := r.awaited(f.Name)
	if p == nil {
		return
	}
	err := fault.New(fault.KindOf(f.Err), "train", "", "%s: %v", f.Name, f.Err)
	if f.Final {
		r.giveUp(p, err)
		return
	}
	p.again.Stop()
	p.again = time.AfterFunc(backoff(p.attempt), func() { r.retry(f.Name, err) })
}

// hear takes results until the transport ends.
func (r *Remote) hear() {
	defer close(r.heard)
	var failures <-chan task.Failure
	if t, ok := r.transport.(Failing); ok {
		failures = t.Failures()
	}
	for {
		select {
		case <-r.closed:
			return
		case f := <-failures:
			r.fail(f)
		case result, ok := <-r.transport.Results():
			if !ok {
				return
			}
			if name, ok := r.accept(result); ok {
				r.tell(Finished{Task: name})
			}
		}
	}
}

// accept puts a result into its place, if it is the first one of its task.
func (r *Remote) accept(result []byte) (task.Name, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, err := task.NameOf(result)
	p := r.pending[name.Of()]
	switch {
	case err != nil:
		r.counts.Damaged++
	case p == nil:
		r.counts.Dropped++
	case p.task.Accept(result, p.ops) != nil:
		r.counts.Damaged++
	default:
		p.again.Stop()
		delete(r.pending, name.Of())
		return name, true
	}
	return name, false
}

// tell hands on that a task has ended.
func (r *Remote) tell(f Finished) {
	select {
	case r.finished <- f:
	case <-r.closed:
	}
}

// Finished implements Backend.
func (r *Remote) Finished() <-chan Finished { return r.finished }

// Wishes implements Backend.
func (r *Remote) Wishes() Wishes { return r.wishes }

// Invocations implements Invoking: those of the transport.
func (r *Remote) Invocations() int64 {
	if t, ok := r.transport.(Invoking); ok {
		return t.Invocations()
	}
	return 0
}

// Counts are those up to now.
func (r *Remote) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Close implements Backend.
func (r *Remote) Close() {
	r.mu.Lock()
	for name, p := range r.pending {
		p.again.Stop()
		delete(r.pending, name)
	}
	r.mu.Unlock()
	close(r.closed)
	<-r.heard
	_ = r.transport.Close() // nobody waits for anything of it
}

// String tells what has been seen.
func (c Counts) String() string {
	return fmt.Sprintf("%d tasks, %d sent again, %d failed, %d results dropped, %d damaged, %d bytes", c.Sent, c.Again, c.Failed, c.Dropped, c.Damaged, c.Bytes)
}

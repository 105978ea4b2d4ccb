package tensor

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"siafu/internal/fault"
	"siafu/kernels"
	"siafu/kernels/task"
	"siafu/lambda/bill"
	"siafu/lambda/pool"
)

// Transport carries tasks to remote executors, and results back. A Transport may lose, delay,
// duplicate or damage tasks and results.
type Transport interface {
	// Send sends an attempt at a task. It does not wait for the result, and may retain
	// message. An error that wraps a pool.Failure counts as a failed attempt; any other error
	// ends the run. In an answer, an error without a pool.Failure counts as pool.Crashed.
	Send(message []byte) error
	// Answers returns the channel of results of attempts.
	Answers() <-chan task.Answer
	// Close ends the transport. No answers arrive after it.
	Close() error
}

// AheadInvoker is a Transport that can invoke a function before the task for it is ready.
type AheadInvoker interface {
	// InvokeAhead announces an attempt that may be sent later. It does not wait. Answers to
	// the attempt may arrive after the call.
	InvokeAhead(attempt task.Name) error
}

// Remote runs tasks on remote executors. A pool decides the concurrency, the timeout of a
// result, when a task is sent again as the next attempt, and when the CPU runs the task.
// Without fallback to the CPU (Breaker.Failures is 0) the run ends in that case, as after a
// permanent failure. The first valid result of a task is used; later results are dropped.
type Remote struct {
	Plain
	transport Transport
	options   RequestOptions
	fallsBack bool         // falls back to the CPU
	report    func(string) // prints messages for the user
	began     time.Time
	finished  chan Finished
	closed    chan struct{}
	drained   chan struct{}  // closed when results are no longer read
	cpuTasks  sync.WaitGroup // tasks running on the CPU
	cpu       sync.Mutex     // held by the running CPU task

	mu      sync.Mutex
	pool    *pool.Pool[task.Name]  // by task name
	due     *time.Timer            // for the pool's next action
	pending map[task.Name]*pending // unfinished tasks of the pool, by name
	cpuOps  kernels.Ops            // workspace of tasks that fall back to the CPU
	stopped bool                   // no more sends
	counts  Counts
	account account
	tuning  tuning

	aheadInvoker  AheadInvoker      // the transport, nil if it cannot invoke functions ahead of their tasks
	aheadAttempts map[task.Name]int // attempts invoked ahead and not sent yet, by task name
	takenSpent    Spent             // totals at the last TakeSpent; Usage is unused
}

// pending is a task without a result.
type pending struct {
	task *task.Task
	ops  kernels.Ops
}

// Counts are the statistics of a Remote.
type Counts struct {
	Sent, Again      int   // tasks, and attempts after the first
	Failed           int   // attempts that the transport reported as failed
	Dropped, Damaged int   // results of finished tasks, and unusable results
	Bytes, Back      int64 // of messages, and of results
	Pool             pool.Counts
}

// NewRemote runs tasks over a transport, with a pool that has the settings s. It calls say
// when the CPU takes over, and when it stops doing so.
func NewRemote(t Transport, w RequestOptions, s pool.Settings, say func(string)) *Remote {
	r := &Remote{
		transport: t, options: w, fallsBack: s.Breaker.Failures > 0, report: say, began: time.Now(), finished: make(chan Finished),
		aheadAttempts: map[task.Name]int{},
		closed:        make(chan struct{}), drained: make(chan struct{}), pool: pool.New[task.Name](s), pending: map[task.Name]*pending{},
	}
	r.aheadInvoker, r.options.Ahead = t.(AheadInvoker)
	r.begin(s.Limit)
	r.account = account{tariff: bill.Tariff{Step: time.Millisecond}, limit: s.InvocationLimit, life: s.InvocationLimit,
		open: map[task.Name]*attempt{}}
	r.due = time.AfterFunc(time.Hour, r.tick)
	r.due.Stop()
	go r.readAnswers()
	return r
}

// Charge sets the tariff of invocations and the function's time limit. Without Charge,
// invocations are charged by the millisecond, and the limit is the InvocationLimit of the pool's
// settings. Call Charge before Start.
func (r *Remote) Charge(t bill.Tariff, limit time.Duration) {
	r.account.tariff, r.account.limit = t, limit
}

// Start implements Backend.
func (r *Remote) Start(own kernels.Ops, t *task.Task) (bool, error) {
	r.mu.Lock()
	if r.fallsBack && r.cpuOps == nil {
		r.cpuOps = own.Fork()
	}
	p, name := &pending{task: t, ops: own}, t.Name.WithoutAttempt()
	r.pending[name] = p
	r.counts.Sent++
	refused := r.applyOrders(p, r.pool.Submit(r.now(), name, kind(name)))
	if !refused {
		refused = r.applyOrders(p, r.sendAhead(p))
	}
	r.mu.Unlock()
	if refused {
		t.Run(own)
	}
	return refused, nil
}

// kind returns the same number for tasks of about equal duration.
func kind(n task.Name) int {
	k := n.Layer<<8 | int(n.Stage)<<1
	if n.Train {
		k++
	}
	return k
}

func (r *Remote) now() time.Duration { return time.Since(r.began) }

// applyOrders executes the pool's orders, and reports whether the starting task must run on
// the CPU. Called with the lock.
func (r *Remote) applyOrders(starting *pending, orders []pool.Order[task.Name]) (refused bool) {
	for len(orders) > 0 && !r.stopped {
		o := orders[0]
		orders = orders[1:]
		switch p := r.pending[o.Task]; o.Do {
		case pool.Say:
			r.report(o.Reason)
		case pool.Invoke:
			if p == nil {
				orders = append(orders, r.beginAhead(o.Task, o.Attempt)...)
			} else {
				orders = append(orders, r.send(p, o.Attempt)...)
			}
		case pool.Local:
			delete(r.pending, o.Task)
			if p == starting && r.fallsBack {
				refused = true // the caller runs it
			} else {
				r.runOnCPU(p, o.Reason)
			}
		}
	}
	if at, ok := r.pool.Next(); ok && !r.stopped {
		r.due.Reset(at - r.now())
	} else {
		r.due.Stop()
	}
	return refused
}

// send sends an attempt at a task, with the lock.
func (r *Remote) send(p *pending, attempt int) []pool.Order[task.Name] {
	p.task.Attempt = attempt
	if attempt > 1 {
		r.counts.Again++
	}
	message := p.task.Encode(nil, p.ops)
	r.counts.Bytes += int64(len(message))
	err := r.transport.Send(message)
	if err == nil {
		r.account.begin(p.task.Name, r.now())
		return nil
	}
	failure, detail := pool.NotStarted, err.Error()
	if !errors.As(err, &failure) {
		return r.giveUp(p.task.Name, err)
	}
	if detail == failure.Error() {
		detail = ""
	}
	return r.pool.Failed(r.now(), p.task.Name.WithoutAttempt(), attempt, failure, detail)
}

// giveUp ends a task, and with it the run, because no attempt can succeed. Called with the
// lock.
func (r *Remote) giveUp(name task.Name, err error) []pool.Order[task.Name] {
	delete(r.pending, name.WithoutAttempt())
	first, orders := r.pool.Result(r.now(), name.WithoutAttempt(), name.Attempt) // no further results are needed
	if first {
		go r.notifyFinished(Finished{Task: name, Err: fault.New(fault.KindOf(err), "train", "", "%s: %v", name, err)})
	}
	return orders
}

// fail handles a failed attempt.
func (r *Remote) fail(f task.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Failed++
	if r.aheadAttempts[f.Name.WithoutAttempt()] == f.Attempt {
		delete(r.aheadAttempts, f.Name.WithoutAttempt())
	}
	failure := pool.Crashed
	if errors.As(f.Err, &failure); failure == pool.Throttled {
		r.account.drop(f.Name)
	} else {
		r.account.markWastedUnlessUsed(f.Name, r.now())
	}
	if f.Final && r.pending[f.Name.WithoutAttempt()] != nil {
		r.applyOrders(nil, r.giveUp(f.Name, f.Err))
		return
	}
	r.applyOrders(nil, r.pool.Failed(r.now(), f.Name.WithoutAttempt(), f.Attempt, failure, f.Err.Error()))
}

// runOnCPU runs a task without a remote result on the CPU, or ends it with an error. Called
// with the lock.
func (r *Remote) runOnCPU(p *pending, reason string) {
	end := Finished{Task: p.task.Name}
	r.cpuTasks.Add(1)
	go func() {
		defer r.cpuTasks.Done()
		if r.fallsBack {
			r.cpu.Lock()
			p.ops.Borrow(r.cpuOps)
			p.task.Run(p.ops)
			r.cpu.Unlock()
		} else {
			end.Err = fault.New(fault.Runtime, "train", "", "%s: %s", end.Task, reason)
		}
		r.notifyFinished(end)
	}()
}

// tick executes due actions of the pool.
func (r *Remote) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applyOrders(nil, r.pool.Tick(r.now()))
}

// readAnswers handles answers until the transport ends.
func (r *Remote) readAnswers() {
	defer close(r.drained)
	for {
		select {
		case <-r.closed:
			return
		case a, ok := <-r.transport.Answers():
			if !ok {
				return
			}
			r.handleAnswer(a)
		}
	}
}

func (r *Remote) handleAnswer(a task.Answer) {
	if a.Spent != nil {
		r.mu.Lock()
		r.account.addUsage(a.Spent)
		r.mu.Unlock()
	}
	if a.Failed != nil {
		r.fail(*a.Failed)
	}
	if a.Result == nil {
		return
	}
	if name, ok := r.accept(a.Result); ok {
		r.notifyFinished(Finished{Task: name})
	}
}

// accept stores a result if it is the first of its task.
func (r *Remote) accept(result []byte) (name task.Name, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Back += int64(len(result))
	name, err := task.NameOf(result)
	if err != nil { // unknown attempt: it will time out
		r.counts.Damaged++
		return name, false
	}
	var orders []pool.Order[task.Name]
	key := name.WithoutAttempt()
	p := r.pending[key]
	if r.pool.Wants(key, name.Attempt) {
		err = p.task.Accept(result, p.ops)
	} else {
		r.counts.Dropped++
	}
	if err != nil {
		r.counts.Damaged++
		orders = r.pool.Failed(r.now(), key, name.Attempt, pool.Crashed, err.Error())
	} else if first, orders = r.pool.Result(r.now(), key, name.Attempt); first {
		delete(r.pending, key)
		r.account.markUsed(name, r.now())
	}
	r.account.markWastedUnlessUsed(name, r.now())
	r.applyOrders(nil, orders)
	return name, first
}

// notifyFinished reports the end of a task.
func (r *Remote) notifyFinished(f Finished) {
	select {
	case r.finished <- f:
	case <-r.closed:
	}
}

// Finished implements Backend.
func (r *Remote) Finished() <-chan Finished { return r.finished }

// RequestOptions implements Backend.
func (r *Remote) RequestOptions() RequestOptions { return r.options }

// Invocations implements Invoking. Rejected invocations do not count.
func (r *Remote) Invocations() int64 {
	n := r.Counts().Pool
	return int64(n.Invoked - n.Throttled)
}

// TakeSpent implements Charging.
func (r *Remote) TakeSpent() Spent {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account.expire(r.now())
	n := r.pool.Counts()
	now := Spent{Invocations: int64(n.Invoked - n.Throttled), Again: int64(r.counts.Again), Out: r.counts.Bytes, Back: r.counts.Back}
	since := Spent{
		now.Invocations - r.takenSpent.Invocations, now.Again - r.takenSpent.Again,
		now.Out - r.takenSpent.Out, now.Back - r.takenSpent.Back, r.account.usage,
	}
	r.takenSpent, r.account.usage = now, bill.Usage{}
	return since
}

// Settle implements Charging.
func (r *Remote) Settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account.settle()
}

// Counts returns the current statistics.
func (r *Remote) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts
	c.Pool = r.pool.Counts()
	return c
}

// Close implements Backend.
func (r *Remote) Close() {
	r.mu.Lock()
	r.stopped = true
	r.due.Stop()
	r.mu.Unlock()
	close(r.closed)
	<-r.drained
	r.tuning.ended.Wait()
	r.cpuTasks.Wait()
	if r.cpuOps != nil {
		r.cpuOps.Close()
	}
	_ = r.transport.Close() // no caller waits for its result
}

// String formats the statistics.
func (c Counts) String() string {
	return fmt.Sprintf("%d tasks, %d sent again, %d failed, %d results dropped, %d damaged, %d bytes", c.Sent, c.Again, c.Failed,
		c.Dropped, c.Damaged, c.Bytes)
}

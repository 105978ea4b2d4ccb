package tensor

import (
	"errors"

	"siafu/kernels/task"
	"siafu/lambda/pool"
)

// InvokeAhead enables early invocations for announced tasks, if the transport supports them.
// It is called before Start.
func (r *Remote) InvokeAhead() {
	r.early, r.options.Ahead = r.transport.(EarlyInvoker)
}

// Expect implements Backend.
func (r *Remote) Expect(name task.Name) {
	if r.early == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applyOrders(nil, r.pool.Expect(r.now(), name, kind(name)))
}

// prepare begins an attempt at a task that has not started. Called with the lock.
func (r *Remote) prepare(name task.Name, attempt int) []pool.Order[task.Name] {
	of := name
	name.Attempt = attempt
	err := r.early.InvokeAhead(name)
	if err == nil {
		r.account.begin(name, r.now())
		r.prepared[of] = attempt
		return nil
	}
	why := pool.NotStarted
	errors.As(err, &why)
	return r.pool.Failed(r.now(), of, attempt, why, err.Error())
}

// sendPrepared sends the task of an early attempt that is still active. Called with the lock.
func (r *Remote) sendPrepared(p *pending) []pool.Order[task.Name] {
	name := p.task.Name.Of()
	attempt, ok := r.prepared[name]
	delete(r.prepared, name)
	if !ok || !r.pool.Wants(name, attempt) {
		return nil
	}
	return r.send(p, attempt)
}

package tensor

import (
	"errors"

	"siafu/kernels/task"
	"siafu/lambda/pool"
)

// Expect implements Backend.
func (r *Remote) Expect(name task.Name) {
	if r.aheadInvoker == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applyOrders(nil, r.pool.Expect(r.now(), name, kind(name)))
}

// beginAhead invokes a function for a task that has not started. Called with the lock.
func (r *Remote) beginAhead(name task.Name, attempt int) []pool.Order[task.Name] {
	key := name
	name.Attempt = attempt
	err := r.aheadInvoker.InvokeAhead(name)
	if err == nil {
		r.account.begin(name, r.now())
		r.aheadAttempts[key] = attempt
		return nil
	}
	failure := pool.NotStarted
	errors.As(err, &failure)
	return r.pool.Failed(r.now(), key, attempt, failure, err.Error())
}

// sendAhead sends the task of an attempt that was invoked ahead and is still active. Called with the
// lock.
func (r *Remote) sendAhead(p *pending) []pool.Order[task.Name] {
	name := p.task.Name.WithoutAttempt()
	attempt, ok := r.aheadAttempts[name]
	delete(r.aheadAttempts, name)
	if !ok || !r.pool.Wants(name, attempt) {
		return nil
	}
	return r.send(p, attempt)
}

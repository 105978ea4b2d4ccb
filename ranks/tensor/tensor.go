// Package tensor is where tensor tasks run (Dorylus, OSDI'21, §3: computation separation). The
// engine passes a task to a Backend, independent of where and when the task runs.
package tensor

import (
	"siafu/kernels"
	"siafu/kernels/task"
)

// Backend runs tensor tasks.
type Backend interface {
	// Start runs a task, or starts it elsewhere; done reports whether it has run. After a
	// start elsewhere the caller must not touch the task's data until Finished returns it.
	// own is for the task, and borrows the caller's workspace until Start returns. Several
	// workers may call it at once, for different intervals.
	Start(own kernels.Ops, t *task.Task) (done bool, err error)
	// Finished returns the channel that receives each task started elsewhere once, when it has
	// ended. It is nil if no task ever is. Senders do not block for long.
	Finished() <-chan Finished
	// RequestOptions returns how tasks are to be divided and sent.
	RequestOptions() RequestOptions
	// Close ends the backend. After it no task's data is written.
	Close()
}

// Invoking is a backend whose tasks are invocations of a function.
type Invoking interface {
	// Invocations returns the number of invocations so far. All of them are billed.
	Invocations() int64
}

// Invocations returns the number of invocations of a backend, 0 for a backend without any.
func Invocations(b Backend) int64 {
	if i, ok := b.(Invoking); ok {
		return i.Invocations()
	}
	return 0
}

// Finished is a task that has ended or failed.
type Finished struct {
	Task task.Name
	Err  error
}

// RequestOptions are a backend's options for its tasks.
type RequestOptions struct {
	// Fused joins stages without a gather between them into one task: the end of a layer and
	// the beginning of the next one, and across the loss (Dorylus, §6).
	Fused bool
	// Thin omits from a task the inputs that it can recompute from others
	// (rematerialisation; Dorylus, §6).
	Thin bool
	// Form is the wire format of tasks.
	Form task.Form
}

// CPU runs tasks on the calling worker.
type CPU struct{}

// Start implements Backend.
func (CPU) Start(own kernels.Ops, t *task.Task) (bool, error) {
	t.Run(own)
	return true, nil
}

// Finished implements Backend.
func (CPU) Finished() <-chan Finished { return nil }

// RequestOptions implements Backend.
func (CPU) RequestOptions() RequestOptions { return RequestOptions{} }

// Close implements Backend.
func (CPU) Close() {}

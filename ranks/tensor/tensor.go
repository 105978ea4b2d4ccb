// Package tensor is where tensor tasks run (Dorylus, OSDI'21, §3: computation
// separation). The engine hands a task to a Backend and does not know who does it,
// nor whether that is here and now.
package tensor

import (
	"siafu/kernels"
	"siafu/kernels/task"
)

// Backend does tensor tasks.
type Backend interface {
	// Start runs a task, or starts it elsewhere; done reports whether it has run. After a
	// start elsewhere the caller must not touch the task's data until Finished returns it.
	// own is for the task, and borrows the caller's workspace until Start returns. Several
	// workers may call it at once, for different intervals.
	Start(own kernels.Ops, t *task.Task) (done bool, err error)
	// Finished brings each task that was handed over once, when it has ended. It is
	// nil where none ever is. Nobody who ends a task waits long for the reader.
	Finished() <-chan Finished
	// Wishes are how the tasks are to be cut.
	RequestOptions() RequestOptions
	// Close ends the backend: no task that was handed over is written to any more.
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

// RequestOptions are how a backend wants its tasks.
type RequestOptions struct {
	// Fused puts stages into one task between which nothing is gathered: the end of
	// a layer and the beginning of the next one, and across the loss (Dorylus, §6).
	Fused bool
	// Thin omits from a task the inputs that it can recompute from others
	// (rematerialisation; Dorylus, §6).
	Thin bool
	// Form is how tasks travel.
	Form task.Form
}

// CPU does the work on the worker that asks.
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

// Package tensor is where tensor tasks run (Dorylus, OSDI'21, §3: computation separation). The
// engine passes a task to a Backend, independent of where and when the task runs.
package tensor

import (
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// Backend runs tensor tasks.
type Backend interface {
	// Start runs a task, or starts it elsewhere; done reports whether it has run. After a
	// start elsewhere the caller must not touch the task's data until Finished returns the
	// task. The task uses own, which borrows the caller's workspace until Start returns.
	// Several workers may call Start at once, for different intervals.
	Start(own kernels.Ops, t *task.Task) (done bool, err error)
	// Finished returns the channel that receives each task started elsewhere once, when it has
	// ended. It is nil if no task ever is. Senders do not block for long.
	Finished() <-chan Finished
	// RequestOptions returns how tasks are to be divided and sent.
	RequestOptions() RequestOptions
	// Close ends the backend. After Close the backend writes no task's data.
	Close()

	// Reserve allocates memory in a for the values of the tasks of some frames of a store and
	// their losses, if the backend stores values. Only tasks of these frames may then be
	// started. It must not be called while tasks run.
	Reserve(store *model.Store, frames []*model.Frame, losses []*task.Loss, a *mapped.Arena)
	// StoresValues reports whether Reserve allocates anything.
	StoresValues() bool
	// Drain waits until no task accesses reserved memory.
	Drain()
	// Kernel names the arithmetic of tasks; empty: that of the workers.
	Kernel() string

	// Expect announces a task that will start after the one that begins now (Dorylus, OSDI'21,
	// §6). The name has no attempt number. Only backends with RequestOptions.Ahead use it.
	Expect(name task.Name)
	// Follow lets the number of concurrent invocations follow the queue of tasks that wait for
	// a CPU (Dorylus, §6), until Close. Call it once.
	Follow(q Queue)
	// Tuning returns the history of the number of concurrent invocations, nil without
	// invocations.
	Tuning() *Tuning
	// Invocations returns the number of invocations so far. All of them are billed.
	Invocations() int64
	// TakeSpent returns the cost of invocations since the last call.
	TakeSpent() Spent
	// Settle charges outstanding invocations for their maximal remaining time, because
	// their results will be ignored.
	Settle()
}

// Plain implements the methods of a Backend that neither stores values nor invokes functions.
type Plain struct{}

// Reserve implements Backend.
func (Plain) Reserve(*model.Store, []*model.Frame, []*task.Loss, *mapped.Arena) {}

// StoresValues implements Backend.
func (Plain) StoresValues() bool { return false }

// Drain implements Backend.
func (Plain) Drain() {}

// Kernel implements Backend.
func (Plain) Kernel() string { return "" }

// Expect implements Backend.
func (Plain) Expect(task.Name) {}

// Follow implements Backend.
func (Plain) Follow(Queue) {}

// Tuning implements Backend.
func (Plain) Tuning() *Tuning { return nil }

// Invocations implements Backend.
func (Plain) Invocations() int64 { return 0 }

// TakeSpent implements Backend.
func (Plain) TakeSpent() Spent { return Spent{} }

// Settle implements Backend.
func (Plain) Settle() {}

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
	// Recompute omits from a message the inputs of a task that the receiver can recompute from
	// other inputs (rematerialisation; Dorylus, §6).
	Recompute bool
	// Form is the wire format of tasks.
	Form task.Form
	// Ahead means that announced tasks are invoked ahead (Backend.Expect).
	Ahead bool
}

// CPU runs tasks on the calling worker.
type CPU struct{ Plain }

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

// Package pool schedules invocations of a function that computes tensor tasks remotely
// (Dorylus, OSDI'21, §6). It decides how many invocations run at once, their timeouts,
// retries, which result counts, and when the CPU takes over. It only decides: events with
// their times go in, and orders come out, which the caller carries out. It has no clock,
// no goroutine and no I/O, so equal events produce equal orders.
//
// # Life of a task
//
// Submit registers a task. Expect registers a task before its input exists, so that a
// function is warm in time. The task waits for one of at most Limit slots, and an Invoke
// order starts attempt 1. Then one of these events follows:
//
//   - Result: the first result of any attempt ends the task. Later results are dropped.
//   - Failed, or the timeout of the attempt: the task waits for a slot again, for
//     the next attempt. A late attempt continues, keeps its slot, and may
//     still deliver the first result.
//   - After Attempts attempts, or while the breaker is open, a Local order ends the
//     task: the CPU computes it.
//
// So every submitted task ends once. An invocation also ends once: with a result, with a
// failure, or after InvocationLimit, which the service enforces. Until then it counts as
// running, so at most Limit invocations run.
//
// # Failures
//
// Failures of concurrent attempts have one cause. A failure therefore counts only if its
// attempt began after the last counted failure. Each counted failure halves the window of
// concurrent waits, and each result increases it by one. If invocations are throttled or
// do not start, no task is invoked until a pause is over. If an invocation crashes, only
// its task pauses. Pauses double with each consecutive failure and are sampled from their
// upper half (jitter). After Breaker.Failures consecutive counted failures the breaker
// opens: the CPU computes all tasks. After a rest, which grows in the same way, one task is
// invoked as a probe. The result of the probe closes the breaker. A function that never
// starts is therefore invoked about 2·Limit times, and then once per rest.
//
// The cost of a call is proportional to the number of open tasks and running invocations.
// No method is safe for concurrent use.
package pool

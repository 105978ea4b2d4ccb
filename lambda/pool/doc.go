// Package pool decides about invocations of a function that does tensor tasks
// elsewhere (Dorylus, OSDI'21, §6): how many are under way at once, how long one is
// waited for, when a task is invoked again, whose result counts, and when the CPU
// does the work instead. It decides and does nothing: an event goes in with its time,
// orders come out, and whoever asks carries them out. It has no clock, no goroutine
// and no I/O, so that the same events give the same orders.
//
// # A task's way
//
// Submit makes a task known, Expect does so before its input is there, so that a
// function is warm by then. It waits for one of at most Limit places, and an Invoke
// order makes attempt 1. Then one of these happens:
//
//   - Result: the first one of any attempt ends the task. Others are dropped.
//   - Failed, or the attempt's timeout passes: the task waits for a place again, for
//     the next attempt. An attempt that is late goes on, holds its place, and may
//     still bring the first result.
//   - After Attempts of them, or while the breaker is open, a Local order ends the
//     task: the CPU has to do it.
//
// So every task that is submitted ends once. An invocation ends once too: by a
// result, by a failure, or when Life is over, which the service itself sees to; until
// then it counts as running, so that never more than Limit are.
//
// # When things fail
//
// Failures of attempts that were under way together have one cause, so a failure
// counts only if its attempt began after the one that was counted before. Each that
// counts halves how many are waited for at once, and each result allows one more. Where
// invocations are throttled or do not start, nobody is invoked until a pause is over;
// where one crashes, its task pauses. Pauses double with each failure in a row and are
// drawn from their upper half. After Breaker.Failures that counted in a row the breaker opens: all
// goes to the CPU, and after a rest, which grows in the same way, one task is invoked
// as a probe. Its result closes the breaker. A function that never starts is
// therefore invoked about 2·Limit times, and then once a rest.
//
// Every call costs time in proportion to the tasks that are open or whose invocations
// still run. Nothing here is safe for several goroutines.
package pool

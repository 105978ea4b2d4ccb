package pool

import (
	"fmt"
	"time"
)

// Failure is the reason of a failed invocation. It is an error, for invokers to return.
type Failure uint8

// Failures.
const (
	Throttled  Failure = iota // the service rejected it without charge
	NotStarted                // the function did not start; charged
	Crashed                   // the function failed or returned a damaged result
	late                      // no result so far
)

func (f Failure) Error() string {
	return [...]string{"throttled", "not started", "crashed", "no result in time"}[f]
}

// Counts are numbers of invocations, each counted once:
//
// \tInvoked = Used + Dropped + Failed + Throttled + Lost + the running ones
//
// They are also numbers of tasks: Submitted = Used + Local + the open ones.
type Counts struct {
	Submitted int // tasks
	Invoked   int
	Used      int // results that were used
	Retried   int // used results of attempts after the first
	Dropped   int // results that arrived after the end of their task
	Failed    int // NotStarted and Crashed
	Throttled int
	Lost      int // no result within Settings.InvocationLimit
	Late      int // invocations that exceeded their timeout
	Local     int // tasks that the CPU computes
	Strays    int // results and failures of ended invocations, such as duplicates
	Opened    int // times that the breaker opened

	UsedTime   time.Duration // of Used
	WastedTime time.Duration // of Dropped, Failed and Lost
}

// Wasted returns the number of charged invocations without a used result.
func (c Counts) Wasted() int { return c.Dropped + c.Failed + c.Lost }

// String formats the counts.
func (c Counts) String() string {
	return fmt.Sprintf("%d invocations, %d results used, %d of them of later attempts, %d wasted, %d throttled, %d tasks left to the CPU",
		c.Invoked, c.Used, c.Retried, c.Wasted(), c.Throttled, c.Local)
}

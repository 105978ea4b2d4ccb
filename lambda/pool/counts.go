package pool

import (
	"fmt"
	"time"
)

// Failure is the reason of a failed invocation. It is an error, for invokers to return.
type Failure uint8

// Failures.
const (
	Throttled  Failure = iota // the service has rejected it, and charges nothing
	NotStarted                // the function did not start, which is charged
	Crashed                   // the function failed, or its result is damaged
	late                      // no result so far
)

func (f Failure) Error() string {
	return [...]string{"throttled", "not started", "crashed", "no result in time"}[f]
}

// Counts are of invocations, each counted once:
//
//	Invoked = Used + Dropped + Failed + Throttled + Lost + those that run
//
// and of tasks: Submitted = Used + Local + those that are open.
type Counts struct {
	Submitted int // tasks
	Invoked   int
	Used      int // results that counted
	Retried   int // of these, of attempts after the first
	Dropped   int // results that arrived after another one of their task, or after its end
	Failed    int // NotStarted and Crashed
	Throttled int
	Lost      int // no result in their whole life
	Late      int // of all these, late
	Local     int // tasks left to the CPU
	Strays    int // results and failures of invocations that had ended: duplicates
	Opened    int // times that the breaker opened

	UsedTime   time.Duration // of the invocations whose results counted
	WastedTime time.Duration // of Dropped, Failed and Lost
}

// Wasted returns the number of invocations that were paid for without a used result.
func (c Counts) Wasted() int { return c.Dropped + c.Failed + c.Lost }

// String formats the counts.
func (c Counts) String() string {
	return fmt.Sprintf("%d invocations, %d results used, %d of them of later attempts, %d wasted, %d throttled, %d tasks left to the CPU",
		c.Invoked, c.Used, c.Retried, c.Wasted(), c.Throttled, c.Local)
}

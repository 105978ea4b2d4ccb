//go:build mpi

package mpi

import (
	"sync/atomic"
	"time"
)

// After a rank is lost, Open MPI 4.1 sometimes blocks for ever in a call that never waits: a send over
// TCP fails, and the handler of the failure takes a lock that its caller holds. With messages in transit
// between hosts, one rank was blocked after 2 of 10 losses. It was after 1 of 10 when the library was
// started without thread safety, and one thread at a time entered it.

// entered has the times at which threads have entered the library, 0 for free places.
var entered [64]atomic.Int64

// observed is set if calls are recorded in entered.
var observed atomic.Bool

// enter records that this thread enters the library. Pass the result to leave.
func enter() int {
	if !observed.Load() {
		return -1
	}
	now := time.Now().UnixNano()
	for i := range entered {
		if entered[i].CompareAndSwap(0, now) {
			return i
		}
	}
	return -1
}

func leave(place int) {
	if place >= 0 {
		entered[place].Store(0)
	}
}

// Observe calls stuck, once, if a call of the library that never waits takes longer than limit. It
// lasts until the process ends.
func Observe(limit time.Duration, stuck func()) {
	observed.Store(true)
	go func() {
		for range time.Tick(limit / 8) {
			before := time.Now().Add(-limit).UnixNano()
			for i := range entered {
				if at := entered[i].Load(); at != 0 && at < before {
					stuck()
					return
				}
			}
		}
	}()
}

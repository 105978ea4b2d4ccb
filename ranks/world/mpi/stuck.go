//go:build mpi

package mpi

import (
	"sync/atomic"
	"time"
)

// Losses of connections that lost.c does not handle may block Open MPI 4.1 for ever, in a call that never
// waits: for example if its components are part of its main library.

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

// Observe makes the library continue after lost connections to other hosts: messages to and from the
// ranks there remain in transit. It calls stuck, once, if a call that never waits takes longer than
// limit. Both last until the process ends.
func Observe(limit time.Duration, stuck func()) {
	_ = outlive() // without free descriptors, a lost connection may end this rank
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

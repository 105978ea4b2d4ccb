package local

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Faults are shares of the invocations, from 0 to 1, that go wrong. Equal seeds do the
// same to the n-th invocation.
type Faults struct {
	Seed  uint64
	Crash float64       // the sandbox ends when it has got its task
	Late  float64       // the answer waits for Delay
	Lose  float64       // the sandbox never gets its task, and the invocation times out
	Delay time.Duration // of those that are late
}

type fate int

const (
	good fate = iota
	crash
	late
	lost
)

// faults draw what happens to invocations.
type faults struct {
	Faults
	mu sync.Mutex
	n  uint64 // invocations up to now
}

func newFaults(f Faults) *faults { return &faults{Faults: f} }

// next is what happens to the next invocation.
func (f *faults) next() fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	switch x := rand.New(rand.NewPCG(f.Seed, f.n)).Float64(); {
	case x < f.Crash:
		return crash
	case x < f.Crash+f.Late:
		return late
	case x < f.Crash+f.Late+f.Lose:
		return lost
	}
	return good
}

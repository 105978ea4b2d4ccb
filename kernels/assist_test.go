package kernels_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Two chunks of a team of one worker wait for each other: another goroutine must run one of them. The team borrows the
// memory of the one that the goroutine knows.
func TestAssistRunsChunksOfBorrowers(t *testing.T) {
	owner := kernels.NewTeam(1)
	if owner.Assist() {
		t.Fatal("an idle team has a chunk")
	}
	borrower := owner.Fork().(*kernels.Team)
	borrower.Borrow(owner)
	ended := make(chan bool)
	go func() {
		for !owner.Assist() {
			time.Sleep(time.Millisecond)
		}
		close(ended)
	}()
	var meet sync.WaitGroup
	meet.Add(2)
	borrower.Run(2, 1, func(int, int) {
		meet.Done()
		meet.Wait()
	})
	<-ended
	if owner.Assist() {
		t.Error("a chunk is left after the end")
	}
}

// Goroutines that assist run each chunk once, and none after the end of its work.
func TestAssistRunsEachChunkOnce(t *testing.T) {
	team := kernels.NewTeam(1)
	var over atomic.Bool
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for !over.Load() {
				team.Assist()
			}
		})
	}
	for n := range 2000 {
		seen, ended := make([]int32, n%50), false
		team.Run(len(seen), 3, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				if seen[i]++; ended { // a data race, too
					t.Error("a chunk runs after the end")
				}
			}
		})
		ended = true
		for i, times := range seen {
			if times != 1 {
				t.Fatalf("%d of %d visited %d times", i, len(seen), times)
			}
		}
	}
	over.Store(true)
	all.Wait()
}

// After a failure in a chunk of the caller nobody runs the other chunks, and the team can be used again.
func TestAssistEndsWithAFailure(t *testing.T) {
	team := kernels.NewTeam(1)
	fail := func() (err error) {
		defer mapped.Catch(&err)
		team.Run(9, 1, func(lo, _ int) {
			if lo > 0 {
				t.Errorf("chunk %d runs", lo)
			}
			mapped.Fail(fault.New(fault.Config, "test", "", "no memory"))
		})
		return nil
	}
	if fail() == nil {
		t.Fatal("no failure")
	}
	if team.Assist() {
		t.Error("a chunk is left")
	}
	count := 0
	if team.Run(9, 3, func(int, int) { count++ }); count != 3 {
		t.Errorf("%d chunks", count)
	}
}

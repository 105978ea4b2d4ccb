package worldtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"siafu/ranks/world"
)

var limits = []check{
	{"Deadline", deadline},
	{"Warning", warning},
}

// grace limits the delay of a wait's end after its deadline, on a busy machine.
const grace = 2 * time.Minute

// recvPatience is the deadline of a Recv that must fail.
const recvPatience = 60 * time.Millisecond

// patiently runs a test whose deadline must be missed. The ranks then tell one another which of
// them are missing. On a busy machine one may be late itself, and the test is repeated with a
// longer deadline.
func patiently(c world.Comm, body func(s world.Comm, patience time.Duration) error) error {
	var err error
	for patience := 600 * time.Millisecond; patience < 3*time.Minute; patience *= 4 {
		// The stalled communicator has another order than the world, so that the test can tell
		// that errors name ranks of the world.
		reversed := world.All(c.Size())
		slices.Reverse(reversed)
		s, subErr := c.Sub(reversed)
		if subErr != nil {
			return subErr
		}
		if err = world.Agree(c, body(s, patience)); err == nil {
			return nil
		}
	}
	return err
}

// deadline tests that in each kind of wait for the last rank, which does not come, all others
// receive a timely error that names it.
func deadline(c world.Comm) error {
	last := c.Size() - 1
	if last == 0 {
		return recvDeadline(c, 0)
	}
	for _, k := range []struct {
		op   string
		call func(s world.Comm) error
	}{
		{"Barrier", world.Comm.Barrier},
		{"Ialltoallv", func(s world.Comm) error {
			counts := slices.Repeat([]int{100}, s.Size())
			return finish(s.Ialltoallv(make([]byte, 100*s.Size()), counts, make([]byte, 100*s.Size()), counts))
		}},
	} {
		err := patiently(c, func(s world.Comm, patience time.Duration) error {
			return withoutLast(c, s, patience, k.op, k.call)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", k.op, err)
		}
	}
	return recvDeadline(c, last)
}

// withoutLast calls a collective of s on all ranks except the last one of c, rank 0 of s, which calls it
// after the others have failed. The others' messages that they have failed go through s too: on c a message
// of one try that came late would end the next try.
func withoutLast(c, s world.Comm, patience time.Duration, op string, call func(s world.Comm) error) error {
	last := c.Size() - 1
	if c.Rank() == last {
		for q := range last {
			if _, err := s.Recv(1+q, 1); err != nil {
				return err
			}
		}
		_ = call(s) // it may fail, because the others have left
		return nil
	}
	s.SetLimits(world.Limits{Abort: patience})
	began := time.Now()
	err := stalled(call(s), op, last, patience, began)
	if sendErr := finish(s.Isend(nil, 0, 1)); sendErr != nil {
		return sendErr
	}
	return err
}

// recvDeadline tests the deadline of a Recv without a sender.
func recvDeadline(c world.Comm, src int) error {
	s, err := c.Sub(world.All(c.Size()))
	if err != nil {
		return err
	}
	s.SetLimits(world.Limits{Abort: recvPatience})
	began := time.Now()
	_, err = s.Recv(src, 1)
	if err := stalled(err, "Recv", src, recvPatience, began); err != nil {
		return err
	}
	_, err = s.Recv(world.Any, 1)
	var stall *world.StallError
	if !errors.As(err, &stall) || len(stall.Missing) != 0 {
		return fmt.Errorf("receiving from any rank: got %v", err)
	}
	return c.Barrier() // c is still usable
}

// stalled returns an error unless err is a timely StallError that names the missing rank.
func stalled(err error, op string, missing int, patience time.Duration, began time.Time) error {
	took := time.Since(began)
	var stall *world.StallError
	switch {
	case !errors.As(err, &stall):
		return fmt.Errorf("got %v, want a StallError", err)
	case stall.Op != op || !slices.Equal(stall.Missing, []int{missing}):
		return fmt.Errorf("%q does not name %s and rank %d", err, op, missing)
	case took < stall.Waited || took > patience+grace:
		return fmt.Errorf("%w came after %v", err, took)
	}
	return nil
}

// warning tests that all ranks that wait for a late rank are warned once and then continue.
func warning(c world.Comm) error {
	return patiently(c, func(s world.Comm, patience time.Duration) error { return warned(c, s, patience) })
}

func warned(c, s world.Comm, patience time.Duration) error {
	var said atomic.Pointer[string]
	var times atomic.Int32
	s.SetLimits(world.Limits{Warn: patience / 4, Log: func(msg string) {
		said.Store(&msg)
		times.Add(1)
	}})
	last := c.Size() - 1
	if err := c.Barrier(); err != nil { // a rank that comes after the last one is not warned
		return err
	}
	if c.Rank() == last {
		time.Sleep(patience)
	}
	if err := s.Barrier(); err != nil {
		return err
	}
	switch {
	case c.Rank() == last:
		return nil
	case times.Load() != 1:
		return fmt.Errorf("rank %d was warned %d times", c.Rank(), times.Load())
	case !strings.HasPrefix(*said.Load(), fmt.Sprintf("Barrier: rank %d has waited ", c.Rank())) ||
		!regexp.MustCompile(fmt.Sprintf(`for ranks? (.*, )?%d( on \S+)?, still waiting$`, last)).MatchString(*said.Load()):
		return fmt.Errorf("the warning %q does not name Barrier and rank %d", *said.Load(), last)
	}
	return nil
}

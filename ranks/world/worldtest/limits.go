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

// grace is how much later than its deadline a wait may end on a busy machine.
const grace = 2 * time.Minute

// recvPatience is the deadline of a Recv that is meant to fail.
const recvPatience = 60 * time.Millisecond

// patiently runs a test with a deadline that must be missed. Where ranks have
// to tell one another who is missing, a machine that is busy with other things
// may keep one of them from doing so in time; then all try again with a longer
// deadline.
func patiently(c world.Comm, body func(s world.Comm, patience time.Duration) error) error {
	var err error
	for patience := 600 * time.Millisecond; patience < 3*time.Minute; patience *= 4 {
		// The stalled communicator is one of its own, in another order than
		// the world's, so that what is named is a rank of the world.
		reversed := all(c.Size())
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

// deadline lets everybody wait for the last rank, which does not come: in
// each kind of wait the others get an error in time that names it.
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
			counts := make([]int, s.Size())
			for q := range counts {
				counts[q] = 100
			}
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

// withoutLast calls a collective of s on all ranks but the last one of c,
// which calls it when the others have given up.
func withoutLast(c, s world.Comm, patience time.Duration, op string, call func(s world.Comm) error) error {
	last := c.Size() - 1
	if c.Rank() == last {
		for q := range last {
			if _, err := c.Recv(q, 1); err != nil {
				return err
			}
		}
		_ = call(s) // it may succeed or not: the others are gone
		return nil
	}
	s.SetLimits(world.Limits{Abort: patience})
	began := time.Now()
	err := stalled(call(s), op, last, patience, began)
	if sendErr := finish(c.Isend(nil, last, 1)); sendErr != nil {
		return sendErr
	}
	return err
}

// recvDeadline receives what nobody sends.
func recvDeadline(c world.Comm, src int) error {
	s, err := c.Sub(all(c.Size()))
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
		return fmt.Errorf("receiving from anybody: got %v", err)
	}
	return c.Barrier() // c itself is as good as new
}

// stalled returns an error unless err says, in time, that missing did not come.
func stalled(err error, op string, missing int, patience time.Duration, began time.Time) error {
	took := time.Since(began)
	var stall *world.StallError
	switch {
	case !errors.As(err, &stall):
		return fmt.Errorf("got %v, want a StallError", err)
	case stall.Op != op || !slices.Equal(stall.Missing, []int{missing}):
		return fmt.Errorf("%q should say that %s lacks rank %d", err, op, missing)
	case took < stall.Waited || took > patience+grace:
		return fmt.Errorf("%w came after %v", err, took)
	}
	return nil
}

// warning lets everybody wait for a last rank that comes late: they are told,
// once a wait, and then continue.
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

package worldtest

import (
	"fmt"
	"slices"

	"siafu/ranks/world"
)

var subs = []check{
	{"SubNumbers", subNumbers},
	{"SubConcurrent", subConcurrent},
	{"SubOfSub", subOfSub},
}

// subNumbers tests the members of communicators and their numbers.
func subNumbers(c world.Comm) error {
	n := c.Size()
	reversed := world.All(n)
	slices.Reverse(reversed)
	for _, ranks := range [][]int{world.All(n), reversed, {0}, {n - 1}, reversed[:(n+1)/2], {}} {
		s, err := c.Sub(ranks)
		if err != nil {
			return err
		}
		want := slices.Index(ranks, c.Rank())
		switch {
		case (s == nil) != (want < 0):
			return fmt.Errorf("rank %d among %v: got %v", c.Rank(), ranks, s)
		case s == nil:
			continue
		case s.Rank() != want || s.Size() != len(ranks) || len(s.Hosts()) != len(ranks):
			return fmt.Errorf("rank %d among %v is %d of %d", c.Rank(), ranks, s.Rank(), s.Size())
		}
		if err := alltoallv(s); err != nil {
			return fmt.Errorf("among %v: %w", ranks, err)
		}
	}
	return nil
}

// subConcurrent tests that overlapping communicators, each in its own goroutine, do not receive
// one another's blocks or messages.
func subConcurrent(c world.Comm) error {
	n := c.Size()
	var work []func() error
	for _, ranks := range [][]int{world.All(n), world.All(n)[n/2:], world.All(n)[:n/2+1]} {
		s, err := c.Sub(ranks)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		work = append(work,
			func() error { return ring(s, 50) },
			func() error {
				for range 3 {
					if err := alltoallv(s); err != nil {
						return err
					}
				}
				return sumInt64s(s)
			})
	}
	return together(work...)
}

// subOfSub halves a communicator until one rank is left.
func subOfSub(c world.Comm) error {
	for c.Size() > 1 {
		half := c.Size() / 2
		low, err := c.Sub(world.All(c.Size())[:half])
		if err != nil {
			return err
		}
		high, err := c.Sub(world.All(c.Size())[half:])
		if err != nil {
			return err
		}
		if (low == nil) == (high == nil) {
			return fmt.Errorf("rank %d of %d is in both halves or none", c.Rank(), c.Size())
		}
		if c = low; c == nil {
			c = high
		}
		if err := bcast(c); err != nil {
			return err
		}
	}
	return ring(c, 3)
}

package worldtest

import (
	"fmt"

	"siafu/ranks/world"
)

var subs = []check{
	{"SubNumbers", subNumbers},
	{"SubConcurrent", subConcurrent},
	{"SubOfSub", subOfSub},
}

// subNumbers tests who is in a communicator and under which number.
func subNumbers(c world.Comm) error {
	n := c.Size()
	reversed := all(n)
	for i := range reversed {
		reversed[i] = n - 1 - i
	}
	for _, ranks := range [][]int{all(n), reversed, {0}, {n - 1}, reversed[:(n+1)/2], {}} {
		s, err := c.Sub(ranks)
		if err != nil {
			return err
		}
		want := -1
		for i, r := range ranks {
			if r == c.Rank() {
				want = i
			}
		}
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

// subConcurrent uses communicators that overlap at the same time, each in its
// own goroutine: they must not take one another's blocks or messages.
func subConcurrent(c world.Comm) error {
	n := c.Size()
	var work []func() error
	for _, ranks := range [][]int{all(n), all(n)[n/2:], all(n)[:n/2+1]} {
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
		low, err := c.Sub(all(c.Size())[:half])
		if err != nil {
			return err
		}
		high, err := c.Sub(all(c.Size())[half:])
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

package worldtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

var collects = []check{
	{"Agree", agree},
	{"Gather", gather},
	{"BcastBlob", bcastBlob},
	{"WrongArguments", wrongArguments},
}

// errCause is the cause of the error that the ranks agree on.
var errCause = errors.New("disk full")

// agree tests no failure, a failure of each rank, and failures of two ranks.
func agree(c world.Comm) error {
	if err := world.Agree(c, nil); err != nil {
		return fmt.Errorf("nobody failed, yet: %w", err)
	}
	for first := range c.Size() {
		for _, second := range []int{first, c.Size() - 1} {
			var mine error
			if c.Rank() == second {
				mine = fault.New(fault.IO, "write", "x", "second")
			}
			if c.Rank() == first {
				mine = &fault.Error{Op: "write", Kind: fault.Data, Path: fmt.Sprintf("part-%d", first), Err: errCause}
			}
			err := world.Agree(c, mine)
			if err == nil {
				return fmt.Errorf("ranks %d and %d failed, and rank %d got nil", first, second, c.Rank())
			}
			if want := fmt.Sprintf("write: part-%d: disk full", first); !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%q does not contain %q", err, want)
			}
			if kind := fault.KindOf(err); kind != fault.Data {
				return fmt.Errorf("kind is %d, want %d", kind, fault.Data)
			}
			if c.Rank() == first && !errors.Is(err, errCause) {
				return fmt.Errorf("%w no longer has its cause", err)
			}
		}
	}
	// An error without text is still an error.
	if err := world.Agree(c, errors.New("")); err == nil {
		return errors.New("an empty error was taken for none")
	}
	return nil
}

func gather(c world.Comm) error {
	for root := range c.Size() {
		length := func(q int) int { return lengths[(q+root)%len(lengths)] }
		blocks, err := world.Gather(c, root, pattern(length(c.Rank()), c.Rank(), root, 0))
		if err != nil {
			return err
		}
		back, err := world.Scatter(c, root, blocks)
		if err == nil {
			err = same("what was scattered again", back, pattern(length(c.Rank()), c.Rank(), root, 0))
		}
		if err != nil {
			return err
		}
		if c.Rank() != root {
			if blocks != nil {
				return errors.New("blocks on a rank that is not root")
			}
			continue
		}
		if len(blocks) != c.Size() {
			return fmt.Errorf("got %d blocks of %d ranks", len(blocks), c.Size())
		}
		for q, b := range blocks {
			if err := same(fmt.Sprintf("block of %d", q), b, pattern(length(q), q, root, 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

func bcastBlob(c world.Comm) error {
	for root := range c.Size() {
		for which, n := range lengths {
			want := pattern(n, root, 0, which)
			blob := []byte("ignored")
			if c.Rank() == root {
				blob = want
			}
			got, err := world.BcastBlob(c, blob, root)
			if err != nil {
				return err
			}
			if err := same("blob", got, want); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrongArguments tests that arguments that are wrong on one rank alone panic, and that nothing
// is sent.
func wrongArguments(c world.Comm) error {
	n := c.Size()
	ones := slices.Repeat([]int{1}, n)
	long := make([]int, n+1)
	negative := append([]int{-1}, ones[1:]...)
	buf := make([]byte, n)
	for _, k := range []struct {
		name string
		call func()
	}{
		{"too few counts", func() { _, _ = c.Ialltoallv(nil, nil, buf, ones) }},
		{"too many counts", func() { _, _ = c.Ialltoallv(buf, ones, nil, long) }},
		{"short send", func() { _, _ = c.Ialltoallv(buf[1:], ones, buf, ones) }},
		{"long receive", func() { _, _ = c.Ialltoallv(buf, ones, make([]byte, n+1), ones) }},
		{"negative count", func() { _, _ = c.Ialltoallv(buf, negative, buf, ones) }},
		{"short gather", func() { _ = c.Allgatherv(buf[:1], buf[1:], ones) }},
		{"wrong own block", func() { _ = c.Allgatherv(nil, buf, ones) }},
		{"root too large", func() { _ = c.Bcast(buf, n) }},
		{"root negative", func() { _ = c.Bcast(buf, -1) }},
		{"destination", func() { _, _ = c.Isend(buf, n, 0) }},
		{"tag negative", func() { _, _ = c.Isend(buf, 0, -1) }},
		{"tag too large", func() { _, _ = c.Isend(buf, 0, world.MaxTag+1) }},
		{"source", func() { _, _ = c.Recv(n, 0) }},
		{"source below any", func() { _, _, _ = c.TryRecv(-2, 0) }},
		{"sub out of range", func() { _, _ = c.Sub([]int{n}) }},
		{"sub twice", func() { _, _ = c.Sub([]int{0, 0}) }},
		{"gather to nobody", func() { _, _ = world.Gather(c, n, nil) }},
	} {
		if !panics(k.call) {
			return fmt.Errorf("%s: no panic", k.name)
		}
	}
	return c.Barrier() // nothing was begun
}

// panics reports whether a call panics with a message of package world.
func panics(call func()) (did bool) {
	defer func() {
		text, ok := recover().(string)
		did = ok && strings.HasPrefix(text, "world: ")
	}()
	call()
	return false
}

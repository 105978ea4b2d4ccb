package worldtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"siafu/ranks/world"
)

// Start runs body on every rank of a new communicator of all ranks, without limits, and fails the
// test if one returns an error.
type Start func(t *testing.T, body func(c world.Comm) error)

// check is one test of the suite, run by all ranks.
type check struct {
	name string
	body func(c world.Comm) error
}

// Run runs the suite on worlds of size ranks.
func Run(t *testing.T, size int, start Start) {
	t.Run("Identity", func(t *testing.T) {
		start(t, func(c world.Comm) error { return identity(c, size) })
	})
	for _, list := range [][]check{collectives, messages, subs, sums, collects, limits} {
		for _, k := range list {
			t.Run(k.name, func(t *testing.T) { start(t, k.body) })
		}
	}
}

// identity tests Rank, Size and Hosts.
func identity(c world.Comm, size int) error {
	if c.Size() != size || c.Rank() < 0 || c.Rank() >= size {
		return fmt.Errorf("rank %d of %d in a world of %d", c.Rank(), c.Size(), size)
	}
	if hosts := c.Hosts(); len(hosts) != size || hosts[c.Rank()] == "" {
		return fmt.Errorf("hosts are %q", hosts)
	}
	// Every rank number exists exactly once.
	seen := make([]int64, size)
	seen[c.Rank()] = 1
	if err := world.SumInt64s(c, seen); err != nil {
		return err
	}
	for r, n := range seen {
		if n != 1 {
			return fmt.Errorf("%d ranks have number %d", n, r)
		}
	}
	return c.Barrier()
}

// lengths are the tested lengths of blocks: empty, one byte, odd lengths, and more than MPI
// sends eagerly.
var lengths = []int{0, 1, 3, 4093, 300_007}

const startBits = 19

// random returns random bytes from which pattern takes blocks.
var random = sync.OnceValue(func() []byte {
	b := make([]byte, 1<<startBits+slices.Max(lengths)+1)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
})

// pattern returns a block whose bytes depend on the sender, the receiver and a number: a range of
// the same random bytes for all blocks, whose start differs.
func pattern(length, from, to, which int) []byte {
	start := uint32(1+from+64*to+4096*which) * 2654435761 >> (32 - startBits)
	return bytes.Clone(random()[start:][:length])
}

// guard is the value of the bytes behind a receive buffer.
const guard = 0xa5

// guarded returns a receive buffer, and a function that returns an error if the bytes behind it
// have changed.
func guarded(length int) (buf []byte, intact func() error) {
	all := bytes.Repeat([]byte{guard}, length+64)
	return all[:length:length], func() error {
		for _, b := range all[length:] {
			if b != guard {
				return errors.New("bytes behind the buffer were overwritten")
			}
		}
		return nil
	}
}

// same returns an error if got is not want.
func same(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: got %d bytes, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d of %d is %#x, want %#x", what, i, len(got), got[i], want[i])
		}
	}
	return nil
}

// finish waits for a request, unless it failed to begin.
func finish(r world.Request, err error) error {
	if err != nil {
		return err
	}
	return r.Wait()
}

func finishAll(requests []world.Request) error {
	for _, r := range requests {
		if err := r.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// neighbours returns the next and the previous rank in a ring.
func neighbours(c world.Comm) (next, previous int) {
	return (c.Rank() + 1) % c.Size(), (c.Rank() + c.Size() - 1) % c.Size()
}

// together runs functions concurrently and returns the first error.
func together(work ...func() error) error {
	errs := make(chan error)
	for _, w := range work {
		go func() { errs <- w() }()
	}
	var first error
	for range work {
		first = cmp.Or(first, <-errs)
	}
	return first
}

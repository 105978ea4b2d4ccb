package inproc_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/worldtest"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

func TestConformance(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 7} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel() // most of it waits for deadlines
			worldtest.Run(t, size, func(t *testing.T, body func(c world.Comm) error) {
				if err := inproc.Run(size, body); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// errDisk is the error of the tests below.
var errDisk = fault.New(fault.IO, "write", "part", "disk full")

// endings are the ways in which rank 2 may end while the others wait for it. Run's error must
// contain says.
var endings = []struct {
	name string
	end  func(c world.Comm) error
	kind fault.Kind
	says string
}{
	{"error", func(world.Comm) error { return errDisk }, fault.IO, "write: part: disk full"},
	{"panic", func(world.Comm) error { panic("short dst") }, fault.Runtime, "rank 2 panicked: short dst\ngoroutine"},
	{"panic with an error", func(world.Comm) error { panic(errDisk) }, fault.IO, "rank 2 panicked: write: part"},
	{"goexit", func(world.Comm) error { runtime.Goexit(); return nil }, fault.Runtime, "rank 2 ended its goroutine"},
	{"abort with a fault", func(c world.Comm) error { c.Abort(74, errDisk); return nil }, fault.IO, "write: part: disk full"},
	{"abort with a code", func(c world.Comm) error { c.Abort(75, nil); return nil }, fault.Stopped, "rank 2 aborted with exit code 75"},
	{"abort with both", func(c world.Comm) error { c.Abort(65, errDisk); return nil }, fault.Data, "write: part: disk full"},
	// Run itself reports only the others' errors.
	{"leave", func(world.Comm) error { return nil }, fault.Runtime, "lost rank 2: the rank has already returned"},
}

// waits are the calls of the other ranks meanwhile.
var waits = []struct {
	name string
	wait func(c world.Comm) error
}{
	{"Barrier", world.Comm.Barrier},
	{"Recv", func(c world.Comm) error { _, err := c.Recv(2, 0); return err }},
	{"Sub", func(c world.Comm) error { _, err := c.Sub([]int{0}); return err }},
	{"Test", func(c world.Comm) error {
		none := make([]int, c.Size())
		req, err := c.Ialltoallv(nil, none, nil, none)
		for err == nil {
			if _, err = req.Test(); err == nil {
				err = req.Wait()
			}
		}
		return err
	}},
}

// Rank 2 of 4 ends in every way while the others wait in every way without a deadline. They all
// receive an error that names it, and Run returns the cause, not a consequence.
func TestLostRank(t *testing.T) {
	for _, e := range endings {
		for _, w := range waits {
			t.Run(e.name+"/"+w.name, func(t *testing.T) {
				var told, named atomic.Int32
				err := inproc.Run(4, func(c world.Comm) error {
					if c.Rank() == 2 {
						time.Sleep(time.Millisecond) // the others wait by now, mostly
						return e.end(c)
					}
					err := w.wait(c)
					var lost *world.LostError
					if errors.As(err, &lost) {
						told.Add(1)
						if lost.Lost == 2 || e.name == "leave" {
							named.Add(1)
						}
					}
					return err
				})
				if err == nil || !strings.Contains(err.Error(), e.says) || fault.KindOf(err) != e.kind {
					t.Errorf("Run: got %v of kind %d, want %q of kind %d", err, fault.KindOf(err), e.says, e.kind)
				}
				// A rank that begins to wait late may get the error of a consequence.
				if told.Load() != 3 || named.Load() == 0 {
					t.Errorf("%d of 3 ranks were told, %d of the rank that was lost", told.Load(), named.Load())
				}
			})
		}
	}
}

// TestLastMessages tests that what a rank sent before it left still arrives.
func TestLastMessages(t *testing.T) {
	err := inproc.Run(2, func(c world.Comm) error {
		if c.Rank() == 1 {
			_, err := c.Isend([]byte("bye"), 0, 1)
			return err
		}
		time.Sleep(5 * time.Millisecond)
		m, err := c.Recv(1, 1)
		if err == nil && string(m.Data) != "bye" {
			err = errors.New("got " + string(m.Data))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Collectives of two ranks that do not match are errors.
func TestContradictions(t *testing.T) {
	ones, twos := []int{1, 1}, []int{2, 2}
	for _, k := range []struct {
		name  string
		calls [2]func(c world.Comm) error
		says  string
	}{
		{"lengths", [2]func(c world.Comm) error{
			func(c world.Comm) error { return wait(c.Ialltoallv(make([]byte, 2), ones, make([]byte, 2), ones)) },
			func(c world.Comm) error { return wait(c.Ialltoallv(make([]byte, 4), twos, make([]byte, 4), twos)) },
		}, "bytes to rank"},
		{"roots", [2]func(c world.Comm) error{
			func(c world.Comm) error { return c.Bcast(make([]byte, 3), 0) },
			func(c world.Comm) error { return c.Bcast(make([]byte, 3), 1) },
		}, "expects"},
		{"operations", [2]func(c world.Comm) error{
			world.Comm.Barrier,
			func(c world.Comm) error { return c.Bcast(nil, 0) },
		}, "calls it, but rank"},
		{"lists", [2]func(c world.Comm) error{
			func(c world.Comm) error { _, err := c.Sub([]int{0, 1}); return err },
			func(c world.Comm) error { _, err := c.Sub([]int{1, 0}); return err },
		}, "lists"},
	} {
		t.Run(k.name, func(t *testing.T) {
			err := inproc.Run(2, func(c world.Comm) error { return k.calls[c.Rank()](c) })
			if err == nil || !strings.Contains(err.Error(), k.says) {
				t.Errorf("got %v, want %q", err, k.says)
			}
		})
	}
}

func wait(r world.Request, err error) error {
	if err != nil {
		return err
	}
	return r.Wait()
}

// TestBuffersAfterDeadline tests that a late rank does not write into the buffers of a rank
// that gave up.
func TestBuffersAfterDeadline(t *testing.T) {
	err := inproc.Run(2, func(c world.Comm) error {
		s, err := c.Sub([]int{0, 1})
		if err != nil {
			return err
		}
		buf := make([]byte, 1<<16)
		if c.Rank() == 1 {
			if _, err := c.Recv(0, 1); err != nil {
				return err
			}
			for i := range buf {
				buf[i] = 1
			}
			if s.Bcast(buf, 1) == nil {
				return errors.New("it joined a collective that was given up")
			}
			return c.Barrier()
		}
		s.SetLimits(world.Limits{Abort: 10 * time.Millisecond})
		if s.Bcast(buf, 1) == nil {
			return errors.New("it did not give up")
		}
		if err := wait(c.Isend(nil, 1, 1)); err != nil {
			return err
		}
		err = c.Barrier()
		for _, b := range buf {
			if b != 0 {
				return errors.New("the buffer was written to")
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// BenchmarkIalltoallv moves 64 KiB between each pair of 4 ranks.
func BenchmarkIalltoallv(b *testing.B) {
	const size, block = 4, 64 << 10
	b.SetBytes(size * size * block)
	err := inproc.Run(size, func(c world.Comm) error {
		send, recv := make([]byte, size*block), make([]byte, size*block)
		counts := []int{block, block, block, block}
		for range b.N {
			if err := wait(c.Ialltoallv(send, counts, recv, counts)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// parted names the ranks of a world as a view names its parts.
func parted(rank int) string { return fmt.Sprintf("part %d of rank %d", rank, rank%2) }

// TestAbandonedCollective tests that a rank which joins a collective late learns who gave it
// up and why, and so does a rank that joined it in time.
func TestAbandonedCollective(t *testing.T) {
	gaveUp := make(chan struct{})
	err := inproc.RunShare(inproc.Share{Size: 3, Name: parted}, func(c world.Comm) error {
		switch c.Rank() {
		case 0:
			c.SetLimits(world.Limits{Abort: time.Millisecond})
			if c.Barrier() == nil {
				t.Error("it did not give up")
			}
			close(gaveUp)
			return nil
		case 1:
			<-gaveUp
		}
		err := c.Barrier()
		lost, stall := (*world.LostError)(nil), (*world.StallError)(nil)
		if !errors.As(err, &lost) || lost.Rank != c.Rank() || lost.Lost != 0 || !errors.As(err, &stall) ||
			!strings.HasPrefix(err.Error(), "Barrier: "+parted(c.Rank())+" lost part 0 of rank 0: ") {
			t.Errorf("rank %d has %v", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// cut is a Remote whose link is broken.
type cut struct{ err error }

func (f cut) Carry(int, inproc.Packet) (world.Request, error) { return nil, nil }
func (f cut) Fetch(inproc.Receiver) error                     { return f.err }
func (cut) Abandon(world.Request)                             {}
func (cut) Process(rank int) int                              { return rank / 2 }
func (cut) Abort(int, error)                                  {}

// TestBrokenLinkIsTheCause tests that the failure of the world is the broken link, although
// the rank that saw it returns after the one that met its consequence.
func TestBrokenLinkIsTheCause(t *testing.T) {
	disk := fault.New(fault.IO, "write", "part", "disk full")
	gaveUp, met := make(chan struct{}), make(chan struct{})
	err := inproc.RunShare(inproc.Share{Size: 3, Here: []int{0, 1}, Remote: cut{disk}, Name: parted}, func(c world.Comm) error {
		if c.Rank() == 0 {
			err := c.Barrier()
			close(gaveUp)
			<-met
			return err
		}
		<-gaveUp
		defer close(met)
		err := c.Barrier()
		if lost := (*world.LostError)(nil); !errors.As(err, &lost) || lost.Lost != 0 || !errors.Is(err, disk) {
			t.Errorf("the late rank has %v", err)
		}
		return err
	})
	if err != error(disk) {
		t.Errorf("the world failed with %v", err)
	}
}

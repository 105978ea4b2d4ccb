package parts_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/worldtest"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
	"siafu/ranks/world/parts"
)

// over runs body on all parts of a world of ranks that are goroutines.
func over(v world.View, body func(c world.Comm) error) error {
	return inproc.Run(v.Started(), func(c world.Comm) error { return parts.RunParts(c, v, body) })
}

// A world of parts is a world, whatever carries them.
func TestConformance(t *testing.T) {
	for _, v := range hosttest.ShareOf(t, 2, []world.View{
		{Parts: 8, Ranks: 1}, {Parts: 8, Ranks: 2}, {Parts: 8, Ranks: 3}, {Parts: 8, Ranks: 4}, {Parts: 8, Ranks: 8},
		{Parts: 5, Ranks: 2, Servers: 2}, {Parts: 2, Ranks: 1, Servers: 1},
	}) {
		t.Run(strconv.Itoa(v.Parts)+" on "+strconv.Itoa(v.Ranks)+" and "+strconv.Itoa(v.Servers), func(t *testing.T) {
			t.Parallel() // most of it waits for deadlines
			worldtest.Run(t, v.Members(), func(t *testing.T, body func(c world.Comm) error) {
				if err := over(v, body); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A part that fails, or aborts, ends all others wherever they are, and what Over
// returns on its rank is the cause.
func TestLostPart(t *testing.T) {
	disk := fault.New(fault.IO, "write", "part", "disk full")
	v := world.View{Parts: 5, Ranks: 2, Servers: 1}
	for name, end := range map[string]func(c world.Comm) error{
		"error": func(world.Comm) error { return disk },
		"abort": func(c world.Comm) error { c.Abort(74, disk); return nil },
		"panic": func(world.Comm) error { panic(disk) },
	} {
		for waiting, wait := range map[string]func(c world.Comm) error{
			"Barrier": world.Comm.Barrier,
			"Recv":    func(c world.Comm) error { _, err := c.Recv(4, 0); return err },
		} {
			t.Run(name+"/"+waiting, func(t *testing.T) {
				err := over(v, func(c world.Comm) error {
					if c.Rank() == 4 {
						time.Sleep(time.Millisecond)
						return end(c)
					}
					err := wait(c)
					if lost := (*world.LostError)(nil); !errors.As(err, &lost) {
						t.Errorf("part %d: %v", c.Rank(), err)
					}
					return err
				})
				if fault.KindOf(err) != fault.IO || !strings.Contains(err.Error(), "disk full") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// A long wait, a loss and a panic say which part and which rank they are of.
func TestPartsAreNamed(t *testing.T) {
	v := world.View{Parts: 5, Ranks: 2, Servers: 1}
	stalled := make(chan error, 1)
	err := over(v, func(c world.Comm) error {
		c.SetLimits(world.Limits{Abort: 300 * time.Millisecond, Name: v.Name})
		switch c.Rank() {
		case 1:
			_, err := c.Recv(4, 1)
			stalled <- err
			panic("short dst")
		case 4:
			time.Sleep(time.Second)
			return nil
		}
		return nil
	})
	said := (<-stalled).Error()
	if !strings.HasPrefix(said, "Recv: part 1 of rank 0 has waited 3") || !strings.Contains(said, " for part 4 of rank 1 on ") {
		t.Errorf("the wait says %q", said)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "part 1 of rank 0 panicked: short dst") {
		t.Errorf("the panic says %v", err)
	}
	lost := &world.LostError{Op: "Recv", Rank: 5, Lost: 4, Cause: err, Name: v.Name}
	if !strings.HasPrefix(lost.Error(), "Recv: rank 2 lost part 4 of rank 1: ") {
		t.Errorf("the loss says %v", lost)
	}
}

// The error of a wait for long blocks names only the late part, not other parts of its rank.
func TestLateLongBlocks(t *testing.T) {
	if err := over(lateView, late(t)); err != nil {
		t.Error(err)
	}
}

var lateView = world.View{Parts: 5, Ranks: 2}

// late returns a body in which part 3 skips an exchange of long blocks.
func late(t *testing.T) func(c world.Comm) error {
	const long = 100_000
	return func(c world.Comm) error {
		s, err := c.Sub([]int{0, 1, 2, 3, 4})
		if err != nil {
			return err
		}
		if c.Rank() == 3 {
			return c.Barrier()
		}
		s.SetLimits(world.Limits{Abort: time.Second})
		counts := []int{long, long, long, long, long}
		r, err := s.Ialltoallv(make([]byte, 5*long), counts, make([]byte, 5*long), counts)
		if err != nil {
			return err
		}
		var stall *world.StallError
		if err := r.Wait(); !errors.As(err, &stall) || !slices.Equal(stall.Missing, []int{3}) {
			t.Errorf("part %d: %v", c.Rank(), err)
		}
		return c.Barrier()
	}
}

// An error that all have agreed on is returned on every rank, and no rank leaves
// before the others have it.
func TestAgreedEnd(t *testing.T) {
	v := world.View{Parts: 5, Ranks: 3}
	err := inproc.Run(3, func(c world.Comm) error {
		err := parts.RunParts(c, v, func(m world.Comm) error {
			var mine error
			if m.Rank() == 3 {
				mine = fault.New(fault.Data, "read", "x", "bad")
			}
			return world.Agree(m, mine)
		})
		if shared := (*world.AgreedError)(nil); !errors.As(err, &shared) || fault.KindOf(err) != fault.Data {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		return c.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
}

// The end of the world drops messages that were not received, and does not wait for them.
func TestUndeliveredPackets(t *testing.T) {
	if err := over(leftView, left); err != nil {
		t.Error(err)
	}
}

var leftView = world.View{Parts: 5, Ranks: 3}

// left sends messages that are not received.
func left(c world.Comm) error {
	for q := range c.Size() {
		if _, err := c.Isend(make([]byte, 1<<20), q, 1); err != nil {
			return err
		}
	}
	return nil
}

// Collectives of different processes that do not match are errors.
func TestContradictions(t *testing.T) {
	ones, twos := []int{1, 1}, []int{2, 2}
	begun := func(r world.Request, err error) error {
		if err != nil {
			return err
		}
		return r.Wait()
	}
	for _, k := range []struct {
		name  string
		calls [2]func(c world.Comm) error
		says  string
	}{
		{"lengths", [2]func(c world.Comm) error{
			func(c world.Comm) error { return begun(c.Ialltoallv(make([]byte, 2), ones, make([]byte, 2), ones)) },
			func(c world.Comm) error { return begun(c.Ialltoallv(make([]byte, 4), twos, make([]byte, 4), twos)) },
		}, "which expects"},
		{"operations", [2]func(c world.Comm) error{
			world.Comm.Barrier,
			func(c world.Comm) error { return c.Allgatherv(nil, nil, []int{0, 0}) },
		}, "another collective"},
		{"lists", [2]func(c world.Comm) error{
			func(c world.Comm) error { _, err := c.Sub([]int{0, 1}); return err },
			func(c world.Comm) error { _, err := c.Sub([]int{1, 0}); return err },
		}, "another list"},
	} {
		t.Run(k.name, func(t *testing.T) {
			err := inproc.Run(2, func(c world.Comm) error {
				return parts.RunParts(c, world.View{Parts: 2, Ranks: 2}, func(m world.Comm) error { return k.calls[m.Rank()](m) })
			})
			if err == nil || !strings.Contains(err.Error(), k.says) {
				t.Errorf("got %v, want %q", err, k.says)
			}
		})
	}
}

// BenchmarkIalltoallv moves 64 KiB between each pair of 4 parts on 2 ranks.
func BenchmarkIalltoallv(b *testing.B) {
	const size, block = 4, 64 << 10
	b.SetBytes(size * size * block)
	b.ReportAllocs()
	err := over(world.View{Parts: size, Ranks: 2}, func(c world.Comm) error {
		send, recv := make([]byte, size*block), make([]byte, size*block)
		counts := []int{block, block, block, block}
		for range b.N {
			r, err := c.Ialltoallv(send, counts, recv, counts)
			if err != nil {
				return err
			}
			if err := r.Wait(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

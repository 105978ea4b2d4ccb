package refresh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/halo/refresh"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/testkit/decodertest"
	"siafu/kernels"
)

// short is the length of short messages without headers.
const (
	short  = 64
	frames = 64
)

// drawer is an outbox that stores posted messages.
type drawer struct{ posted [][]byte }

func (d *drawer) Buffer() ([]byte, error) { return nil, nil }

func (d *drawer) Post(b []byte, _, _ int) error {
	d.posted = append(d.posted, b)
	return nil
}

// mirrored returns the plan of the first of two ranks, each with six vertices that all are ghosts
// on the other. A source with this plan can receive its own messages as the other's.
func mirrored() *halo.Plan {
	return &halo.Plan{
		Parts: 2, Own: 6, Ghosts: 6, SendStart: []int64{0, 0, 6}, SendRows: []uint32{0, 1, 2, 3, 4, 5}, RecvStart: []int64{0, 0, 6},
		OwnIDs: []uint32{0, 1, 2, 3, 4, 5}, GhostIDs: []uint32{6, 7, 8, 9, 10, 11},
	}
}

// single returns a source with that plan, staleness 1, and rows after epoch 2.
func single(t testing.TB, out comm.Outbox) (*refresh.Bounded, *kernels.Team) {
	t.Helper()
	none, err := codec.ByName("none")
	if err != nil {
		t.Fatal(err)
	}
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	t.Cleanup(team.Close)
	t.Cleanup(arena.Free)
	o := refresh.BoundedOptions{Shapes: shape(), Plan: mirrored(), Codec: none, Staleness: 1, After: 2, Outbox: out, Tag: tag}
	return refresh.NewBounded(o, team, arena), team
}

// offered returns the message with rows lo..hi-1 of layer 0 in an epoch.
func offered(t testing.TB, epoch, lo, hi int) []byte {
	t.Helper()
	d := &drawer{}
	s, _ := single(t, d)
	if err := s.Offer(halo.Slot{Epoch: epoch}, show(mirrored().GhostIDs, epoch, 0), lo, hi); err != nil || len(d.posted) != 1 {
		t.Fatalf("%d messages are posted: %v", len(d.posted), err)
	}
	return d.posted[0]
}

// put accepts and takes a message from rank 1.
func put(s *refresh.Bounded, b []byte) (lo, hi int, err error) {
	at, due, err := s.Accept(1, slices.Clone(b))
	if err != nil || !due {
		return 0, 0, err
	}
	return s.Take(at)
}

// A gather gets no rows outside the bound, older or newer.
func TestBoundedStaleness(t *testing.T) {
	s, _ := single(t, &drawer{})
	if _, hi, err := put(s, offered(t, 8, 0, 6)); hi != 6 || err != nil {
		t.Fatal(hi, err)
	}
	for epoch := 4; epoch <= 12; epoch++ {
		view, err := s.View(halo.Slot{Epoch: epoch})
		if within := epoch >= 6 && epoch <= 10; within != (err == nil) ||
			within && !slices.Equal(view.Blocks, []halo.Block{{First: 0, Rows: 6, Epoch: 8}}) {
			t.Errorf("epoch %d: %v, %v", epoch, view.Blocks, err)
		} else if !within && !strings.Contains(err.Error(),
			fmt.Sprintf("epoch %d needs rows of rank 1, but the newest are of epoch 8, beyond the staleness bound 1", epoch)) {
			t.Error(err)
		}
	}
}

// Rows of epochs that ended before the source began are discarded, damaged or not.
func TestBoundedBegins(t *testing.T) {
	s, _ := single(t, &drawer{})
	for epoch := 1; epoch <= 2; epoch++ {
		if _, due, err := s.Accept(1, offered(t, epoch, 0, 6)); due || err != nil {
			t.Errorf("epoch %d: due %t, %v", epoch, due, err)
		}
	}
	if here, err := s.Arrived(halo.Slot{Epoch: 3}); here || err != nil {
		t.Error(here, err)
	}
	if _, hi, err := put(s, offered(t, 3, 0, 6)); hi != 6 || err != nil {
		t.Error(hi, err)
	}
}

// A message that is damaged anywhere, or that does not fit earlier ones, is an error and
// changes nothing.
func TestBoundedRefusesDamage(t *testing.T) {
	good := offered(t, 3, 2, 4)
	bad := map[string][]byte{}
	for n := range len(good) {
		bad[fmt.Sprintf("%d bytes", n)] = good[:n]
		if n < 8 || n >= 12 { // another epoch is another message
			harmed := slices.Clone(good)
			harmed[n] ^= 0xff
			bad[fmt.Sprintf("byte %d", n)] = harmed
		}
	}
	elsewhere := slices.Clone(good)
	elsewhere[12] = 3
	bad["rows of another place"] = elsewhere
	none, err := codec.ByName("none")
	if err != nil {
		t.Fatal(err)
	}
	empty := append(slices.Clone(good[:16]), 0, 0, 0, 0)
	bad["no rows"] = codec.EncodeBlock(empty, none, codec.Rows{Cols: widths[0]}, 2, codec.Key{}, nil)
	bad["longer"] = append(slices.Clone(good), 0)
	bad["across two blocks"] = offered(t, 5, 1, 3)
	bad["within a block"] = offered(t, 5, 0, 1)
	bad["beyond a block"] = offered(t, 5, 4, 6)
	for name, b := range bad {
		s, _ := single(t, &drawer{})
		for _, rows := range [][2]int{{0, 2}, {5, 6}} {
			if _, _, err := put(s, offered(t, 4, rows[0], rows[1])); err != nil {
				t.Fatal(err)
			}
		}
		before, err := s.View(halo.Slot{Epoch: 4})
		if err != nil {
			t.Fatal(err)
		}
		blocks := slices.Clone(before.Blocks)
		if _, _, err := put(s, b); fault.KindOf(err) != fault.Runtime {
			t.Errorf("%s: %v", name, err)
		}
		after, err := s.View(halo.Slot{Epoch: 4})
		if here, _ := s.Arrived(halo.Slot{Epoch: 4}); here || err != nil || !slices.Equal(after.Blocks, blocks) {
			t.Errorf("%s leaves %v, %v", name, after.Blocks, err)
		}
	}
	for _, from := range []int{-1, 0, 2} {
		s, _ := single(t, &drawer{})
		if _, _, err := s.Accept(from, good); fault.KindOf(err) != fault.Runtime {
			t.Errorf("from rank %d, which sends no rows: %v", from, err)
		}
	}
}

// Any message gives valid rows or a fault.
func FuzzBounded(f *testing.F) {
	f.Add(offered(f, 3, 0, 6))
	f.Add(offered(f, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := single(t, &drawer{})
		var at halo.Slot
		var due bool
		var err error
		hi := 0
		decodertest.Heap(t, int64(len(b)), func() {
			if at, due, err = s.Accept(1, b); due {
				_, hi, err = s.Take(at)
			}
		})
		if err != nil || at.Backward || hi == 0 {
			return
		}
		if view, err := s.View(at); err != nil || len(view.Blocks) != 1 || view.Blocks[0].Epoch != at.Epoch {
			t.Errorf("%x leaves %v, %v", b, view.Blocks, err)
		}
	})
}

// recycler is an outbox with one buffer.
type recycler struct{ b []byte }

func (r *recycler) Buffer() ([]byte, error) { return r.b, nil }

func (r *recycler) Post(b []byte, _, _ int) error {
	r.b = b
	return nil
}

// An epoch does not allocate once every row has arrived.
func TestBoundedAllocatesNothing(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("the race detector makes pools forget what they hold")
	}
	r := &recycler{}
	s, team := single(t, r)
	rows, own, epoch := show(mirrored().OwnIDs, 3, 1), kernels.HostMat(6, 2, make([]float32, 12)), 2
	var failed error
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	pass := func() {
		epoch++
		for _, backward := range []bool{false, true} {
			at := halo.Slot{Epoch: epoch, Layer: 1, Backward: backward}
			x := rows
			if backward {
				x = s.SendBuffer(at)
			}
			for lo := 0; lo < 6; lo += 3 {
				note(s.Offer(at, x, lo, lo+3))
				_, _, err := s.Accept(1, r.b)
				note(err)
				_, hi, err := s.Take(at)
				note(err)
				if hi != lo+3 {
					note(fmt.Errorf("%d rows of epoch %d are taken", hi, epoch))
				}
			}
			_, err := s.View(at)
			note(err)
			note(s.Add(team, halo.Slot{Epoch: epoch, Layer: 1, Backward: true}, own, 0, 6))
		}
	}
	pass()
	if n := testing.AllocsPerRun(20, pass); n != 0 || failed != nil {
		t.Errorf("%v allocations, %v", n, failed)
	}
}

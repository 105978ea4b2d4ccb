package refresh_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/ranks/world"
)

// policies has the expected rows in each epoch, from 1 on, by the policies' definitions.
var policies = map[string]definition{
	"every:3": {
		used:   func(e int, _ uint32) (int, float32) { return latest(e, 3, 1), 1 },
		leaves: func(e int, _ uint32) bool { return e%3 == 1 }, once: true, oldest: 2,
	},
	"every:3,2": {
		used:   func(e int, _ uint32) (int, float32) { return latest(e-2, 3, 1), 1 },
		leaves: func(e int, _ uint32) bool { return e%3 == 1 }, once: true, lag: 2, oldest: 4,
	},
	"every:2,2": {
		used:   func(e int, _ uint32) (int, float32) { return latest(e-2, 2, 1), 1 },
		leaves: func(e int, _ uint32) bool { return e%2 == 1 }, once: true, lag: 2, oldest: 3,
	},
	"sample:0.5": {
		used: func(e int, v uint32) (int, float32) {
			if refresh.Drawn(seed, e, v, 0.5) {
				return e, 2
			}
			return 0, 0
		},
		leaves: func(e int, v uint32) bool { return refresh.Drawn(seed, e, v, 0.5) },
	},
	"delay:3": {
		used:   func(e int, v uint32) (int, float32) { return latest(e-3, 3, int(v%3)+1), 1 },
		leaves: func(e int, v uint32) bool { return (e-1)%3 == int(v%3) }, lag: 3, oldest: 5,
	},
	"delay:0": {
		used:   func(e int, _ uint32) (int, float32) { return e, 1 },
		leaves: func(int, uint32) bool { return true },
	},
	"drift:0": {
		used:   func(e int, _ uint32) (int, float32) { return e, 1 },
		leaves: func(int, uint32) bool { return true }, framed: true,
	},
	"age:3,0.5": {
		used: func(e int, _ uint32) (int, float32) {
			from := latest(e, 3, 1)
			return from, float32(math.Pow(0.5, float64(e-from)))
		},
		leaves: func(e int, _ uint32) bool { return e%3 == 1 }, once: true, ahead: 3, oldest: 2,
	},
}

// definition is a policy written down a second time.
type definition struct {
	// used returns the epoch of a vertex's rows that an epoch uses, 0 for none, and their
	// weight.
	used   func(epoch int, v uint32) (from int, weight float32)
	leaves func(epoch int, v uint32) bool
	once   bool // gradients are added in the epoch in which they are due, and not again
	lag    int
	ahead  int // rows are sent in extra passes, every ahead epochs
	oldest int // maximum age of a row in epochs
	framed bool
}

const seed = 3

// latest returns the last of the epochs first, first+every, … up to e; 0: none.
func latest(e, every, first int) int {
	if e < first {
		return 0
	}
	return e - (e-first)%every
}

// grads returns the epoch of a vertex's gradients that an epoch adds, 0 for none.
func (d *definition) grads(e int, v uint32) (int, float32) {
	from, weight := d.used(e, v)
	if d.once && from+d.lag != e {
		return 0, 0
	}
	return from, weight
}

func (m *member) timed(t *testing.T, name string, shapes []halo.Shape) *refresh.Timed {
	p, err := refresh.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return refresh.NewTimed(p, halo.HistoryOptions{
		Shapes: shapes, Seed: seed, Comm: m, Plan: halo.NewPlan(m.shard), Codec: m.codec, Team: m.team, Ops: m.team, Arena: m.arena,
	})
}

// Rows, their epochs, returned gradients and the bytes sent follow the definitions, also if a
// part moves to another process in the middle.
func TestTimed(t *testing.T) {
	data := planted(t)
	tested := map[string]bool{
		refresh.NameAlways: true, "previous": true, // TestSources
		refresh.NameNever: true, refresh.NameAuto: true, // in package ranks
	}
	seed := hosttest.Turn(t, 2)
	for k, name := range slices.Sorted(maps.Keys(policies)) {
		d := policies[name]
		kind, _, _ := strings.Cut(name, ":")
		tested[kind] = true
		for i, rows := range []string{"none", "bf16", "s2", "bf16+zstd+ef"} {
			if !hosttest.Sampled(2, i, k, seed) {
				continue
			}
			t.Run(name+" "+rows, func(t *testing.T) {
				together(t, data, rows, func(m *member) error { return m.goThroughTimed(t, name, &d) })
			})
		}
	}
	for _, kind := range refresh.Kinds() {
		if !tested[kind] {
			t.Errorf("no definition of policy %s is in the list of this test", kind)
		}
	}
}

func (m *member) goThroughTimed(t *testing.T, name string, d *definition) error {
	s := m.timed(t, name, shape())
	for epoch := 1; epoch <= 9; epoch++ {
		if epoch == 5 { // elsewhere
			state, err := s.Pack()
			if err == nil {
				state, err = halo.DecodeSourceState(state.Encode(nil))
			}
			if err != nil {
				return err
			}
			if err := s.Settle(); err != nil {
				return err
			}
			if s = m.timed(t, name, shape()); s.Unpack(state) != nil {
				return fmt.Errorf("what was packed cannot be unpacked")
			}
		}
		if got, want := s.Ahead(epoch), d.ahead > 0 && (epoch-1)%d.ahead == 0; got != want {
			return fmt.Errorf("a pass of its own before epoch %d: %t", epoch, got)
		}
		for l := range layers {
			if err := m.forwardTimed(s, d, halo.Slot{Epoch: epoch, Layer: l, Ahead: true}); s.Ahead(epoch) && err != nil {
				return err
			}
		}
		for l := range layers {
			if err := m.forwardTimed(s, d, halo.Slot{Epoch: epoch, Layer: l}); err != nil {
				return err
			}
		}
		if err := m.backwardTimed(s, d, epoch); err != nil {
			return err
		}
		if err := m.counted(s.TakeStats(), d, epoch); err != nil {
			return err
		}
	}
	if err := s.Settle(); err != nil {
		return err
	}
	if err := m.Barrier(); err != nil {
		return err
	}
	if m, ok, err := m.TryRecv(world.Any, world.Any); ok || err != nil {
		return fmt.Errorf("a message with tag %d is left, %v", m.Tag, err)
	}
	return nil
}

func (m *member) forwardTimed(s *refresh.Timed, d *definition, at halo.Slot) error {
	if at.Ahead && !s.Ahead(at.Epoch) {
		return nil
	}
	view, err := seen(s, at, show(m.shard.Own, at.Epoch, at.Layer))
	if err != nil {
		return err
	}
	for i, v := range m.shard.Ghosts {
		from, weight := d.used(at.Epoch, v)
		if int(view.Epochs[i]) != from || from > 0 && at.Epoch-from > d.oldest {
			return fmt.Errorf("epoch %d: ghost of vertex %d is said to be of epoch %d, want %d", at.Epoch, v, view.Epochs[i], from)
		}
		for k := range widths[at.Layer] {
			want := float32(0)
			if from > 0 {
				want = weight * row(v, from, at.Layer, k)
			}
			if got := view.Rows.Host()[i*widths[at.Layer]+k]; got != want {
				return fmt.Errorf("epoch %d layer %d: ghost of vertex %d has %v, want %v", at.Epoch, at.Layer, v, got, want)
			}
		}
	}
	return nil
}

// backwardTimed returns the row of a vertex in its layer as a gradient, once for each rank
// that has it as a ghost.
func (m *member) backwardTimed(s *refresh.Timed, d *definition, epoch int) error {
	const l = 1
	w, at, n := widths[l], halo.Slot{Epoch: epoch, Layer: l, Backward: true}, m.shard.NumOwn()
	buffer := s.SendBuffer(at)
	if !buffer.IsNil() {
		copy(buffer.Host(), show(m.shard.Ghosts, epoch, l).Host())
	}
	if err := pass(s, at, buffer); err != nil {
		return err
	}
	got := kernels.HostMat(n, w, make([]float32, n*w))
	if err := s.Add(m.team, at, got, 0, n); err != nil {
		return err
	}
	want := make([]float32, n*w)
	for _, i := range m.shard.SendRows {
		v := m.shard.Own[i]
		if from, weight := d.grads(epoch, v); from > 0 {
			for k := range w {
				want[int(i)*w+k] += weight * row(v, from, l, k)
			}
		}
	}
	for i, x := range got.Host() {
		if x != want[i] {
			return fmt.Errorf("epoch %d: the gradient of vertex %d is %v, want %v", epoch, m.shard.Own[i/w], x, want[i])
		}
	}
	return nil
}

// counted compares the traffic of an epoch with the counts from the shard: rows of both layers
// to each rank, and gradients of one from it.
func (m *member) counted(got halo.Stats, d *definition, epoch int) error {
	var want halo.Stats
	count := func(rows, width int) {
		if rows == 0 {
			return
		}
		want.RawBytes += int64(4 * rows * width)
		want.Messages++
		switch {
		case m.codec.Name() == "bf16":
			want.SentBytes += int64(32 + 2*rows*width)
		case d.framed:
			want.SentBytes += int64(32 + 4*rows*width)
		default:
			want.SentBytes += int64(4 * rows * width)
		}
	}
	for q := range ranks {
		sent, came := 0, 0
		for _, i := range m.shard.SendRows[m.shard.SendStart[q]:m.shard.SendStart[q+1]] {
			if d.leaves(epoch, m.shard.Own[i]) {
				sent++
			}
		}
		for _, v := range m.shard.Ghosts[m.shard.GhostStart[q]:m.shard.GhostStart[q+1]] {
			if d.leaves(epoch, v) {
				came++
			}
		}
		count(sent, widths[0])
		count(sent, widths[1])
		count(came, widths[1])
	}
	fixed := m.codec.Name() == "none" || m.codec.Name() == "bf16"
	if got.RawBytes != want.RawBytes || got.Messages != want.Messages || fixed && got.SentBytes != want.SentBytes {
		return fmt.Errorf("epoch %d: %d bytes of rows have left as %d in %d messages, want %d as %d in %d",
			epoch, got.RawBytes, got.SentBytes, got.Messages, want.RawBytes, want.SentBytes, want.Messages)
	}
	return nil
}

// Rows that are used LAG epochs later may take all that time: they may arrive with the last
// transfer that begins before they are due.
func TestNobodyWaitsForRowsOfLaterEpochs(t *testing.T) {
	data := planted(t)
	for name, lag := range map[string]int{"delay:3": 3, "delay:1": 1, "every:1,1": 1, "previous:GF0.5": 1} {
		t.Run(name, func(t *testing.T) {
			together(t, data, "none", func(m *member) error {
				l := &late{Comm: m.Comm, after: lag*slots - 1}
				m.Comm = l
				s := m.timed(t, name, shape())
				for epoch := 1; epoch <= 9; epoch++ {
					for at := range slots {
						slot := halo.Slot{Epoch: epoch, Layer: min(at, 1), Backward: at == 2}
						rows := show(m.shard.Own, epoch, slot.Layer)
						if slot.Backward {
							rows = s.SendBuffer(slot)
						}
						if err := pass(s, slot, rows); err != nil {
							return err
						}
						own := kernels.HostMat(len(m.shard.Own), widths[1], make([]float32, len(m.shard.Own)*widths[1]))
						var err error
						if slot.Backward {
							err = s.Add(m.team, slot, own, 0, own.Rows)
						} else {
							_, _, err = s.Take(slot)
						}
						if err != nil {
							return err
						}
					}
				}
				l.begun += lag * slots
				if err := s.Settle(); err != nil {
					return err
				}
				return m.Barrier()
			})
		})
	}
}

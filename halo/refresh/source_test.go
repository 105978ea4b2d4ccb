package refresh_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

const (
	ranks  = 3
	layers = 2
	epochs = 5
)

// widths of the layers' rows.
var widths = [layers]int{3, 2}

// shape describes two layers. Only the second one returns gradients.
func shape() []halo.Shape {
	return []halo.Shape{{Layer: 0, Width: widths[0]}, {Layer: 1, Width: widths[1], Backward: true}}
}

// row returns column c of vertex v in an epoch and a layer. All are whole numbers below 128, exact
// in bf16, so that sums are exact in any order.
func row(v uint32, epoch, layer, c int) float32 {
	return float32(int(v) + 10*epoch + 5*layer + 3*c)
}

// planted generates a graph, partitioned for the ranks.
func planted(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 60, Edges: 300, Features: 2, Classes: 2, Seed: 3}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.Run(data, partition.Options{Method: "hash", Parts: ranks, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return data
}

// show returns the rows of vertices in an epoch and a layer.
func show(vertices []uint32, epoch, l int) kernels.Mat {
	w := widths[l]
	x := make([]float32, len(vertices)*w)
	for i, v := range vertices {
		for k := range w {
			x[i*w+k] = row(v, epoch, l, k)
		}
	}
	return kernels.HostMat(len(vertices), w, x)
}

// member is one rank of a test.
type member struct {
	world.Comm
	shard *shard.Shard
	codec codec.Codec
	team  *kernels.Team
	arena *mapped.Arena
}

// together runs a rank's part of a test on every rank.
func together(t *testing.T, data, name string, part func(*member) error) {
	t.Helper()
	rows, err := codec.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	err = inproc.Run(ranks, func(c world.Comm) error {
		s, err := shard.Open(data, ranks, c.Rank())
		if err != nil {
			return err
		}
		defer s.Close()
		m := &member{c, s, rows, kernels.NewTeam(1), mapped.NewArena()}
		defer m.team.Close()
		defer m.arena.Free()
		return part(m)
	})
	if err != nil {
		t.Error(err)
	}
}

// always, previous and bounded are the policies.
func (m *member) always() halo.Source {
	e := halo.NewExchange(m, halo.NewPlan(m.shard), m.codec, m.team, m.team, m.arena, max(widths[0], widths[1]))
	return halo.NewAlways(e, shape(), 1)
}

func (m *member) previous() *refresh.Previous {
	return refresh.NewPrevious(shape(), 1, m, halo.NewPlan(m.shard), m.codec, m.team, m.team, m.arena)
}

func (m *member) bounded() halo.Source { return m.newest(world.NewOutbox(m), 0) }

func (m *member) newest(out comm.Outbox, longest int) *refresh.Bounded {
	return refresh.NewBounded(refresh.BoundedOptions{
		Rank: m.Rank(), Shapes: shape(), Plan: halo.NewPlan(m.shard), Codec: m.codec,
		Staleness: epochs, Outbox: out, Tag: tag, Longest: longest,
	}, m.team, m.arena)
}

const tag = 9

// await waits for a slot's rows in the way of the source.
func (m *member) await(s halo.Source, at halo.Slot) error {
	r, ok := s.(halo.Receiver)
	if !ok {
		return s.(halo.Collective).Await(at)
	}
	for {
		if here, err := r.Arrived(at); here || err != nil {
			return err
		}
		in, err := m.Recv(world.Any, tag)
		if err != nil {
			return err
		}
		if err := deliver(r, in); err != nil {
			return err
		}
	}
}

// deliver stores the rows of a message.
func deliver(r halo.Receiver, in world.Message) error {
	at, due, err := r.Accept(in.Source, in.Data)
	if err == nil && due {
		_, _, err = r.Take(at)
	}
	return err
}

// bounds returns the bounds of intervals of n rows, which a source that is not a Collective
// accepts separately.
func bounds(s halo.Source, n int) []int {
	if _, ok := s.(halo.Receiver); ok {
		return []int{0, n / 3, n / 2, n}
	}
	return []int{0, n}
}

// ahead wraps a source with a prediction: rows change by a known amount per epoch, and it
// extrapolates them to the reader's epoch.
type ahead struct {
	halo.Source
	buffer map[int][]float32 // by layer
}

func (a ahead) View(at halo.Slot) (halo.View, error) {
	view, err := a.Source.View(at)
	if err != nil || at.Backward {
		return view, err
	}
	x := append(a.buffer[at.Layer][:0], view.Rows.Host()...)
	a.buffer[at.Layer] = x
	for _, b := range view.Blocks {
		for i := b.First * view.Rows.Cols; i < (b.First+b.Rows)*view.Rows.Cols; i++ {
			x[i] += 10 * float32(at.Epoch-b.Epoch)
		}
	}
	view.Rows = kernels.HostMat(view.Rows.Rows, view.Rows.Cols, x)
	return view, nil
}

// For every policy, rows are of the epoch that the source reports, rows that never arrived are
// zeros, and owners get each holder's gradient once. A prediction can wrap every source.
func TestSources(t *testing.T) {
	data := planted(t)
	for name, make := range map[string]func(*member) halo.Source{
		"always": (*member).always, "previous": func(m *member) halo.Source { return m.previous() }, "bounded": (*member).bounded,
	} {
		for _, rows := range []string{"none", "s2", "bf16+zstd"} {
			t.Run(name+" "+rows, func(t *testing.T) {
				together(t, data, rows, func(m *member) error {
					s := make(m)
					for epoch := 1; epoch <= epochs; epoch++ {
						for l := range layers {
							if err := m.forward(s, epoch, l); err != nil {
								return err
							}
						}
						if err := m.backward(s, epoch); err != nil {
							return err
						}
					}
					if c, ok := s.(halo.Collective); ok {
						if err := c.Settle(); err != nil {
							return err
						}
					}
					return m.Barrier() // before any rank's memory goes
				})
			})
		}
	}
}

// offer offers rows of a slot and waits for those that are used.
func (m *member) offer(s halo.Source, at halo.Slot, rows kernels.Mat) error {
	parts := bounds(s, rows.Rows)
	for k := range len(parts) - 1 {
		if err := s.Offer(at, rows, parts[k], parts[k+1]); err != nil {
			return err
		}
	}
	return m.await(s, at)
}

func (m *member) forward(s halo.Source, epoch, l int) error {
	at := halo.Slot{Epoch: epoch, Layer: l}
	if err := m.offer(s, at, show(m.shard.Own, epoch, l)); err != nil {
		return err
	}
	if _, ok := s.(halo.Collective); ok {
		if _, _, err := s.Take(at); err != nil {
			return err
		}
	}
	view, err := s.View(at)
	if err != nil {
		return err
	}
	ages, err := agesOf(view)
	if err != nil {
		return err
	}
	predicted, err := ahead{s, map[int][]float32{}}.View(at)
	if err != nil {
		return err
	}
	for i, v := range m.shard.Ghosts {
		for k := range widths[l] {
			want, soon := float32(0), float32(0)
			if ages[i] > 0 {
				want, soon = row(v, ages[i], l, k), row(v, epoch, l, k)
			}
			at := i*widths[l] + k
			if got, then := view.Rows.Host()[at], predicted.Rows.Host()[at]; got != want || then != soon {
				return fmt.Errorf("epoch %d layer %d: ghost of vertex %d is said to be of epoch %d and has %v, want "+
					"%v; predicted is %v, want %v",
					epoch, l, v, ages[i], got, want, then, soon)
			}
		}
	}
	return nil
}

// agesOf returns the epoch of each row; 0: never received.
func agesOf(view halo.View) ([]int, error) {
	ages, end := make([]int, view.Rows.Rows), 0
	for _, b := range view.Blocks {
		if b.First < end || b.Rows < 1 || b.First+b.Rows > len(ages) || b.Epoch < 1 {
			return nil, fmt.Errorf("blocks %v of %d rows", view.Blocks, len(ages))
		}
		end = b.First + b.Rows
		for i := b.First; i < end; i++ {
			ages[i] = b.Epoch
		}
	}
	return ages, nil
}

// backward returns the gradient 1 for every ghost.
func (m *member) backward(s halo.Source, epoch int) error {
	l, n := 1, m.shard.NumOwn()
	at := halo.Slot{Epoch: epoch, Layer: l, Backward: true}
	buffer := s.SendBuffer(at)
	for i := range buffer.Host() {
		buffer.Host()[i] = 1
	}
	if err := m.offer(s, at, buffer); err != nil {
		return err
	}
	want := make([]float32, n)
	if _, late := s.(*refresh.Previous); !late || epoch > 1 {
		for _, r := range m.shard.SendRows {
			want[r]++
		}
	}
	got := kernels.HostMat(n, widths[l], make([]float32, n*widths[l]))
	parts := bounds(s, n)
	for k := range len(parts) - 1 {
		if err := s.Add(m.team, at, got, parts[k], parts[k+1]); err != nil {
			return err
		}
	}
	for i, x := range got.Host() {
		if x != want[i/widths[l]] {
			return fmt.Errorf("epoch %d: the gradient of vertex %d is %v, want %v", epoch, m.shard.Own[i/widths[l]], x, want[i/widths[l]])
		}
	}
	return nil
}

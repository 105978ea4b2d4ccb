package refresh_test

import (
	"fmt"
	"slices"
	"testing"

	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/comm"
	"siafu/halo/refresh"
	"siafu/kernels"
	"siafu/ranks/world"
)

// Every epoch gets the ghosts of the previous epoch, the first one zeros, and owners get the
// gradients of the previous epoch. Nothing remains in transit.
func TestPrevious(t *testing.T) {
	data := planted(t)
	for _, name := range []string{"none", "s2", "bf16+zstd+ef"} {
		t.Run(name, func(t *testing.T) { together(t, data, name, goThrough) })
	}
}

// goThrough runs some epochs on one rank.
func goThrough(m *member) error {
	l := &late{Comm: m.Comm, after: slots}
	m.Comm = l
	p, s := m.previous(), m.shard
	for epoch := range epochs {
		if epoch == goesOn { // elsewhere
			l.begun += slots
			state, err := p.Pack()
			if err != nil {
				return err
			}
			if err := p.Settle(); err != nil {
				return err
			}
			p = m.previous()
			if state, err = halo.DecodeSourceState(state.Encode(nil)); err != nil {
				return err
			}
			if err := p.Unpack(state); err != nil {
				return err
			}
		}
		for l := range layers {
			if err := forward(p, s, epoch, l); err != nil {
				return err
			}
		}
		if err := backward(p, s, epoch); err != nil {
			return err
		}
	}
	l.asked = 0
	if err := p.Progress(); err != nil || m.codec.Name() == "none" && l.asked != slots {
		return fmt.Errorf("%d of %d transfers under way are moved on, %v", l.asked, slots, err)
	}
	l.begun += slots
	if err := p.Settle(); err != nil {
		return err
	}
	if stats := p.TakeStats(); s.NumGhosts() > 0 && stats.RawBytes == 0 {
		return fmt.Errorf("no bytes are counted")
	}
	for layer := range layers {
		view, err := p.View(halo.Slot{Epoch: epochs, Layer: layer})
		if err != nil || len(view.Blocks) > 0 || slices.ContainsFunc(view.Rows.Host(), func(x float32) bool { return x != 0 }) {
			return fmt.Errorf("what was settled is not forgotten: %v, %v", view.Blocks, err)
		}
	}
	if err := m.Barrier(); err != nil {
		return err
	}
	if m, ok, err := m.TryRecv(world.Any, world.Any); ok || err != nil {
		return fmt.Errorf("a message with tag %d is left, %v", m.Tag, err)
	}
	return nil
}

// goesOn is the epoch before which the transfers are made again, as if a part moved to another
// process.
const goesOn = 3

// slots of an epoch: two forward, one backward.
const slots = 3

// late is a communicator on which rows arrive only after several other transfers have begun. A
// policy that waits for rows before it uses them deadlocks.
type late struct {
	world.Comm
	after, begun, asked int
}

func (c *late) Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (comm.Request, error) {
	r, err := c.Comm.Ialltoallv(send, sendCounts, recv, recvCounts)
	c.begun++
	return &lateRequest{r, c, c.begun + c.after}, err
}

type lateRequest struct {
	comm.Request
	comm *late
	due  int
}

func (r *lateRequest) Test() (bool, error) {
	r.comm.asked++
	if r.comm.begun < r.due {
		return false, nil
	}
	return r.Request.Test()
}

func (r *lateRequest) Wait() error {
	if r.comm.begun < r.due {
		return fmt.Errorf("somebody waits for rows that the next epoch is to use")
	}
	return r.Request.Wait()
}

// pass offers a slot's rows and waits for those that are used.
func pass(p halo.Collective, at halo.Slot, rows kernels.Mat) error {
	if err := p.Offer(at, rows, 0, rows.Rows); err != nil {
		return err
	}
	for {
		if arrived, err := p.Arrived(at); err != nil {
			return err
		} else if arrived {
			break
		}
	}
	return p.Await(at)
}

// seen offers the rows of own vertices, and returns the ghosts that the pass reads.
func seen(s *refresh.Timed, at halo.Slot, rows kernels.Mat) (halo.View, error) {
	if err := pass(s, at, rows); err != nil {
		return halo.View{}, err
	}
	if _, _, err := s.Take(at); err != nil {
		return halo.View{}, err
	}
	return s.View(at)
}

func forward(p halo.Collective, s *shard.Shard, epoch, l int) error {
	w, at := widths[l], halo.Slot{Epoch: epoch, Layer: l}
	if err := pass(p, at, show(s.Own, epoch, l)); err != nil {
		return err
	}
	if _, hi, err := p.Take(at); err != nil || (hi > 0) != (epoch > 0 && s.NumGhosts() > 0) {
		return fmt.Errorf("epoch %d: %d rows have come, %v", epoch, hi, err)
	}
	view, err := p.View(at)
	if err != nil {
		return err
	}
	ghosts := view.Rows.Host()
	for i, v := range s.Ghosts {
		for k := range w {
			want := float32(0)
			if epoch > 0 {
				want = row(v, epoch-1, l, k)
			}
			if got := ghosts[i*w+k]; got != want {
				return fmt.Errorf("epoch %d layer %d: ghost of vertex %d has %v, want %v", epoch, l, v, got, want)
			}
		}
	}
	return nil
}

// backward returns the row of vertex v in its layer as a gradient, once for every rank that
// has it as a ghost.
func backward(p halo.Collective, s *shard.Shard, epoch int) error {
	const l = 1
	w, at := widths[l], halo.Slot{Epoch: epoch, Layer: l, Backward: true}
	buffer := p.SendBuffer(at)
	copy(buffer.Host(), show(s.Ghosts, epoch, l).Host())
	if err := pass(p, at, buffer); err != nil {
		return err
	}
	grads, holders := make([]float32, s.NumOwn()*w), make([]float32, s.NumOwn())
	if err := p.Add(nil, at, kernels.HostMat(s.NumOwn(), w, grads), 0, s.NumOwn()); err != nil {
		return err
	}
	for _, r := range s.SendRows {
		holders[r]++
	}
	for i, v := range s.Own {
		for k := range w {
			want := float32(0)
			if epoch > 0 {
				want = holders[i] * row(v, epoch-1, l, k)
			}
			if got := grads[i*w+k]; got != want {
				return fmt.Errorf("epoch %d: the gradient of vertex %d is %v, want %v", epoch, v, got, want)
			}
		}
	}
	return nil
}

package refresh_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"siafu/graph/generate"
	"siafu/graph/mapped"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/halo/refresh"
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

// shape are layers of which only the second one's gradients go home.
func shape() []refresh.Shape {
	return []refresh.Shape{{Layer: 0, Width: widths[0]}, {Layer: 1, Width: widths[1], Backward: true}}
}

// row is what vertex v shows in an epoch and a layer, column c; all are whole
// numbers below 128, which bf16 holds, so that sums are exact in any order.
func row(v uint32, epoch, layer, c int) float32 {
	return float32(int(v) + 10*epoch + 5*layer + 3*c)
}

// Every epoch gets the ghosts of the epoch before, the first one zeros, and
// owners get the gradients of the epoch before; nothing is left on its way.
func TestPrevious(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 60, Edges: 300, Features: 2, Classes: 2, Seed: 3}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.Run(data, partition.Options{Method: "hash", Parts: ranks, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", "s2", "bf16+zstd+ef"} {
		t.Run(name, func(t *testing.T) {
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
				return goThrough(c, s, rows)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// goThrough goes through some epochs on one rank.
func goThrough(c world.Comm, s *shard.Shard, rows codec.Codec) error {
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	defer team.Close()
	defer arena.Free()
	l := &late{Comm: c}
	p := refresh.NewPrevious(shape(), l, halo.NewPlan(s), rows, team, team, arena)
	p.Record()
	for epoch := range epochs {
		luggage := p.Pack(epoch)
		if epoch == goesOn { // elsewhere
			l.begun += slots
			if err := p.Settle(); err != nil {
				return err
			}
			p = refresh.NewPrevious(shape(), l, halo.NewPlan(s), rows, team, team, arena)
			p.Record()
			if err := p.Unpack(luggage); err != nil {
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
	l.begun += slots
	if err := p.Settle(); err != nil {
		return err
	}
	if stats := p.TakeStats(); s.NumGhosts() > 0 && stats.RawBytes == 0 {
		return fmt.Errorf("no bytes are counted")
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	if m, ok, err := c.TryRecv(world.Any, world.Any); ok || err != nil {
		return fmt.Errorf("a message with tag %d is left, %v", m.Tag, err)
	}
	return nil
}

// goesOn is the epoch before which the transfers are made anew, as where a part goes
// on elsewhere.
const goesOn = 3

// slots of an epoch: two forward, one backward.
const slots = 3

// late is a communicator on which nothing arrives before the next transfer of the
// same slot has begun: a policy that waits for rows of its own epoch comes to a
// stand there.
type late struct {
	world.Comm
	begun int
}

func (c *late) Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (comm.Request, error) {
	r, err := c.Comm.Ialltoallv(send, sendCounts, recv, recvCounts)
	c.begun++
	return &lateRequest{r, c, c.begun + slots}, err
}

type lateRequest struct {
	comm.Request
	comm *late
	due  int
}

func (r *lateRequest) Test() (bool, error) {
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

// pass begins a slot's transfer and waits for the one that is used.
func pass(p halo.Source, at halo.Slot, begin func(*halo.Exchange) error) (*halo.Exchange, error) {
	if err := begin(p.Leaving(at)); err != nil {
		return nil, err
	}
	p.Begun(at)
	for {
		if arrived, err := p.Arrived(at); err != nil {
			return nil, err
		} else if arrived {
			break
		}
	}
	if err := p.Await(at); err != nil {
		return nil, err
	}
	e := p.Arriving(at)
	if e.UnderWay() != (at.Epoch > 0) {
		return nil, fmt.Errorf("epoch %d: the transfer that is used is under way: %t", at.Epoch, e.UnderWay())
	}
	return e, nil
}

func forward(p halo.Source, s *shard.Shard, epoch, l int) error {
	x, w := make([]float32, s.NumOwn()*widths[l]), widths[l]
	for i, v := range s.Own {
		for k := range w {
			x[i*w+k] = row(v, epoch, l, k)
		}
	}
	at := halo.Slot{Epoch: epoch, Layer: l}
	e, err := pass(p, at, func(e *halo.Exchange) error {
		return e.BeginForward(kernels.HostMat(s.NumOwn(), w, x), halo.Key{Epoch: epoch, Layer: l})
	})
	if err != nil {
		return err
	}
	rows := e.Ghosts(w)
	if e.UnderWay() {
		if rows, err = e.EndForward(); err != nil {
			return err
		}
	}
	ghosts := rows.Host()
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

// backward sends home what vertex v has in its layer, once for every rank that
// holds it.
func backward(p halo.Source, s *shard.Shard, epoch int) error {
	const l = 1
	w, at := widths[l], halo.Slot{Epoch: epoch, Layer: l, Backward: true}
	out := p.Leaving(at).Ghosts(w).Host()
	for i, v := range s.Ghosts {
		for k := range w {
			out[i*w+k] = row(v, epoch, l, k)
		}
	}
	e, err := pass(p, at, func(e *halo.Exchange) error { return e.BeginBackward(w, halo.Key{Epoch: epoch, Layer: l}) })
	if err != nil {
		return err
	}
	grads, holders := make([]float32, s.NumOwn()*w), make([]float32, s.NumOwn())
	if e.UnderWay() {
		if err := e.EndBackward(kernels.HostMat(s.NumOwn(), w, grads)); err != nil {
			return err
		}
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

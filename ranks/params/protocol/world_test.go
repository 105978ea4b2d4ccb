package protocol

import (
	"fmt"
	"slices"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/wire"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// peer is a rank of a world that sends and receives messages.
type peer struct {
	world.Comm
	room []float32
}

func (p *peer) send(ms ...Message) error {
	for _, m := range ms {
		if _, err := p.Isend(Encode(nil, m), m.To, 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *peer) receive() (Message, error) {
	in, err := p.Recv(world.Any, 0)
	if err != nil {
		return Message{}, err
	}
	return Decode(in.Data, in.Source, p.Rank(), p.room)
}

func (p *peer) serve(s *Server) error {
	for !s.Done() {
		m, err := p.receive()
		if err != nil {
			return err
		}
		out, err := s.Step(m)
		if err != nil {
			return err
		}
		if err := p.send(out...); err != nil {
			return err
		}
	}
	return nil
}

// graphRank sends whole-number gradients, which need no weights: only the loop of a graph
// rank.
func (p *peer) graphRank(c Setting, epochs int) ([]float32, error) {
	h, q := NewChooser(c, p.Rank(), len(twoLayers), 5), NewProgress(c, p.Rank())
	next := slices.Repeat([]int{1}, c.Intervals[p.Rank()]) // epoch that an interval starts or is in
	idle := slices.Repeat([]bool{true}, len(next))
	for q.Slowest() < epochs {
		for i := range next {
			if idle[i] && next[i] <= epochs && q.MayStart(next[i]) {
				idle[i] = false
				if err := p.send(h.Fetch(i, next[i], 0)...); err != nil {
					return nil, err
				}
			}
		}
		m, err := p.receive()
		if err != nil {
			return nil, err
		}
		if m.Type == wire.Finished {
			err = q.Step(m)
		} else if err = h.Take(m); err == nil {
			err = p.back(c, h, q, m)
			next[m.Interval]++
			idle[m.Interval] = true
		}
		if err != nil {
			return nil, err
		}
	}
	return p.last(h, epochs)
}

// back runs an interval's backward pass.
func (p *peer) back(c Setting, h *Chooser, q *Progress, m Message) error {
	for l := len(twoLayers) - 1; l >= 0; l-- {
		g := whole(c.firsts()[p.Rank()]+m.Interval, m.Epoch, l, nil)
		if err := p.send(h.Gradient(m.Interval, m.Epoch, l, g)); err != nil {
			return err
		}
	}
	return p.send(q.Finish(m.Interval, m.Epoch)...)
}

// last pulls the trained weights and leaves.
func (p *peer) last(h *Chooser, epochs int) ([]float32, error) {
	if err := p.send(h.Pull(epochs + 1)); err != nil {
		return nil, err
	}
	m, err := p.receive()
	if err == nil {
		err = h.Take(m)
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(m.Values), p.send(h.Leave()...)
}

// Ranks that run at the same time end with the weights that whole gradients
// add up to.
func TestOverAWorld(t *testing.T) {
	const epochs = 30
	for s := range 3 {
		t.Run(fmt.Sprintf("s=%d", s), func(t *testing.T) {
			c := Setting{Intervals: []int{3, 1, 2}, Servers: 2, Staleness: s}
			err := inproc.Run(5, func(w world.Comm) error {
				w.SetLimits(world.Limits{Abort: hosttest.Patience})
				p := &peer{w, make([]float32, 5)}
				if k := w.Rank() - c.Graph(); k >= 0 {
					return p.serve(New(c, k, twoLayers, values(5), &sgd{}))
				}
				got, err := p.graphRank(c, epochs)
				if want := wholeVersion(6, 0, epochs+1); err == nil && !slices.Equal(got, want) {
					t.Errorf("rank %d ends with %v, want %v", w.Rank(), got, want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

package params_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/wire"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

var (
	spec = model.Spec{Kind: "mlp", Dims: []int{3, 2, 2}}
	adam = kernels.OptimizerConfig{Name: "adam", LR: 0.1, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
)

// gradient returns a rank's gradient, different in every element and epoch; sums depend on
// their order.
func gradient(rank, epoch int, weights []float32) []float32 {
	g := make([]float32, len(weights))
	for i, w := range weights {
		g[i] = float32(math.Sin(float64(1+i+7*rank+13*epoch))) + w/3
	}
	return g
}

// outcome is what a graph rank received: the weights of every epoch and the optimiser's state
// at the start of the last one.
type outcome struct{ versions, state [][]float32 }

// epochs trains from the first epoch to the last as a graph rank does: it leaves without
// training the last pulled epoch.
func epochs(s params.Source, c params.Control, rank, first, last int) (o outcome, err error) {
	flat := make([]float32, spec.NumWeights())
	for epoch := first; ; epoch++ {
		if err := s.Pull(epoch, flat); err != nil {
			return o, err
		}
		o.versions = append(o.versions, slices.Clone(flat))
		if epoch == last {
			state, err := s.State()
			for _, slot := range state {
				o.state = append(o.state, slices.Clone(slot))
			}
			if err != nil {
				return o, err
			}
			return o, c.Leave()
		}
		if err := s.Step(epoch, gradient(rank, epoch, flat)); err != nil {
			return o, err
		}
	}
}

// trained returns every graph rank's outcome of a run that starts after an epoch.
func trained(t *testing.T, graph, servers, behind, last int) []outcome {
	t.Helper()
	seen, slots := make([]outcome, graph), 2
	err := inproc.Run(graph+servers, func(w world.Comm) error {
		w.SetLimits(world.Limits{Abort: hosttest.Patience})
		a := mapped.NewArena()
		defer a.Free()
		u, err := params.NewUpdater(adam, spec, true, nil, kernels.NewTeam(1), a)
		if err != nil {
			return err
		}
		weights, setting := make([]float32, spec.NumWeights()), params.Setting(graph, servers, behind)
		if w.Rank() >= graph {
			s := protocol.New(setting, w.Rank()-graph, params.Layers(spec), weights, u)
			return params.NewServer(w, params.TagSync, s, nil, nil).Run()
		}
		var source params.Source = params.NewReplicated(w, spec, weights, u, a)
		var control params.Control = params.NoServers{}
		if servers > 0 {
			c := params.NewClient(w, setting, params.Layers(spec), slots)
			source, control = c, c
		}
		seen[w.Rank()], err = epochs(source, control, w.Rank(), behind+1, last)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// All ranks receive the same versions. With one server they equal those of replicated weights,
// because the order of sums is the same.
func TestServersAndReplicas(t *testing.T) {
	for graph := 1; graph <= 4; graph++ {
		for _, behind := range []int{0, 5} {
			want := trained(t, graph, 0, behind, behind+6)[0]
			for servers := 0; servers <= graph; servers++ {
				t.Run(fmt.Sprintf("ranks=%d/servers=%d/behind=%d", graph, servers, behind), func(t *testing.T) {
					for rank, got := range trained(t, graph, servers, behind, behind+6) {
						if servers > 1 { // sums of sums have another order
							if rank == 0 {
								want = got
							}
						}
						if !same(got.versions, want.versions) || !same(got.state, want.state) {
							t.Errorf("rank %d: %v, want %v", rank, got, want)
						}
					}
				})
			}
		}
	}
}

func same(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, func(x, y []float32) bool { return slices.Equal(x, y) })
}

// The request to a server's process reaches its ranks with their weights, until one reports it
// as done.
func TestAskedOfAServer(t *testing.T) {
	err := inproc.Run(2, func(w world.Comm) error {
		w.SetLimits(world.Limits{Abort: hosttest.Patience})
		setting := params.Setting(1, 1, 0)
		if w.Rank() == 0 {
			c := params.NewClient(w, setting, []protocol.Range{{Hi: 2}}, 0)
			flat := make([]float32, 2)
			for _, want := range []signals.Request{signals.Checkpoint, signals.None} {
				if err := c.Pull(1, flat); err != nil {
					return err
				}
				if got := c.Asked(); got != want {
					return fmt.Errorf("asked for %v, want %v", got, want)
				}
				c.Saved()
			}
			return c.Leave()
		}
		for epoch := 0; ; epoch++ { // a server whose process is asked for a checkpoint until it is told
			in, err := w.Recv(0, params.TagSync)
			if err != nil {
				return err
			}
			m, err := protocol.Decode(in.Data, 0, 1, nil)
			if err != nil || m.Type == wire.Leave {
				return err
			}
			answer := protocol.Message{Type: wire.Weights, Version: m.Version, Values: make([]float32, 2)}
			if m.Ask == 0 {
				answer.Ask = uint8(signals.Checkpoint)
			}
			if _, err := w.Isend(protocol.Encode(nil, answer), 0, params.TagSync); err != nil {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

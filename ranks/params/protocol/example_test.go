package protocol_test

import (
	"fmt"

	"siafu/ranks/params/protocol"
)

// descent is w -= g.
type descent struct{}

func (descent) Update(_, _ int, weights, grad []float32) {
	for i, g := range grad {
		weights[i] -= g
	}
}

func (descent) State() [][]float32 { return nil }

// One rank with two intervals and one server, for one epoch of a network with
// one layer of two weights.
func Example() {
	setting := protocol.Setting{Intervals: []int{2}, Servers: 1, Staleness: 1}
	layers := []protocol.Range{{Lo: 0, Hi: 2}}
	s := protocol.New(setting, 0, layers, []float32{10, 20}, descent{})
	rank := protocol.NewChooser(setting, 0, len(layers), 2)
	progress := protocol.NewProgress(setting, 0)

	deliver := func(ms ...protocol.Message) {
		for _, m := range ms {
			out, err := s.Step(m)
			for _, m := range out {
				fmt.Println("interval", m.Interval, "takes version", m.Version, m.Values)
				err = rank.Take(m)
			}
			if err != nil {
				fmt.Println(err)
			}
		}
	}
	for interval := range 2 {
		deliver(rank.Fetch(interval, 1, 0)...)
	}
	for interval := range 2 {
		deliver(rank.Gradient(interval, 1, 0, []float32{1, 2}))
		progress.Finish(interval, 1)
	}
	fmt.Println("version", s.Version(), s.Weights())
	fmt.Println("may start epoch 3:", progress.MayStart(3), "epoch 4:", progress.MayStart(4))
	// Output:
	// interval 0 takes version 1 [10 20]
	// interval 1 takes version 1 [10 20]
	// version 2 [8 16]
	// may start epoch 3: true epoch 4: false
}

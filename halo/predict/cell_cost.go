package predict

import (
	"math"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// measuredSources is the number of sources of each own vertex in measurements of cells.
const measuredSources = 32

// measureCells measures a recurrent predictor with the given number of own vertices, of which all are
// sampled, and as many ghosts. Half of a vertex's sources are ghosts. Trainings take all steps of Adam
// over a window of 4 steps, the default.
func measureCells(kind string, width, own int, team *kernels.Team, seconds func(call func()) float64) (c Cost) {
	a := mapped.NewArena()
	defer a.Free()
	s := Wrap(nil, Options{
		Kind: kind, Rows: own, Shapes: []halo.Shape{{Width: width}}, Plan: &halo.Plan{Own: own, Ghosts: own},
		Timing: refresh.Timing{Period: 1, Interval: 1, MaxAge: 1, Decay: 1}, Team: team, Arena: a,
		Shard: measuredPart(own), Window: 4, Every: mostSteps, LR: 0.01, Fresh: true, Sums: oneRank{},
	})
	r, n := s.recurrent, s.recurrent.layers[0]
	rows := make([]float32, (own+1)*width)
	for i := range rows { // half of the numbers are zeros, as after ReLU
		rows[i] = max(float32(math.Sin(float64(i)*float64(i))), 0)
	}
	ghosts := kernels.HostMat(own, width, rows[:own*width])
	view := halo.View{Rows: ghosts, Blocks: []halo.Block{{Rows: own, Epoch: 1}}}
	n.record(rows, nil)
	n.push(1, 0, nil)
	r.findEpochs(view)
	c.Step = seconds(func() { r.step(n, 1, 1, ghosts) }) / float64(2*own)
	n.record(rows[width:], nil)
	r.weigh(2)
	c.Fit = seconds(func() { r.fitFresh(n, 2) })
	c.Row = seconds(func() { r.apply(n, s.predicted(n.layer, own), ghosts) }) / float64(own)
	c.Train = seconds(func() { _ = r.train(n, 2, view) }) // oneRank never fails
	return c
}

// measuredPart returns a part with as many ghosts as own vertices.
func measuredPart(own int) *shard.Shard {
	s := &shard.Shard{Own: make([]uint32, own), Ghosts: make([]uint32, own), In: graph.CSR{Offsets: []int64{0}}}
	for v := range own {
		for k := range measuredSources {
			first := uint32(k / (measuredSources / 2) * own) // own vertices, then ghosts
			if s.In.Cols = append(s.In.Cols, first+uint32((v*31+k*k*7)%own)); k == measuredSources/2-1 {
				s.InOwnEnd = append(s.InOwnEnd, int64(len(s.In.Cols)))
			}
		}
		s.In.Offsets = append(s.In.Offsets, int64(len(s.In.Cols)))
	}
	return s
}

// oneRank implements Sums for one rank.
type oneRank struct{}

func (oneRank) Float64s([]float64) error { return nil }
func (oneRank) Float32s([]float32) error { return nil }

package predict

import (
	"math"
	"testing"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// given is a source with the same rows in each epoch.
type given struct {
	halo.Collective // nil
	view            halo.View
}

func (s *given) View(halo.Slot) (halo.View, error) { return s.view, nil }

// BenchmarkRecurrent measures a layer of 64 columns of a part with 5,700 own vertices, 13,800 ghosts,
// 80 sources of an own vertex and 12 of a ghost: a step, a prediction in a later epoch, and a training.
func BenchmarkRecurrent(b *testing.B) {
	const own, ghosts, width, degree = 5700, 13800, 64, 80
	part := &shard.Shard{Own: make([]uint32, own), Ghosts: make([]uint32, ghosts), In: graph.CSR{Offsets: []int64{0}}}
	for v := range own {
		for k := range degree - 29 {
			part.In.Cols = append(part.In.Cols, uint32((v*31+k*k*7)%own))
		}
		part.InOwnEnd = append(part.InOwnEnd, int64(len(part.In.Cols)))
		for k := range 29 {
			part.In.Cols = append(part.In.Cols, uint32(own+(v*13+k*k*5)%ghosts))
		}
		part.In.Offsets = append(part.In.Offsets, int64(len(part.In.Cols)))
	}
	for _, kind := range []string{"lstm-gcn", "gru-gcn", "lstm-gat"} {
		team, arena := kernels.NewTeam(1), mapped.NewArena()
		rows := func(n, epoch int) kernels.Mat {
			x := make([]float32, n*width)
			for i := range x {
				x[i] = float32(math.Sin(float64(i)*1.3) + 0.1*math.Cos(float64(i*epoch)))
			}
			return kernels.HostMat(n, width, x)
		}
		inner := &given{view: halo.View{Rows: rows(ghosts, 0), Blocks: []halo.Block{{Rows: ghosts, Epoch: 1}}}}
		p, _ := refresh.Parse("every:10")
		s := Wrap(inner, Options{
			Kind: kind, Shapes: []halo.Shape{{Layer: 1, Width: width, Backward: true}}, Plan: &halo.Plan{Own: own, Ghosts: ghosts},
			Timing: p.Timing(), Team: team, Arena: arena, Shard: part, Window: 4, Every: 1, LR: 0.01, Fresh: true, Sums: oneRank{},
		})
		r, n := s.recurrent, s.recurrent.layers[1]
		n.record(rows(own, 1).Host(), nil)
		n.push(1, 0, nil)
		dst := s.predicted(n.layer, ghosts)
		r.take(n.layer, 1, inner.view, dst)
		b.Run(kind+"/step", func(b *testing.B) {
			for range b.N {
				r.step(n, 1, 1, inner.view.Rows)
			}
		})
		n.record(rows(own, 2).Host(), nil)
		b.Run(kind+"/predict", func(b *testing.B) {
			for range b.N {
				if ok, reason := r.take(n.layer, 2, inner.view, dst); !ok {
					b.Fatal(reason)
				}
			}
		})
		b.Run(kind+"/train", func(b *testing.B) {
			for range b.N {
				if err := s.Train(2); err != nil {
					b.Fatal(err)
				}
			}
		})
		team.Close()
		arena.Free()
	}
}

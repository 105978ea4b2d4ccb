package halo_test

import (
	"fmt"
	"testing"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// funnel returns a plan in which each rank but the last sends an own row and a sum to the last
// rank, all sums for the same vertex.
func funnel(rank, ranks int) *halo.Plan {
	const vertex = 77
	p := &halo.Plan{Parts: ranks, Own: 1, OwnIDs: []uint32{uint32(rank)}}
	p.SendStart, p.RecvStart = make([]int64, ranks+1), make([]int64, ranks+1)
	if rank < ranks-1 {
		p.Sums, p.SendRows, p.OwnIDs = 1, []uint32{0, 1}, append(p.OwnIDs, vertex)
		p.SendStart[ranks] = 2
		return p
	}
	for q := range ranks - 1 {
		p.RecvStart[q+1] = int64(2 * (q + 1))
		p.GhostIDs = append(p.GhostIDs, uint32(q), vertex)
	}
	p.RecvStart[ranks], p.Ghosts = int64(2*(ranks-1)), 2*(ranks-1)
	return p
}

// Several ranks round their sums for one vertex independently: the error of the total grows
// with the square root of the number of ranks.
func TestSumsAreRoundedApart(t *testing.T) {
	const ranks, cols = 17, 512
	x := make([]float32, 2*cols)
	for i := range x[:cols] {
		u := kernels.Philox([4]uint32{uint32(i)}, [2]uint32{})
		x[i] = float32(u[0]) / (1 << 32)
	}
	copy(x[cols:], x[:cols])
	for _, name := range []string{"int4", "adaptive", "int4+ef", "int4+zstd"} {
		t.Run(name, func(t *testing.T) {
			err := inproc.Run(ranks, func(w world.Comm) error {
				team, arena := kernels.NewTeam(1), mapped.NewArena()
				defer team.Close()
				defer arena.Free()
				e := halo.NewExchange(w, funnel(w.Rank(), ranks), named(t, name), team, team, arena, cols)
				copy(e.Sums(cols).Host(), x)
				if err := e.BeginForward(matrix(cols, x[:cols]), halo.Key{Seed: 3, Epoch: 1}); err != nil {
					return err
				}
				ghosts, err := e.EndForward()
				if err == nil && w.Rank() == ranks-1 {
					err = roundedApart(ghosts.Host(), x[:cols])
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// roundedApart checks the errors of rows that all are x: every second one is a sum.
func roundedApart(ghosts, x []float32) error {
	cols := len(x)
	var one, all float64 // squared errors of single sums and of their total
	for j := range cols {
		total := 0.0
		for at := cols + j; at < len(ghosts); at += 2 * cols {
			d := float64(ghosts[at] - x[j])
			total += d
			one += d * d
		}
		all += total * total
	}
	if !(one > 0 && all < 1.5*one) {
		return fmt.Errorf("the squared error of a total is %.3g, those of its sums are %.3g together", all, one)
	}
	return nil
}

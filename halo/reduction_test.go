package halo_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// With sums every vertex gathers exactly the same total from ghosts, and gets the same total
// of gradients back. The plans of ranks match and have no more rows than without sums.
func TestReduction(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		list := shards(t, dir)
		cols, terms := rapid.IntRange(1, 4).Draw(t, "cols"), halo.SumCosts{Edge: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "price")}
		plans, arena := make([]*halo.Plan, len(list)), mapped.NewArena()
		defer arena.Free()
		err := inproc.Run(len(list), func(c world.Comm) error {
			return gatherReduced(c, list[c.Rank()], terms, cols, plans, arena)
		})
		if err != nil {
			t.Fatal(err)
		}
		for q, p := range plans {
			for o, owner := range plans {
				if p.RecvStart[o+1]-p.RecvStart[o] != owner.SendStart[q+1]-owner.SendStart[q] {
					t.Fatalf("rank %d sends rank %d not what that receives", o, q)
				}
				for i, r := range owner.SendRows[owner.SendStart[q]:owner.SendStart[q+1]] {
					if id := p.GhostIDs[p.RecvStart[o]+int64(i)]; id != owner.OwnIDs[r] {
						t.Fatalf("row %d from rank %d to %d has id %d there and %d here", i, o, q, owner.OwnIDs[r], id)
					}
				}
			}
		}
		for _, s := range list {
			s.Close()
		}
	})
}

// gatherReduced compares both directions with a gather along the shard itself; value makes
// every sum exact. Own rows have the scale 2, ghosts their owners' scale.
func gatherReduced(c world.Comm, s *shard.Shard, terms halo.SumCosts, cols int, plans []*halo.Plan, arena *mapped.Arena) error {
	team := kernels.NewTeam(2)
	defer team.Close()
	r, err := halo.Reduce(c, s, terms, team, arena)
	if err != nil {
		return err
	}
	plans[c.Rank()] = r.Plan
	if r.Plan.Ghosts > s.NumGhosts() || r.Rows != s.NumGhosts() {
		return fmt.Errorf("%d ghosts became %d", s.NumGhosts(), r.Plan.Ghosts)
	}
	none, _ := codec.ByName("none")
	e := halo.NewExchange(c, r.Plan, none, team, team, arena, cols)
	x := make([]float32, s.NumOwn()*cols)
	for i, v := range s.Own {
		for j := range cols {
			x[i*cols+j] = value(v, j)
		}
	}
	col := slices.Repeat([]float32{2}, s.NumOwn()+s.NumGhosts())
	flat.SpMM(team, e.Sums(cols).Host(), cols,
		kernels.Gather{Begin: r.Sums.Offsets[:r.Plan.Sums], End: r.Sums.Offsets[1:], Cols: r.Sums.Cols, ColScale: col}, x, false)
	if err := e.BeginForward(matrix(cols, x), halo.Key{}); err != nil {
		return err
	}
	ghosts, err := e.EndForward()
	if err != nil {
		return err
	}
	got, want := make([]float32, len(x)), make([]float32, len(x))
	in := r.In
	flat.SpMM(team, got, cols, kernels.Gather{Begin: in.Begin, End: in.End, Cols: in.Cols, Base: uint32(in.Base),
		ColScale: r.Scale(col, arena)}, ghosts.Host(), false)
	all := make([]float32, s.NumGhosts()*cols)
	for i, v := range s.Ghosts {
		for j := range cols {
			all[i*cols+j] = value(v, j)
		}
	}
	in = s.GhostEdges()
	flat.SpMM(team, want, cols,
		kernels.Gather{Begin: in.Begin, End: in.End, Cols: in.Cols, Base: uint32(in.Base), ColScale: col}, all, false)
	if !slices.Equal(got, want) {
		return fmt.Errorf("rank %d gathers %v, not %v", c.Rank(), got, want)
	}
	return returnReduced(c, s, r, e, cols, team, arena)
}

// returnReduced returns gradients: value for each own destination.
func returnReduced(c world.Comm, s *shard.Shard, r *halo.Reduction, e *halo.Exchange, cols int,
	team *kernels.Team, arena *mapped.Arena) error {
	grads := make([]float32, s.NumOwn()*cols)
	for i, v := range s.Own {
		for j := range cols {
			grads[i*cols+j] = value(v, j)
		}
	}
	back := func(edges shard.Edges, dst []float32) {
		t := edges.BySource(arena)
		flat.SpMM(team, dst, cols, kernels.Gather{Begin: t.Offsets[:edges.Sources], End: t.Offsets[1:], Cols: t.Cols}, grads, false)
	}
	got := make([]float32, len(grads))
	back(r.In, e.Ghosts(cols).Host())
	if err := e.BeginBackward(cols, halo.Key{}); err != nil {
		return err
	}
	if err := e.EndBackward(matrix(cols, got)); err != nil {
		return err
	}
	if r.Plan.Sums > 0 {
		flat.SpMM(team, got, cols, kernels.Gather{Begin: r.SumsOf.Offsets[:s.NumOwn()], End: r.SumsOf.Offsets[1:], Cols: r.SumsOf.Cols},
			e.Sums(cols).Host(), true)
	}

	plain, _ := codec.ByName("none")
	whole := halo.NewExchange(c, halo.NewPlan(s), plain, team, team, arena, cols)
	want := make([]float32, len(grads))
	back(s.GhostEdges(), whole.Ghosts(cols).Host())
	if err := whole.BeginBackward(cols, halo.Key{}); err != nil {
		return err
	}
	if err := whole.EndBackward(matrix(cols, want)); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("rank %d is returned %v, not %v", c.Rank(), got, want)
	}
	return nil
}

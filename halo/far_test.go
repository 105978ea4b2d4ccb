package halo_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/cuda"
	"siafu/cuda/ptx"
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Where Ops compute elsewhere, rows and gradients come to the bits of the host's
// exchange, in chunks, with errors fed back, with rows that are sent raw, and with
// codecs that have no kernels. Nobody asks what has arrived: whoever ends an exchange
// waits for copies that nobody has waited for.
func TestExchangesElsewhere(t *testing.T) {
	for _, name := range []string{"none", "s2", "bf16", "int8", "int4+ef", "bf16+ef"} {
		t.Run(name, func(t *testing.T) {
			want, got := exchanged(t, name, false), exchanged(t, name, true)
			for rank := range want {
				for i, v := range want[rank] {
					if g := got[rank][i]; math.Float32bits(g) != math.Float32bits(v) && (g == g || v == v) {
						t.Fatalf("rank %d: number %d is %v instead of %v", rank, i, g, v)
					}
				}
			}
		})
	}
}

// exchanged is what each of three ranks has after two epochs: the ghosts and own rows,
// to which gradients are added, of each.
func exchanged(t *testing.T, name string, elsewhere bool) [3][]float32 {
	const n, cols = 900, 301 // two chunks of int8 for each rank
	var all [3][]float32
	err := inproc.Run(3, func(w world.Comm) (err error) {
		team, arena := kernels.NewTeam(1), mapped.NewArena()
		defer team.Close()
		var ops kernels.Ops = team
		if elsewhere {
			d := ptx.New(ptx.Settings{})
			defer d.Close()
			if ops, err = cuda.New(d); err != nil {
				return err
			}
			defer ops.Close()
		}
		defer arena.Free()
		e := halo.NewExchange(w, star(w.Rank(), 3, n), named(t, name), team, ops, arena, cols)
		rng := rand.New(rand.NewPCG(uint64(w.Rank()), 7))
		own, host := kernels.NewMat(ops, arena, n, cols), make([]float32, 2*n*cols)
		for epoch := range 2 {
			key := halo.Key{Seed: 3, Epoch: epoch}
			kernels.Write(ops, own, oddRows(rng, host[:n*cols], cols))
			if err := e.BeginForward(own, key); err != nil {
				return err
			}
			ops.Clear(own) // it may change
			ghosts, err := e.EndForward()
			if err != nil {
				return err
			}
			if epoch > 0 { // in the first one nobody waits for what is on its way to Ops
				kernels.Read(ops, host, ghosts)
				all[w.Rank()] = append(all[w.Rank()], slices.Clone(host)...)
			}
			kernels.Write(ops, e.Ghosts(cols), oddRows(rng, host, cols))
			if err := e.BeginBackward(cols, key); err != nil {
				return err
			}
			if err := e.EndBackward(own); err != nil {
				return err
			}
			kernels.Read(ops, host, own)
			all[w.Rank()] = append(all[w.Rank()], slices.Clone(host[:n*cols])...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// oddRows fills x with rows of which a few have numbers that no grid spans.
func oddRows(rng *rand.Rand, x []float32, cols int) []float32 {
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	for r := 5; r < len(x)/cols; r += 97 {
		x[r*cols+r%cols] = []float32{float32(math.NaN()), float32(math.Inf(1)), 3e38}[r%3]
	}
	return x
}

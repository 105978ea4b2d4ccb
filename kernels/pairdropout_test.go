package kernels_test

import (
	"math"
	"slices"
	"testing"

	"siafu/kernels"
)

// Elements are dropped by the words of both ends, epoch, layer and column, independently of
// other pairs. Nothing is written after the rows.
func TestDropPairs(t *testing.T) {
	const seed, epoch, layer, p = 1<<33 + 5, 7, 2, 0.3
	last := uint32(math.Ceil((1-p)*(1<<32))) - 1
	for _, kernel := range kernels.Variants() {
		team := kernels.NewTeam(1)
		defer team.Close()
		if err := team.Use(kernel); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 8, 9, 64, 65, 200} {
			for _, width := range []int{1, 4, 7, 33} {
				lesser, greater := make([]uint32, n), make([]uint32, n)
				x := slices.Repeat([]float32{3}, n*width+1)
				for i := range n {
					lesser[i], greater[i] = uint32(i*i%97), uint32(100+i)
				}
				drop := kernels.PairDropout{Seed: seed, Epoch: epoch, Layer: layer, P: p, Lesser: lesser, Greater: greater}
				team.DropPairs(kernels.HostMat(n, width, x[:n*width]), drop)
				if x[n*width] != 3 {
					t.Fatalf("%s, %d pairs %d wide: written behind the end", kernel, n, width)
				}
				for i, got := range x[:n*width] {
					r, c := i/width, i%width
					words := kernels.Philox([4]uint32{lesser[r], greater[r], epoch, 8<<24 | layer<<16 | uint32(c/4)}, [2]uint32{5, 2})
					want := float32(0)
					if words[c%4] <= last {
						want = 3 * float32(1/(1-p))
					}
					if got != want {
						t.Fatalf("%s: column %d of pair %d of %d is %v, want %v", kernel, c, r, n, got, want)
					}
				}
			}
		}
	}
}

// Counters that are not distinct for layers or columns are refused. Without dropout, rows stay
// unchanged.
func TestDropPairsRefuses(t *testing.T) {
	team := kernels.NewTeam(1)
	defer team.Close()
	row, ids := kernels.HostMat(1, 2, []float32{math.MaxFloat32, 1}), []uint32{0}
	team.DropPairs(row, kernels.PairDropout{})
	if got := row.Host(); got[0] != math.MaxFloat32 || got[1] != 1 {
		t.Errorf("without dropout rows are %v", got)
	}
	for _, drop := range []kernels.PairDropout{{P: 0.5, Layer: 256, Lesser: ids, Greater: ids}, {P: 0.5, Lesser: ids}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", drop)
				}
			}()
			team.DropPairs(row, drop)
		}()
	}
}

package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

// eachSet runs f with a name of every instruction set that this machine has.
func eachSet(t *testing.T, f func(t *testing.T, set string)) {
	for _, set := range []string{"go", "avx2", "avx512"} {
		t.Run(set, func(t *testing.T) {
			team := kernels.NewTeam(1)
			defer team.Close()
			use(t, team, set)
			f(t, set)
		})
	}
}

// Dropout passes the conformance suite, which wants exact results, with every
// instruction set.
func TestRandomOfEveryInstructionSet(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		kerneltest.DropoutRows(t, func(team *kernels.Team, dst []float32, rows, cols int, x []float32, d *kernels.Dropout) {
			use(t, team, set)
			kernels.DropoutRows(team, dst, rows, cols, x, d)
		})
	})
}

// A row has the same mask whatever its width, its neighbour and its place in
// memory: widths round every multiple of a vector, odd and even numbers of
// rows, unaligned.
func TestDropoutWidths(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(1)
		defer team.Close()
		use(t, team, set)
		for _, cols := range []int{1, 3, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 41, 47, 48, 49, 64, 65, 95, 128, 602} {
			for _, rows := range []int{1, 2, 3} {
				d := &kernels.Dropout{Seed: 77, Epoch: 5, Layer: 2, P: 0.4, IDs: []uint32{4e9, 3, 1 << 31}}
				x := kerneltest.Values(rows*cols+1, 8)[1:]
				dst := append(make([]float32, rows*cols), 99)
				kernels.DropoutRows(team, dst, rows, cols, x, d)
				for i, v := range dst[:rows*cols] {
					words := kernels.Philox([4]uint32{d.IDs[i/cols], uint32(i % cols / 4), 5, 2}, [2]uint32{77, 0})
					var want float32
					if float64(words[i%cols%4]) < 0.6*(1<<32) {
						want = x[i] * float32(1/0.6)
					}
					if math.Float32bits(v) != math.Float32bits(want) {
						t.Fatalf("%d x %d: element %d is %v, want %v", rows, cols, i, v, want)
					}
				}
				if dst[rows*cols] != 99 {
					t.Fatal(fmt.Sprint(rows, " x ", cols, ": written behind the end"))
				}
			}
		}
	})
}

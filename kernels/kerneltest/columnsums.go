package kerneltest

import (
	"fmt"
	"testing"

	"siafu/kernels"
)

// ColumnSums runs an implementation of flat.ColumnSums.
func ColumnSums(t *testing.T, sums func(team *kernels.Team, dst []float32, rows, cols int, g []float32, add bool)) {
	for _, rows := range []int{0, 1, 9, size(1024, 128), size(5001, 301)} {
		for _, cols := range []int{0, 1, 5, 33} {
			t.Run(fmt.Sprintf("rows=%d/cols=%d", rows, cols), func(t *testing.T) {
				g := Values(rows*cols, 1)
				for range 2 {
					columnSums(t, sums, rows, cols, g, poison(cols), false)
					columnSums(t, sums, rows, cols, g, Values(cols, 2), true)
					spoil(g)
				}
			})
		}
	}
}

func columnSums(t *testing.T, sums func(*kernels.Team, []float32, int, int, []float32, bool), rows, cols int, g, start []float32, add bool) {
	t.Helper()
	want := make([]sum, cols)
	for c := range want {
		if add {
			want[c].add(float64(start[c]))
		}
		for r := range rows {
			want[c].add(float64(g[r*cols+c]))
		}
	}
	compareSums(t, outcome(t, start, func(team *kernels.Team, dst []float32) {
		sums(team, dst, rows, cols, g, add)
	}), want)
}

// Add runs an implementation of flat.Add.
func Add(t *testing.T, add func(team *kernels.Team, dst, x []float32)) {
	for _, n := range []int{0, 1, 17, size(40001, 1001)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			start, x := Values(n, 1), Values(n, 2)
			spoil(x)
			want := make([]float32, n)
			for i := range want {
				want[i] = start[i] + x[i]
			}
			same(t, outcome(t, start, func(team *kernels.Team, dst []float32) { add(team, dst, x) }), want)
		})
	}
}

package kerneltest

import (
	"fmt"
	"testing"
)

// ColumnSums tests kernels.Ops.ColumnSums.
func (s Suite) ColumnSums(t *testing.T) {
	sizes{"rows", []int{0, 1, 9, size(1024, 128), size(5001, 301)}, "cols", []int{0, 1, 5, 33}}.run(t, func(t *testing.T, rows, cols int) {
		g := Values(rows*cols, 1)
		for range 2 {
			s.columnSums(t, rows, cols, g, poison(cols), false)
			s.columnSums(t, rows, cols, g, Values(cols, 2), true)
			insertNonFinite(g)
		}
	})
}

func (s Suite) columnSums(t *testing.T, rows, cols int, g, start []float32, add bool) {
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
	compareSums(t, s.outcome(t, start, func(l *fixture, dst []float32) {
		l.ColumnSums(l.out(1, cols, dst), l.in(rows, cols, g), add)
	}), want)
}

// Add tests kernels.Ops.Add.
func (s Suite) Add(t *testing.T) {
	for _, n := range []int{0, 1, 17, size(40001, 1001)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			start, x := Values(n, 1), Values(n, 2)
			insertNonFinite(x)
			want := make([]float32, n)
			for i := range want {
				want[i] = start[i] + x[i]
			}
			same(t, s.outcome(t, start, func(l *fixture, dst []float32) { l.Add(l.out(1, n, dst), l.in(1, n, x)) }), want)
		})
	}
}

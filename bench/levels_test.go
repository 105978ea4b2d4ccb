package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/kernels"
)

// A row comes from the nearest cache if fewer other rows have been read since than fit into
// it.
func TestLevels(t *testing.T) {
	const rows, edges, row = 50, 4000, 512
	r := rand.New(rand.NewPCG(1, 2))
	g := kernels.Gather{Begin: make([]int64, rows), End: make([]int64, rows)}
	for v := range rows {
		g.Begin[v], g.End[v] = int64(v*edges/rows), int64((v+1)*edges/rows)
	}
	for range edges {
		g.Cols = append(g.Cols, uint32(rows*r.Float64()*r.Float64()))
	}
	l := cacheLevels{2, 8} // of four rows and of sixteen
	want := make([]float64, 3)
	var last []uint32 // rows by time of reading, newest first
	for _, c := range g.Cols {
		at := slices.Index(last, c)
		switch {
		case at >= 0 && at < 4:
			want[0] += row
		case at >= 0 && at < 16:
			want[1] += row
		default:
			want[2] += row
		}
		if at >= 0 {
			last = slices.Delete(last, at, at+1)
		}
		last = slices.Insert(last, 0, c)
	}
	if got := l.bytesFrom(g, row); !slices.Equal(got, want) || slices.Min(want) == 0 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestKernelsCaches(t *testing.T) {
	var out strings.Builder
	if err := measureKernels(context.Background(), KernelsOptions{Caches: []int{1, 1024}, Only: "uniform.*x 41"}, smallEffort, &out); err != nil {
		t.Fatal(err)
	}
	// 300 rows of 41 numbers fit into the second cache, and each is read 25 times on average,
	// first from memory.
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); !strings.HasPrefix(lines[len(lines)-1], "SpMM    uniform 300 x 41  164  ") ||
		!strings.HasSuffix(lines[len(lines)-1], " 7") || !strings.Contains(lines[len(lines)-2], "1 KiB  1024 KiB  memory") {
		t.Errorf("said\n%s", &out)
	}
	for _, caches := range [][]int{{0}, {48, 48}, {1024, 48}} {
		if err := measureKernels(context.Background(), KernelsOptions{Caches: caches}, smallEffort, t.Output()); fault.KindOf(err) != fault.Usage {
			t.Errorf("%v: %v", caches, err)
		}
	}
}

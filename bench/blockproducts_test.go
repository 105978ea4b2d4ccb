package bench

import (
	"fmt"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/partition"
)

// The formula gives the rows of CAGNET's schedule, counted rank by rank.
func TestBlockRows(t *testing.T) {
	for _, x := range []struct{ parts, c int64 }{{1, 1}, {4, 1}, {4, 2}, {8, 2}, {16, 2}, {16, 4}, {36, 3}} {
		gridRows, stages := x.parts/x.c, x.parts/(x.c*x.c)
		block := 3 * x.c // rows; the all-reduce divides them by c
		var received int64
		for rank := range x.parts {
			row, column := rank/x.c, rank%x.c
			for stage := range stages {
				if column*stages+stage != row { // else the rank broadcasts its own block
					received += block
				}
			}
			for range 2 * (x.c - 1) { // steps of a ring
				received += block / x.c
			}
		}
		if got := blockRows(gridRows*block, x.parts, x.c); got != received {
			t.Errorf("%d ranks, c=%d: %d rows; the schedule receives %d", x.parts, x.c, got, received)
		}
	}
}

// A partition of a complete graph needs all rows of all ranks, as the 1D product does.
func TestBlockRowsOfACompleteGraph(t *testing.T) {
	const n, parts = 12, 4
	in := graph.CSR{Offsets: []int64{0}}
	owner := make([]uint32, n)
	for v := range n {
		owner[v] = uint32(v % parts)
		for u := range n {
			in.Cols = append(in.Cols, uint32(u))
		}
		in.Offsets = append(in.Offsets, int64(len(in.Cols)))
	}
	ds := &graph.Dataset{Meta: &graph.Meta{}, In: in, Out: in, Split: make([]uint8, n)}
	if got, want := partition.Count(ds, owner, partition.Options{Parts: parts}).Ghosts, blockRows(n, parts, 1); got != want {
		t.Errorf("%d ghosts; expected %d", got, want)
	}
}

func TestPrintBlockProducts(t *testing.T) {
	for parts, want := range map[int64]string{
		2:  "2 computed: CAGNET 1D, P3 1000 1.02",
		4:  "4 computed: CAGNET 1D, P3 3000 3.07 4 computed: CAGNET 1.5D, c=2 3000 3.07",
		16: "16 computed: CAGNET 1D, P3 15000 15.4 16 computed: CAGNET 1.5D, c=2 9000 9.22",
		64: "64 computed: CAGNET 1D, P3 63000 64.5 64 computed: CAGNET 1.5D, c=4 21000 21.5",
	} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			var out strings.Builder
			printBlockProducts(&out, 1000, parts)
			if got := strings.Join(strings.Fields(out.String()), " "); got != want {
				t.Errorf("%s; expected %s", got, want)
			}
		})
	}
}

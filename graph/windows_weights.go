package graph

import (
	"runtime"
	"slices"
	"sync/atomic"

	"siafu/graph/fault"
	"siafu/graph/workers"
)

// directed tells whether in differs from out.
func (w *windows) directed() bool { return w.oneWay || w.uneven }

// fillWeighted is fill of edges with weights.
func (w *windows) fillWeighted() error {
	n, in, out, i := len(w.in.offsets)-1, w.in, w.out, int64(-1)
	return w.weights.EachWeight(func(s, d uint32, weight float32) error {
		if i++; !goodWeight(weight) {
			return invalid("give each edge a finite weight above 0", "edge %d, %d → %d, has the weight %v", i, s, d, weight)
		}
		if s == d {
			return nil
		}
		if int(s) >= n || int(d) >= n || !in.putWeight(d, s, weight) || !out.putWeight(s, d, weight) {
			return changed()
		}
		return nil
	})
}

// merge sorts the rows of a window with their weights, in parallel by blocks of rows, and
// makes one edge of those that came more than once, with the sum of their weights.
func (d *direction) merge() error {
	c, counts := &d.window, make([]int64, d.window.Rows())
	var bad atomic.Pointer[fault.Error]
	workers.Blocks(runtime.GOMAXPROCS(0), c.Rows(), 1<<12, func(_, lo, hi int) {
		var row weightedRow
		for r := lo; r < hi; r++ {
			from, to := c.Offsets[r], c.Offsets[r+1]
			counts[r] = int64(row.merge(c.Cols[from:to], d.weights[from:to]))
			if i := slices.IndexFunc(d.weights[from:from+counts[r]], notFinite); i >= 0 {
				bad.Store(fault.New(fault.Data, opWrite, "", "the weights of the edges between %d and %d add up to infinity", c.Cols[int(from)+i], int(d.first)+r).
					Then("give edges smaller weights"))
			}
		}
	})
	if f := bad.Load(); f != nil {
		return f
	}
	at, start := int64(0), int64(0)
	for r, count := range counts {
		copy(c.Cols[at:], c.Cols[start:start+count])
		copy(d.weights[at:], d.weights[start:start+count])
		at, start = at+count, c.Offsets[r+1]
		c.Offsets[r+1] = at
	}
	c.Cols, d.weights = c.Cols[:at], d.weights[:at]
	return nil
}

// weightedRow is the scratch of a row that is sorted.
type weightedRow struct {
	keys    []uint64 // column, and place in the row
	weights []float32
}

// merge sorts a row by columns and returns how many differ, which are then in front. The
// weights of equal columns are added in the order in which they came, in float64, so that
// both directions of an edge come to the same sum.
func (w *weightedRow) merge(cols []uint32, weights []float32) (kept int) {
	w.keys, w.weights = w.keys[:0], append(w.weights[:0], weights...)
	for i, c := range cols {
		w.keys = append(w.keys, uint64(c)<<32|uint64(i))
	}
	slices.Sort(w.keys)
	for i := 0; i < len(w.keys); kept++ {
		col, sum := uint32(w.keys[i]>>32), 0.0
		for ; i < len(w.keys) && uint32(w.keys[i]>>32) == col; i++ {
			sum += float64(w.weights[uint32(w.keys[i])])
		}
		cols[kept], weights[kept] = col, float32(sum)
	}
	return kept
}

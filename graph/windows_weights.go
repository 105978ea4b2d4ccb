package graph

import (
	"runtime"
	"slices"
	"sync/atomic"

	"siafu/internal/fault"
	"siafu/internal/workers"
)

// directed reports whether in differs from out.
func (w *windows) directed() bool { return w.oneWay || w.uneven }

// fillWith reads edges with features, weights or both into the open windows.
func (w *windows) fillWith() error {
	n, in, out, i := len(w.in.offsets)-1, w.in, w.out, int64(-1)
	put := func(s, d uint32, weight float32, features []float32) error {
		i++
		if w.weights != nil && !goodWeight(weight) {
			return invalid("give each edge a finite weight above 0", "edge %d, %d → %d, has the weight %v", i, s, d, weight)
		}
		if len(features) != w.dim {
			return invalid("give every edge the same number of features", "edge %d, %d → %d, has %d features, but other edges have %d",
				i, s, d, len(features), w.dim)
		}
		if k := slices.IndexFunc(features, NotFinite); k >= 0 {
			return invalid("replace it with a finite number", "feature %d of edge %d, %d → %d, is %v", k, i, s, d, features[k])
		}
		if s == d {
			return nil
		}
		if int(s) >= n || int(d) >= n || !in.putWith(d, s, weight, features, 0) || !out.putWith(s, d, weight, features, 0) {
			return changed()
		}
		return nil
	}
	if w.dim > 0 {
		return w.features.EachFeatures(put)
	}
	return w.weights.EachWeight(func(s, d uint32, weight float32) error { return put(s, d, weight, nil) })
}

// merge sorts the rows of a window with their weights, features and relations, in parallel by blocks of
// rows. It merges repeated edges: weights are added, features are averaged.
func (d *direction) merge() error {
	c, counts := &d.window, make([]int64, d.window.Rows())
	var bad atomic.Pointer[fault.Error]
	workers.Blocks(runtime.GOMAXPROCS(0), c.Rows(), 1<<12, func(_, lo, hi int) {
		row := rowMerger{dim: d.dim}
		for r := lo; r < hi; r++ {
			from, to := c.Offsets[r], c.Offsets[r+1]
			if d.relations != nil {
				counts[r] = int64(row.group(c.Cols[from:to], d.relations[from:to]))
				continue
			}
			weights, features := d.of(from, to)
			counts[r] = int64(row.merge(c.Cols[from:to], weights, features))
			if i := slices.IndexFunc(weights[:min(int64(len(weights)), counts[r])], NotFinite); i >= 0 {
				bad.Store(fault.New(fault.Data, opWrite, "", "the weights of the edges between %d and %d add up to infinity",
					c.Cols[int(from)+i], int(d.first)+r).
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
		toWeights, toFeatures := d.of(at, at+count)
		weights, features := d.of(start, start+count)
		copy(toWeights, weights)
		copy(toFeatures, features)
		if d.relations != nil {
			copy(d.relations[at:], d.relations[start:start+count])
		}
		at, start = at+count, c.Offsets[r+1]
		c.Offsets[r+1] = at
	}
	c.Cols = c.Cols[:at]
	d.weights, d.features = d.of(0, at)
	d.relations = d.relations[:min(at, int64(len(d.relations)))]
	return nil
}

// of returns the weights and features of the window's edges [from, to). Each is nil if the
// edges have no such data.
func (d *direction) of(from, to int64) (weights, features []float32) {
	if d.weights != nil {
		weights = d.weights[from:to]
	}
	if d.features != nil {
		features = d.features[int(from)*d.dim : int(to)*d.dim]
	}
	return weights, features
}

// rowMerger contains the buffers for sorting one row.
type rowMerger struct {
	dim               int
	keys              []uint64 // column and position in the row
	weights, features []float32
	sums              []float64 // sums of the features of an edge
}

// merge sorts a row by column, moves the distinct columns to the front, and returns their number.
// It adds weights, and features for the mean, in input order and in float64. Both directions of
// an edge then get the same values. weights and features are nil if edges have no such data.
func (m *rowMerger) merge(cols []uint32, weights, features []float32) (kept int) {
	m.keys, m.weights, m.features = m.keys[:0], append(m.weights[:0], weights...), append(m.features[:0], features...)
	for i, c := range cols {
		m.keys = append(m.keys, uint64(c)<<32|uint64(i))
	}
	slices.Sort(m.keys)
	for i := 0; i < len(m.keys); kept++ {
		first, col := i, uint32(m.keys[i]>>32)
		for i++; i < len(m.keys) && uint32(m.keys[i]>>32) == col; i++ {
		}
		cols[kept] = col
		if len(weights) > 0 {
			weights[kept] = m.weight(m.keys[first:i])
		}
		if len(features) > 0 {
			m.mean(features[kept*m.dim:][:m.dim], m.keys[first:i])
		}
	}
	return kept
}

// weight returns the sum of the weights at the positions in keys.
func (m *rowMerger) weight(keys []uint64) float32 {
	sum := 0.0
	for _, k := range keys {
		sum += float64(m.weights[uint32(k)])
	}
	return float32(sum)
}

// mean sets dst to the mean of the features at the positions in keys. The features of a single
// edge are copied unchanged.
func (m *rowMerger) mean(dst []float32, keys []uint64) {
	of := func(key uint64) []float32 { return m.features[int(uint32(key))*m.dim:][:m.dim] }
	if len(keys) == 1 {
		copy(dst, of(keys[0]))
		return
	}
	m.sums = append(m.sums[:0], make([]float64, m.dim)...)
	for _, k := range keys {
		for j, f := range of(k) {
			m.sums[j] += float64(f)
		}
	}
	for j, sum := range m.sums {
		dst[j] = float32(sum / float64(len(keys)))
	}
}

package sample

import (
	"slices"
	"unsafe"

	"siafu/graph"
	"siafu/halo"
	"siafu/kernels"
)

// vertices returns pairs of numbers as vertices.
func vertices(x []uint64) []Vertex {
	return unsafe.Slice((*Vertex)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// floats returns numbers as float32, the type of messages.
func floats(x []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// headerLength returns the number of values before a row in a message: dataset id, in- and
// out-degree, and with weights their sums into and out of the vertex.
func (n *Neighbours) headerLength() int {
	if n.o.Weighted {
		return 5
	}
	return 3
}

// Fetch completes the field: the properties of its rows, and the features of each in x [at
// least rows x features]. Collective.
func (n *Neighbours) Fetch(x kernels.Mat) error {
	f, heading := &n.field, n.headerLength()
	width := heading + n.o.Shard.FeatureDim
	nothing := func([]uint32) []uint32 { return nil }
	lists, err := n.ask(f.Rows, width, n.rows, nothing)
	if err != nil {
		return err
	}
	f.allocRows(len(f.Rows), n.o.Weighted)
	for i, v := range f.Rows {
		if int(v.Rank) == n.o.Comm.Rank() {
			continue
		}
		list := lists[v.Rank]
		if len(list) < width {
			return n.damaged(int(v.Rank))
		}
		f.IDs[i], f.InDegree[i], f.OutDegree[i] = list[0], list[1], list[2]
		if n.o.Weighted {
			sums := floats(list[3:heading])
			f.InStrength[i], f.OutStrength[i] = sums[0], sums[1]
		}
		copy(x.Part(i, i+1).Host(), floats(list[heading:width]))
		lists[v.Rank] = list[width:]
		n.stats.RawBytes += int64(4 * n.o.Shard.FeatureDim) // received rows, whose total over all ranks equals the sent ones
	}
	n.o.Team.Run(len(f.Rows), rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if v := f.Rows[i]; int(v.Rank) == n.o.Comm.Rank() {
				s := n.o.Shard
				f.IDs[i], f.InDegree[i], f.OutDegree[i] = s.Own[v.Row], s.InDegree[v.Row], s.OutDegree[v.Row]
				if n.o.Weighted {
					f.InStrength[i], f.OutStrength[i] = s.InStrength[v.Row], s.OutStrength[v.Row]
				}
				expandRow(x.Part(i, i+1).Host(), &s.Features, int(v.Row))
			}
		}
	})
	return nil
}

// allocRows allocates the properties of the given number of rows.
func (f *Field) allocRows(rows int, weighted bool) {
	for _, list := range []*[]uint32{&f.IDs, &f.InDegree, &f.OutDegree} {
		*list = slices.Grow((*list)[:0], rows)[:rows]
	}
	if weighted {
		for _, list := range []*[]float32{&f.InStrength, &f.OutStrength} {
			*list = slices.Grow((*list)[:0], rows)[:rows]
		}
	}
}

// rows returns the rows of own vertices in message format.
func (n *Neighbours) rows(list []uint32) []uint32 {
	s, heading := n.o.Shard, n.headerLength()
	width := heading + s.FeatureDim
	out := make([]uint32, len(list)*width)
	n.o.Team.Run(len(list), rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to, row := out[i*width:(i+1)*width], list[i]
			to[0], to[1], to[2] = s.Own[row], s.InDegree[row], s.OutDegree[row]
			if n.o.Weighted {
				sums := floats(to[3:heading])
				sums[0], sums[1] = s.InStrength[row], s.OutStrength[row]
			}
			expandRow(floats(to[heading:]), &s.Features, int(row))
		}
	})
	return out
}

// ExpandRows sets the first rows of dst [at least rows x features], in host memory, to the given rows of
// dense or sparse features. The workers of team share the work.
func ExpandRows(dst kernels.Mat, f *graph.Features, rows []uint32, team *kernels.Team) {
	team.Run(len(rows), rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			expandRow(dst.Part(i, i+1).Host(), f, int(rows[i]))
		}
	})
}

// expandRow sets dst to a row of features.
func expandRow(dst []float32, f *graph.Features, row int) {
	switch {
	case f.Half != nil:
		kernels.WidenRow(dst, f.Half[row*f.Dim:(row+1)*f.Dim], false)
		return
	case f.Sparse == nil:
		copy(dst, f.Dense[row*f.Dim:(row+1)*f.Dim])
		return
	}
	clear(dst)
	for k := f.Sparse.Offsets[row]; k < f.Sparse.Offsets[row+1]; k++ {
		dst[f.Sparse.Cols[k]] = f.Sparse.Vals[k]
	}
}

// TakeStats returns the traffic to other ranks since the last call: raw bytes count
// features, sent bytes count everything.
func (n *Neighbours) TakeStats() halo.Stats {
	s := n.stats
	n.stats = halo.Stats{}
	return s
}

package engine

import (
	"slices"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo/history"
	"siafu/internal/mapped"
)

// batchShard returns the shard of a mini-batch, the own vertices [lo, hi) of s. It has one part. Its
// ghosts are the sources of its edges outside of the batch, own vertices of s first. places is a
// buffer with an element for each local vertex of s. Arrays are allocated in a or shared with s.
func batchShard(s *shard.Shard, lo, hi int, places []int32, a *mapped.Arena) (*shard.Shard, history.BatchVertices) {
	outside, offset := outsideSources(s, lo, hi, places), s.In.Offsets[lo]
	n, own := hi-lo, s.NumOwn()
	part := &shard.Shard{
		Parts: 1, Vertices: s.Vertices, Directed: s.Directed, Classes: s.Classes, FeatureDim: s.FeatureDim,
		Own: s.Own[lo:hi], Ghosts: mapped.Make[uint32](a, len(outside)),
		GhostStart: []int64{0, int64(len(outside))}, SendStart: []int64{0, 0},
		In:       graph.CSR{Offsets: mapped.Make[int64](a, n+1), Cols: mapped.Make[uint32](a, int(s.In.Offsets[hi]-offset))},
		InOwnEnd: mapped.Make[int64](a, n), Labels: s.Labels[lo:hi], Split: s.Split[lo:hi],
		InDegree: mapped.Make[uint32](a, n+len(outside)), OutDegree: mapped.Make[uint32](a, n+len(outside)),
	}
	copy(part.InDegree, s.InDegree[lo:hi])
	copy(part.OutDegree, s.OutDegree[lo:hi])
	if part.Weighted = s.Weighted; s.Weighted {
		part.Weights = mapped.Make[float32](a, len(part.In.Cols))
		part.InStrength, part.OutStrength = mapped.Make[float32](a, n+len(outside)), mapped.Make[float32](a, n+len(outside))
		copy(part.InStrength, s.InStrength[lo:hi])
		copy(part.OutStrength, s.OutStrength[lo:hi])
		for k, u := range outside {
			part.InStrength[n+k], part.OutStrength[n+k] = s.InStrength[u], s.OutStrength[u]
		}
	}
	c := history.BatchVertices{First: lo, Rows: n}
	for k, u := range outside {
		part.InDegree[n+k], part.OutDegree[n+k] = s.InDegree[u], s.OutDegree[u]
		if int(u) < own {
			part.Ghosts[k], c.Outside.Own = s.Own[u], outside[:k+1]
		} else {
			part.Ghosts[k] = s.Ghosts[int(u)-own]
			c.Outside.Ghosts = append(c.Outside.Ghosts, u-uint32(own))
		}
	}
	at := 0
	put := func(k int64, col uint32) {
		if part.In.Cols[at] = col; part.Weighted {
			part.Weights[at] = s.Weights[k]
		}
		at++
	}
	for v := range n {
		begin, end := s.In.Offsets[lo+v], s.In.Offsets[lo+v+1]
		within := s.In.Cols[begin:s.InOwnEnd[lo+v]]
		from, _ := slices.BinarySearch(within, uint32(lo))
		to, _ := slices.BinarySearch(within, uint32(hi))
		first, last := begin+int64(from), begin+int64(to)
		for k := first; k < last; k++ {
			put(k, s.In.Cols[k]-uint32(lo))
		}
		part.InOwnEnd[v] = int64(at)
		for _, stretch := range [][2]int64{{begin, first}, {last, end}} {
			for k := stretch[0]; k < stretch[1]; k++ {
				put(k, uint32(n)+uint32(places[s.In.Cols[k]]))
			}
		}
		part.In.Offsets[v+1] = int64(at)
	}
	return part, c
}

// outsideSources returns the sources, outside of [lo, hi), of edges into own vertices [lo,
// hi), as local ids in ascending order. It sets places to each source's position among them.
func outsideSources(s *shard.Shard, lo, hi int, places []int32) (list []uint32) {
	for i := range places {
		places[i] = -1
	}
	for _, u := range s.In.Cols[s.In.Offsets[lo]:s.In.Offsets[hi]] {
		if (int(u) < lo || int(u) >= hi) && places[u] < 0 {
			places[u] = 0
			list = append(list, u)
		}
	}
	slices.Sort(list)
	for k, u := range list {
		places[u] = int32(k)
	}
	return list
}

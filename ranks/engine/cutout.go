package engine

import (
	"slices"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo/history"
)

// cutOut is the shard of a mini-batch, the own vertices [lo, hi) of s: one part, whose
// ghosts are the sources of its edges outside, own vertices of s first. places is room
// for a number a local vertex of s. Arrays are made in a, or are those of s.
func cutOut(s *shard.Shard, lo, hi int, places []int32, a *mapped.Arena) (*shard.Shard, history.Cut) {
	outside, offset := outsideOf(s, lo, hi, places), s.In.Offsets[lo]
	n, own := hi-lo, s.NumOwn()
	part := &shard.Shard{
		Parts: 1, Vertices: s.Vertices, Directed: s.Directed, Classes: s.Classes, FeatureDim: s.FeatureDim,
		Own: s.Own[lo:hi], Ghosts: mapped.Make[uint32](a, len(outside)), GhostStart: []int64{0, int64(len(outside))}, SendStart: []int64{0, 0},
		In:       graph.CSR{Offsets: mapped.Make[int64](a, n+1), Cols: mapped.Make[uint32](a, int(s.In.Offsets[hi]-offset))},
		InOwnEnd: mapped.Make[int64](a, n), Labels: s.Labels[lo:hi], Split: s.Split[lo:hi],
		InDegree: mapped.Make[uint32](a, n+len(outside)), OutDegree: mapped.Make[uint32](a, n+len(outside)),
	}
	if s.Targets != nil {
		part.Targets = s.Targets[lo*s.Classes : hi*s.Classes]
	}
	copy(part.InDegree, s.InDegree[lo:hi])
	copy(part.OutDegree, s.OutDegree[lo:hi])
	c := history.Cut{First: lo, Rows: n}
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
	for v := range n {
		row := s.In.Cols[s.In.Offsets[lo+v]:s.In.Offsets[lo+v+1]]
		from, _ := slices.BinarySearch(row[:s.InOwnEnd[lo+v]-s.In.Offsets[lo+v]], uint32(lo))
		to, _ := slices.BinarySearch(row[:s.InOwnEnd[lo+v]-s.In.Offsets[lo+v]], uint32(hi))
		for _, u := range row[from:to] {
			part.In.Cols[at] = u - uint32(lo)
			at++
		}
		part.InOwnEnd[v] = int64(at)
		for _, list := range [][]uint32{row[:from], row[to:]} {
			for _, u := range list {
				part.In.Cols[at] = uint32(n) + uint32(places[u])
				at++
			}
		}
		part.In.Offsets[v+1] = int64(at)
	}
	return part, c
}

// outsideOf are the sources of edges into own vertices [lo, hi) that are none of them,
// as local ids in ascending order; places says which place each has among them.
func outsideOf(s *shard.Shard, lo, hi int, places []int32) (list []uint32) {
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

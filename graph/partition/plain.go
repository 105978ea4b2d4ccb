package partition

import (
	"sort"

	"siafu/graph"
)

var contiguousMethod = method{
	entry: entry{Name: "contiguous", Help: "blocks of consecutive ids, balanced by vertices and edges. " +
		"For ids that carry locality (crawls, several graphs in one file, another program's order)"},
	assign: func(ds *graph.Dataset, o Options) []uint32 { return contiguous(ds.In.Offsets, o.Parts) },
}

var hashMethod = method{
	entry:  entry{Name: "hash", Help: "random, keyed by `--seed`. A baseline"},
	assign: func(ds *graph.Dataset, o Options) []uint32 { return hashed(ds.In.Rows(), o.Parts, o.Seed) },
	seed:   true,
}

// contiguous cuts 0..n-1 into blocks with about the same number of vertices plus in-edges.
// offsets [n+1] are the in-edges' offsets; parts is at most n, and no block is empty.
func contiguous(offsets []int64, parts int) []uint32 {
	n := len(offsets) - 1
	weight := func(v int) int64 { return offsets[v] + int64(v) } // of the vertices before v
	total := float64(weight(n))
	owner := make([]uint32, n)
	begin := 0
	for p := range parts {
		goal := int64(total * float64(p+1) / float64(parts))
		end := sort.Search(n, func(v int) bool { return weight(v) >= goal })
		if end > begin+1 && goal-weight(end-1) < weight(end)-goal {
			end-- // the boundary before is nearer
		}
		// A vertex for this block, and one for each block after it.
		end = min(max(end, begin+1), n-(parts-1-p))
		if p == parts-1 {
			end = n
		}
		for v := begin; v < end; v++ {
			owner[v] = uint32(p)
		}
		begin = end
	}
	return owner
}

// hashed assigns vertices by a hash, without regard to edges.
func hashed(n, parts int, seed uint64) []uint32 {
	owner := make([]uint32, n)
	for v := range owner {
		owner[v] = uint32(mix(seed, uint64(v)) % uint64(parts))
	}
	return owner
}

// mix returns a hash of x keyed by seed: the finaliser of SplitMix64 (Steele, Lea and Flood,
// OOPSLA 2014) over both.
func mix(seed, x uint64) uint64 {
	return finalise(finalise(seed) + x*0x9e3779b97f4a7c15)
}

func finalise(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

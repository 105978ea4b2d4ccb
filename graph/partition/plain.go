package partition

import (
	"sort"

	"siafu/graph"
	"siafu/graph/partition/multilevel"
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

// contiguous divides the vertices 0..n-1 into blocks of consecutive ids. All blocks have about the
// same number of vertices plus in-edges, and none is empty. offsets [n+1] are the offsets of the
// in-edges. parts must be at most n.
func contiguous(offsets []int64, parts int) []uint32 {
	n := len(offsets) - 1
	weight := func(v int) int64 { return offsets[v] + int64(v) } // of all vertices before v
	total := float64(weight(n))
	owner := make([]uint32, n)
	begin := 0
	for p := range parts {
		goal := int64(total * float64(p+1) / float64(parts))
		end := sort.Search(n, func(v int) bool { return weight(v) >= goal })
		if end > begin+1 && goal-weight(end-1) < weight(end)-goal {
			end-- // the preceding boundary is nearer to goal
		}
		// At least one vertex for this block, and one for each later block.
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

// hashed assigns each vertex to a rank by a hash of its id.
func hashed(n, parts int, seed uint64) []uint32 {
	owner := make([]uint32, n)
	for v := range owner {
		owner[v] = uint32(mix(seed, uint64(v)) % uint64(parts))
	}
	return owner
}

// mix returns a hash of seed and x: the hash of x·golden plus the hash of the seed, where golden is
// 2⁶⁴ divided by the golden ratio.
func mix(seed, x uint64) uint64 {
	return multilevel.Hash(0, multilevel.Hash(0, seed)+x*0x9e3779b97f4a7c15)
}

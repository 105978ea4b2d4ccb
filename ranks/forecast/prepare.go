package forecast

import "siafu/graph"

// Import returns the memory to write a dataset, without that of the source's format. Importers
// map source files where possible.
func Import(m *graph.Meta) Memory {
	list := new(Memory)
	n, edges := m.Vertices, m.Edges
	list.add("edges as they come", Array, 8*edges)
	list.add("edges by destination and by source", Array, 16*n, 16*n, min(8*edges, graph.EdgeMemory))
	list.add("the dataset's files, read back", Mapped, files(m))
	return *list
}

// Partitioning returns the memory of rank 0, or of "siafu partition", to cut a dataset into
// shards of similar size. ordered: vertex orders are computed. Their memory is freed before
// shards are cut.
func Partitioning(m *graph.Meta, parts int, ordered bool) Memory {
	list := new(Memory)
	n, edges := m.Vertices, m.Edges
	list.add("the dataset", Mapped, files(m))
	list.add("owners and places", Array, 4*n, 4*n, 4*n, 4*n, n/8)
	if parts > 1 {
		list.add("sets of ghosts", Array, 5*n)
	}
	features := 4 * n * int64(m.FeatureDim)
	switch m.FeatureKind {
	case graph.HalfFeatures:
		features /= 2
	case graph.SparseFeatures:
		features = 8*n + 8*m.FeatureNNZ
	}
	shard := (4*edges + 40*n + features) / int64(parts)
	if parts == 1 && !ordered && !m.Weighted && m.EdgeDim == 0 { // the shard's edges and features are those of the dataset
		list.add("a shard", Array, 40*n)
	} else {
		list.add("a shard", Array, shard)
	}
	list.add("a shard, read back", Mapped, shard)
	if ordered {
		list.add("order of vertices, beyond a shard", Heap, max(32*n+8*edges-2*shard, 0))
	}
	return *list
}

// files returns the size of a dataset's folder.
func files(m *graph.Meta) (bytes int64) {
	for _, f := range m.Files {
		bytes += f.Bytes
	}
	return bytes
}

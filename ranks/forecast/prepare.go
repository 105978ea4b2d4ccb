package forecast

import "siafu/graph"

// Import is the memory of writing a dataset, beside that of the source's own
// format, which importers map where they can.
func Import(m *graph.Meta) Memory {
	list := new(Memory)
	n, edges := m.Vertices, m.Edges
	list.add("edges as they come", Array, 8*edges)
	list.add("edges by destination and by source", Array, 8*n, 4*edges, 8*n, 8*n, 4*edges)
	list.add("the dataset's files, read back", Mapped, files(m))
	return *list
}

// Partitioning is the memory of rank 0, or of "siafu partition", while it cuts
// a dataset into shards of about equal size.
func Partitioning(m *graph.Meta, parts int) Memory {
	list := new(Memory)
	n, edges := m.Vertices, m.Edges
	list.add("the dataset", Mapped, files(m))
	list.add("owners and places", Array, 4*n, 4*n, 4*n, 4*n, n/8)
	list.add("order of vertices", Heap, 32*n, 8*edges)
	share := func(x int64) int64 { return x / int64(parts) }
	features := 4 * n * int64(m.FeatureDim)
	if m.FeatureKind == "sparse" {
		features = 8*n + 8*m.FeatureNNZ
	}
	list.add("a shard", Array, share(4*edges), share(40*n), share(features))
	list.add("a shard, read back", Mapped, share(4*edges)+share(40*n)+share(features))
	return *list
}

// files is the size of a dataset's folder.
func files(m *graph.Meta) (bytes int64) {
	for _, f := range m.Files {
		bytes += f.Bytes
	}
	return bytes
}

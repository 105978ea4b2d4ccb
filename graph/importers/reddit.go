package importers

import "siafu/graph"

var redditFormat = importer{
	entry: entry{Name: "reddit-npz", Help: "folder with `reddit_data.npz`"},
	read:  reddit, recognises: holds("reddit_data.npz"), onlySplit: "node_types is the only split",
}

// reddit reads the two files of DGL and PyG with the posts of Hamilton et al. (2017):
// reddit_data.npz (feature, label, node_types, node_ids) and reddit_graph.npz (a SciPy matrix).
func reddit(k *resources, o Options) *graph.Content {
	matrix := k.in("reddit_graph.npz")
	if loops := k.in("reddit_self_loop_graph.npz"); !matrix.exists() && loops.exists() {
		matrix = loops // the same graph; self loops are dropped
	}
	o.DropWeights = true // as DGL and PyG do
	adj := k.zip(matrix).matrix("")
	z, n := k.zip(k.in("reddit_data.npz")), adj.rows
	c := &graph.Content{
		Vertices: n, Edges: adj.edges(o),
		Features: z.get("feature").dense(k, n), Labels: z.get("label").labels(n), Split: z.get("node_types").sets(n),
	}
	if z.Has("node_ids") {
		c.IDs = keepIDs(z.get("node_ids").integers(int(n)))
	}
	return c
}

// keepIDs returns nil if the ids are 0..n-1.
func keepIDs(ids []int64) *graph.IDs {
	for v, id := range ids {
		if id != int64(v) {
			return &graph.IDs{Ints: ids}
		}
	}
	return nil
}

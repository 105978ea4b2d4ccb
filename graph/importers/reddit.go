package importers

import (
	"path/filepath"

	"siafu/graph"
)

var redditFormat = importer{
	entry: entry{Name: "reddit-npz", Help: "folder with `reddit_data.npz`"},
	read:  reddit, recognises: holds("reddit_data.npz"), onlySplit: "node_types is the only split",
}

const opReddit = "import reddit-npz"

// reddit reads the two files of DGL and PyG with the posts of Hamilton et al. (2017):
// reddit_data.npz (feature, label, node_types, node_ids) and reddit_graph.npz (a SciPy
// matrix).
func reddit(k *keeper, o Options) (*graph.Content, error) {
	path := filepath.Join(o.Src, "reddit_graph.npz")
	if loops := filepath.Join(o.Src, "reddit_self_loop_graph.npz"); !exists(path) && exists(loops) {
		path = loops // the same graph; self loops are dropped
	}
	z, err := k.zip(path)
	if err != nil {
		return nil, err
	}
	adj, err := zipMatrix(opReddit, path, z, "")
	if err != nil {
		return nil, err
	}
	o.DropWeights = true // as DGL and PyG do
	c := &graph.Content{Source: "reddit-npz " + nameOf(o.Src), Vertices: adj.rows}
	if c.Edges, err = adj.edges(o); err != nil {
		return nil, err
	}
	return c, redditData(k, filepath.Join(o.Src, "reddit_data.npz"), c)
}

// redditData reads the data of vertices.
func redditData(k *keeper, path string, c *graph.Content) error {
	z, err := k.zip(path)
	if err != nil {
		return err
	}
	get := func(name string) ndarray { return arrayIn(opReddit, path, z, name) }
	if c.Features, err = get("feature").dense(k, c.Vertices); err != nil {
		return err
	}
	if c.Labels, err = get("label").labels(c.Vertices); err != nil {
		return err
	}
	if c.Split, err = get("node_types").sets(c.Vertices); err != nil {
		return err
	}
	if !z.Has("node_ids") {
		return nil
	}
	ids, err := get("node_ids").integers(int(c.Vertices))
	c.IDs = keepIDs(ids)
	return err
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

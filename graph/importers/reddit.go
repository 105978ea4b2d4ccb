package importers

import (
	"path/filepath"

	"siafu/graph"
	"siafu/graph/npy"
)

const opReddit = "import reddit-npz"

// reddit reads the two files in which DGL and PyG carry the posts of Hamilton
// et al. (2017): reddit_data.npz (feature, label, node_types, node_ids) and
// reddit_graph.npz (a SciPy matrix).
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
	c := &graph.Content{Source: "reddit-npz " + nameOf(o.Src), Vertices: adj.rows}
	if c.Edges, err = adj.edges(o); err != nil {
		return nil, err
	}
	return c, redditData(k, filepath.Join(o.Src, "reddit_data.npz"), c)
}

// redditData reads what belongs to the vertices.
func redditData(k *keeper, path string, c *graph.Content) error {
	z, err := k.zip(path)
	if err != nil {
		return err
	}
	a, err := z.Get("feature")
	if err != nil {
		return err
	}
	c.Features.Rows = int(c.Vertices)
	if c.Features.Dense, c.Features.Dim, err = dense(k, opReddit, path+"[feature]", a, c.Vertices); err != nil {
		return err
	}
	if a, err = z.Get("label"); err != nil {
		return err
	}
	if c.Labels, err = labelArray(opReddit, path+"[label]", a, c.Vertices); err != nil {
		return err
	}
	if a, err = z.Get("node_types"); err != nil {
		return err
	}
	if c.Split, err = splitArray(opReddit, path+"[node_types]", a, c.Vertices); err != nil {
		return err
	}
	if !z.Has("node_ids") {
		return nil
	}
	if a, err = z.Get("node_ids"); err != nil {
		return err
	}
	ids, err := integers(opReddit, path+"[node_ids]", a, int(c.Vertices))
	c.IDs = keepIDs(ids)
	return err
}

// splitArray reads an array [n] of the numbers that stand for the sets: those
// of reddit's node_types are the same as a dataset's.
func splitArray(op, path string, a *npy.Array, n int64) ([]uint8, error) {
	values, err := integers(op, path, a, int(n))
	if err != nil {
		return nil, err
	}
	split := make([]uint8, n)
	for v, s := range values {
		if s < graph.SplitNone || s > graph.SplitTest {
			return nil, badSplit(op, path, v, s)
		}
		split[v] = uint8(s)
	}
	return split, nil
}

// keepIDs is nil where the ids are 0..n-1 anyway.
func keepIDs(ids []int64) *graph.IDs {
	for v, id := range ids {
		if id != int64(v) {
			return &graph.IDs{Ints: ids}
		}
	}
	return nil
}

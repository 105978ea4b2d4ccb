package ranks

import (
	"siafu/graph"
	"siafu/graph/pairs"
	"siafu/internal/mapped"
	"siafu/ranks/engine"
	"siafu/ranks/predictions"
	"siafu/ranks/world"
)

// readPairs reads a file of pairs of vertices of the dataset folder data, and their ids.
// Errors are those of pairs.Read and graph.OpenIDs.
func readPairs(path, data string) (p graph.Pairs, names [][2]string, err error) {
	ids, n, done, err := graph.OpenIDs(data)
	if err != nil {
		return p, nil, err
	}
	defer done()
	s, err := pairs.Read("predict", path, pairs.NewNames(ids, n))
	if err != nil {
		return p, nil, err
	}
	for i, u := range s.Edges.Src {
		names = append(names, [2]string{ids.At(int(u)), ids.At(int(s.Edges.Dst[i]))})
	}
	return s.Edges, names, nil
}

// scorePairs writes the scores of the pairs of --pairs. Collective over the world.
func (r *member) scorePairs(p PredictConfig, found *engine.Inference) error {
	if p.Pairs == "" {
		return nil
	}
	var list graph.Pairs
	var names [][2]string
	var err error
	if r.world.Rank() == 0 {
		list, names, err = readPairs(p.Pairs, r.data)
	}
	if err := agree(r.world, err); err != nil {
		return err
	}
	for _, end := range []*[]uint32{&list.Src, &list.Dst} {
		blob, err := world.BcastBlob(r.world, mapped.Bytes(*end), 0)
		if err != nil {
			return err
		}
		*end = mapped.Cast[uint32](blob)
	}
	scores, err := found.Pairs(list)
	if err != nil {
		return err
	}
	if r.world.Rank() == 0 {
		err = predictions.WritePairs(p.Out, names, scores)
	}
	return agree(r.world, err)
}

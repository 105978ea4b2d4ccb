package ranks

import (
	"slices"

	"siafu/graph"
	"siafu/graph/pairs"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels/model"
	"siafu/ranks/engine"
	"siafu/ranks/predictions"
	"siafu/ranks/world"
)

// readPairs reads a file of pairs of vertices of the dataset folder data, and their names. Errors are those of
// pairs.Read and graph.OpenIDs, and a fault of kind Data if a score needs relations that the file does not have.
func readPairs(path, data string, net model.Spec) (s *pairs.Split, names [][]string, err error) {
	ds, err := graph.OpenIDs(data)
	if err != nil {
		return nil, nil, err
	}
	defer ds.Close()
	if s, err = pairs.Read("predict", path, pairs.NewNames(ds)); err != nil {
		return nil, nil, err
	}
	if s.Relations == nil && net.Design.Score != "" {
		return nil, nil, fault.New(fault.Data, "predict", path, "its pairs have no relations, which the network's score needs").
			Then("write a text file with the columns src, relation and dst")
	}
	for i, r := range s.Relations {
		if int(r) >= net.Design.ScoreRelations && net.Design.Score != "" {
			return nil, nil, fault.New(fault.Data, "predict", path, "pair %d has the relation %s, which is the reverse of another", i+1,
				ds.Meta.Relations.Relations[r].Name).Then("name the other relation, and exchange source and destination")
		}
	}
	for i, u := range s.Edges.Src {
		row := []string{ds.VertexName(int(u)), ds.VertexName(int(s.Edges.Dst[i]))}
		if s.Relations != nil {
			row = slices.Insert(row, 1, ds.Meta.Relations.Relations[s.Relations[i]].Name)
		}
		names = append(names, row)
	}
	return s, names, nil
}

// scorePairs writes the scores of the pairs of --pairs. Collective over the world.
func (r *member) scorePairs(p PredictConfig, net model.Spec, found *engine.Inference) error {
	if p.Pairs == "" {
		return nil
	}
	list, names, err := new(pairs.Split), [][]string(nil), error(nil)
	if r.world.Rank() == 0 {
		list, names, err = readPairs(p.Pairs, r.data, net)
	}
	if err := agree(r.world, err); err != nil {
		return err
	}
	for _, end := range []*[]uint32{&list.Edges.Src, &list.Edges.Dst} {
		blob, err := world.BcastBlob(r.world, mapped.Bytes(*end), 0)
		if err != nil {
			return err
		}
		*end = mapped.Cast[uint32](blob)
	}
	blob, err := world.BcastBlob(r.world, mapped.Bytes(list.Relations), 0)
	if err != nil {
		return err
	}
	if list.Relations = nil; len(blob) > 0 {
		list.Relations = mapped.Cast[uint16](blob)
	}
	scores, err := found.Pairs(list.Edges, list.Relations)
	if err != nil {
		return err
	}
	if r.world.Rank() == 0 {
		err = predictions.WritePairs(p.Out, names, scores)
	}
	return agree(r.world, err)
}

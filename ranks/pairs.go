package ranks

import (
	"encoding/csv"
	"errors"
	"io"
	"os"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/ranks/engine"
	"siafu/ranks/predictions"
	"siafu/ranks/world"
)

// readPairs reads a CSV file with the columns src and dst, of ids of the dataset folder
// data. Faults have kind Missing, IO, or Data with the line.
func readPairs(path, data string) (p graph.Pairs, names [][2]string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, nil, fault.System("predict", path, err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	bad := func(format string, args ...any) error {
		return fault.New(fault.Data, "predict", path, format, args...).Then("give a CSV file with a line src,dst and then two ids of %s a line", data)
	}
	at := [2]int{-1, -1}
	head, err := r.Read()
	for i, name := range head {
		switch name {
		case "src":
			at[0] = i
		case "dst":
			at[1] = i
		}
	}
	if err != nil || min(at[0], at[1]) < 0 {
		return p, nil, bad("its first line is %q", head)
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p, nil, bad("%v", err)
		}
		names = append(names, [2]string{row[at[0]], row[at[1]]})
	}
	if len(names) == 0 {
		return p, nil, bad("it has no pairs")
	}
	places, err := placesOf(names, data)
	if err != nil {
		return p, nil, err
	}
	for i, pair := range names {
		for _, id := range pair {
			if _, ok := places[id]; !ok || places[id] < 0 {
				return p, nil, bad("pair %d names %q, and no vertex has that id", i+1, id)
			}
		}
		p.Src, p.Dst = append(p.Src, uint32(places[pair[0]])), append(p.Dst, uint32(places[pair[1]]))
	}
	return p, names, nil
}

// placesOf are the vertices that have ids, -1 where none has.
func placesOf(names [][2]string, data string) (map[string]int64, error) {
	places := map[string]int64{}
	for _, pair := range names {
		places[pair[0]], places[pair[1]] = -1, -1
	}
	ids, n, done, err := graph.OpenIDs(data)
	if err != nil {
		return nil, err
	}
	defer done()
	for v := range n {
		id := ids.At(int(v))
		if _, wanted := places[id]; wanted {
			places[id] = v
		}
	}
	return places, nil
}

// scorePairs writes the scores of the pairs of --pairs. Collective over the world.
func (r *run) scorePairs(p PredictConfig, found *engine.Inference) error {
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

package predictions

import (
	"encoding/csv"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"siafu/graph"
	"siafu/internal/durable"
	"siafu/internal/elementary"
)

// PairsFile is the file with the scores of the pairs in --pairs, in the same order.
const PairsFile = "pairs.csv"

// WritePairs writes pairs of user ids, or triples with a relation in the middle, to a predictions folder. Each pair
// has its score and the probability of an edge, whose logit is the score.
func WritePairs(dir string, names [][]string, scores []float32) error {
	p := &Files{Options: Options{Dir: dir}}
	if err := p.mark(PairsFile); err != nil {
		return err
	}
	return durable.Write(op, filepath.Join(dir, PairsFile), func(w io.Writer) error {
		c := csv.NewWriter(w)
		header := []string{"src", "dst", "score", "probability"}
		if len(names) > 0 && len(names[0]) == 3 {
			header = slices.Insert(header, 1, "relation")
		}
		c.Write(header)
		for i, s := range scores {
			probability := 1 / (1 + elementary.Exp(-float64(s)))
			var row []string
			for _, name := range names[i] {
				row = append(row, graph.GuardCell(name))
			}
			c.Write(append(row, strconv.FormatFloat(float64(s), 'g', 6, 32), strconv.FormatFloat(probability, 'f', 4, 64)))
		}
		c.Flush()
		return c.Error()
	})
}

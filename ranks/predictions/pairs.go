package predictions

import (
	"encoding/csv"
	"io"
	"path/filepath"
	"strconv"

	"siafu/graph"
	"siafu/internal/durable"
	"siafu/internal/elementary"
)

// PairsFile is the file with the scores of the pairs in --pairs, in the same order.
const PairsFile = "pairs.csv"

// WritePairs writes pairs of user ids to a predictions folder. Each pair has its score and the
// probability of an edge, whose logit is the score.
func WritePairs(dir string, names [][2]string, scores []float32) error {
	p := &Files{Options: Options{Dir: dir}}
	if err := p.mark(PairsFile); err != nil {
		return err
	}
	return durable.Write(op, filepath.Join(dir, PairsFile), func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write([]string{"src", "dst", "score", "probability"})
		for i, s := range scores {
			probability := 1 / (1 + elementary.Exp(-float64(s)))
			c.Write([]string{graph.GuardCell(names[i][0]), graph.GuardCell(names[i][1]), strconv.FormatFloat(float64(s), 'g', 6, 32),
				strconv.FormatFloat(probability, 'f', 4, 64)})
		}
		c.Flush()
		return c.Error()
	})
}

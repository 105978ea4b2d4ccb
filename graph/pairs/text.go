package pairs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// lines calls visit for each line of a text file.
func (r reader) lines(remedy string, visit func(line int, row []string) error) error {
	f, err := os.Open(r.path)
	if err != nil {
		return fault.System(r.op, r.path, err)
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.ReuseRecord, c.TrimLeadingSpace = true, true
	if strings.EqualFold(filepath.Ext(r.path), ".tsv") {
		c.Comma, c.TrimLeadingSpace = '\t', false
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.bad("%v", err).Then("%s", remedy)
		}
		line, _ := c.FieldPos(0)
		if err := visit(line, row); err != nil {
			return err
		}
	}
}

func (r reader) vertex(line int, id string) (uint32, error) {
	v, ok := r.names.word(id)
	if !ok { // GuardCell guarded ids in pairs.csv that look like formulas
		v, ok = r.names.word(graph.UnguardCell(id))
	}
	if !ok {
		return 0, r.unknown(fmt.Sprintf("line %d", line), id)
	}
	return v, nil
}

func textPairs(r reader) (p graph.Pairs, err error) {
	const remedy = "write a first line src,dst and then two ids per line"
	var at [2]int
	headed := false
	err = r.lines(remedy, func(line int, row []string) error {
		if !headed {
			at, headed = [2]int{slices.Index(row, "src"), slices.Index(row, "dst")}, true
			if min(at[0], at[1]) < 0 {
				return r.bad("its first line is %q", row).Then(remedy)
			}
			return nil
		}
		for i, to := range []*[]uint32{&p.Src, &p.Dst} {
			v, err := r.vertex(line, row[at[i]])
			if err != nil {
				return err
			}
			*to = append(*to, v)
		}
		return nil
	})
	if err == nil && !headed {
		err = r.bad("it is empty and has no first line").Then(remedy)
	}
	return p, err
}

func textRows(r reader) (all []uint32, width int, err error) {
	err = r.lines("write the same number of ids in each line", func(line int, row []string) error {
		width = len(row)
		for _, id := range row {
			v, err := r.vertex(line, id)
			if err != nil {
				return err
			}
			all = append(all, v)
		}
		return nil
	})
	return all, width, err
}

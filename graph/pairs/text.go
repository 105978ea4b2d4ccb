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
	if end := strings.ToLower(filepath.Ext(r.path)); end == ".tsv" || end == ".txt" && r.names.relations != nil {
		c.Comma, c.TrimLeadingSpace, c.LazyQuotes = '\t', false, r.names.relations != nil
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

// header returns the columns of source, destination and relation in the first line; ok is false if it is an edge
// of a relational graph, or if columns are missing.
func (r reader) header(row []string) (at [3]int, headed, ok bool) {
	at = [3]int{slices.Index(row, "src"), slices.Index(row, "dst"), -1}
	if r.names.relations == nil {
		return at, true, min(at[0], at[1]) >= 0
	}
	at[0], at[1] = max(at[0], slices.Index(row, "head")), max(at[1], slices.Index(row, "tail"))
	if at[2] = slices.Index(row, "relation"); slices.Min(at[:]) >= 0 {
		return at, true, true
	}
	return [3]int{0, 2, 1}, false, len(row) == 3
}

func textPairs(r reader, s *Split) (err error) {
	remedy := "write a first line src,dst and then two ids per line"
	if r.names.relations != nil {
		remedy = relationRemedy
	}
	var at [3]int
	begun := false
	err = r.lines(remedy, func(line int, row []string) error {
		if !begun {
			var headed, ok bool
			if at, headed, ok = r.header(row); !ok {
				return r.bad("its first line is %q", row).Then("%s", remedy)
			}
			if begun = true; headed {
				return nil
			}
		}
		var ends [2]uint32
		for i, to := range []*[]uint32{&s.Edges.Src, &s.Edges.Dst} {
			v, err := r.vertex(line, row[at[i]])
			if err != nil {
				return err
			}
			ends[i], *to = v, append(*to, v)
		}
		if at[2] < 0 {
			return nil
		}
		relation, err := r.relation(line, row[at[2]], ends[0], ends[1])
		s.Relations = append(s.Relations, relation)
		return err
	})
	if err == nil && !begun {
		err = r.bad("it is empty and has no first line").Then("%s", remedy)
	}
	return err
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

package predictions

import (
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"siafu/graph"
)

const (
	rowsAtOnce  = 256     // rows per call of WriteRows
	rowsInGroup = 1 << 16 // rows per row group, which is buffered in memory
)

// ordered is a group with an explicit order of its columns.
type ordered struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field {
	byName := map[string]parquet.Field{}
	for _, f := range o.Group.Fields() {
		byName[f.Name()] = f
	}
	var list []parquet.Field
	for _, name := range o.names {
		list = append(list, byName[name])
	}
	return list
}

// writeParquet writes one row per vertex, with the columns of predictions.csv and a column for the
// probability of each class. Ids are numbers if all ids are. A missing split or label is null.
func (t *table) writeParquet(w io.Writer) error {
	kind := t.kindColumn()
	names := distinct(append(kind, t.heading(true)...))
	group := parquet.Group{}
	for i, name := range names {
		i -= len(kind)
		switch {
		case i < 0:
			group[name] = parquet.String()
		case i == 0 && t.numbered():
			group[name] = parquet.Int(64)
		case i == 1, i == 2 && t.Task != graph.Regression:
			group[name] = parquet.Optional(parquet.String())
		case t.Task == graph.Regression && i%2 == 0 && i > 0:
			group[name] = parquet.Optional(parquet.Leaf(parquet.FloatType))
		case i < 4 && t.Task != graph.Regression, i == 0:
			group[name] = parquet.String()
		default:
			group[name] = parquet.Leaf(parquet.FloatType)
		}
	}
	out := parquet.NewWriter(w, parquet.NewSchema("predictions", ordered{group, names}), parquet.Compression(&parquet.Zstd),
		parquet.CreatedBy("siafu", "", ""))
	var batch []parquet.Row
	for i := range t.rows {
		batch = append(batch, t.parquetRow(i))
		if len(batch) < rowsAtOnce && i < t.rows-1 {
			continue
		}
		if _, err := out.WriteRows(batch); err != nil {
			return err
		}
		if batch = batch[:0]; (i+1)%rowsInGroup == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	return out.Close()
}

// distinct makes the names of columns distinct: it appends the position to a repeated name.
func distinct(names []string) []string {
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			names[i] = name + "_" + strconv.Itoa(i)
		}
		seen[names[i]] = true
	}
	return names
}

func (t *table) numbered() bool { return t.ds.IDs == nil || t.ds.IDs.Ints != nil }

func (t *table) parquetRow(i int) parquet.Row {
	v, of := t.vertex(i), t.of(i)
	row := make(parquet.Row, 0, 6+2*t.classes)
	put := func(x parquet.Value, present int) { row = append(row, x.Level(0, present, len(row))) }
	optional := func(text string) {
		if text == "" {
			put(parquet.NullValue(), 0)
			return
		}
		put(parquet.ByteArrayValue([]byte(text)), 1)
	}
	if t.ds.Meta.Relations != nil {
		put(parquet.ByteArrayValue([]byte(t.kind(v))), 0)
	}
	switch {
	case t.ds.IDs == nil:
		put(parquet.Int64Value(int64(v)), 0)
	case t.numbered():
		put(parquet.Int64Value(t.ds.IDs.Ints[v]), 0)
	default:
		put(parquet.ByteArrayValue([]byte(t.ds.IDs.At(v))), 0)
	}
	optional(splitNames[t.ds.Split[v]])
	if t.Task == graph.Regression {
		for c, x := range of {
			if t.ds.Targets == nil || t.ds.Labels[v] < 0 {
				put(parquet.NullValue(), 0)
			} else {
				put(parquet.FloatValue(t.ds.Targets[v*t.classes+c]), 1)
			}
			put(parquet.FloatValue(x), 0)
		}
		return row
	}
	optional(t.label(v))
	put(parquet.ByteArrayValue([]byte(t.prediction(i))), 0)
	if t.Task != graph.MultiLabel {
		put(parquet.FloatValue(of[t.picks[i]]), 0)
	}
	for _, x := range of {
		put(parquet.FloatValue(x), 0)
	}
	return row
}

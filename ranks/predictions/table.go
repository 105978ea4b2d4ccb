package predictions

import (
	"encoding/csv"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/npy"
)

// table is the table of predictions. It maps the written files.
type table struct {
	*Files
	ds    *graph.Dataset
	rows  int
	picks []int64   // the most probable class of each row, for MultiClass
	said  []uint8   // 0 or 1 [rows x classes], for MultiLabel
	probs []float32 // probabilities of classes, or values of a regression [rows x classes]
	open  []*mapped.File
}

// table opens the table of the dataset ds.
func (p *Files) table(ds *graph.Dataset) (*table, error) {
	t := &table{Files: p, ds: ds, rows: p.Options.rows(int(ds.Meta.Vertices))}
	err := t.load()
	if err != nil {
		t.close()
	}
	return t, err
}

func (t *table) load() error {
	classes, err := t.body(ClassFile)
	if err != nil {
		return err
	}
	switch t.Task {
	case graph.MultiLabel:
		t.said = classes
	case graph.Regression:
		t.probs = mapped.Cast[float32](classes)
		return nil
	default:
		t.picks = mapped.Cast[int64](classes)
	}
	probs, err := t.body(ProbabilityFile)
	t.probs = mapped.Cast[float32](probs)
	return err
}

// body maps a file and returns its data without the header.
func (t *table) body(name string) ([]byte, error) {
	f, err := mapped.OpenFile(filepath.Join(t.Dir, name))
	if err != nil {
		return nil, err
	}
	t.open = append(t.open, f)
	for _, m := range t.files {
		if m.name == name {
			return f.Bytes()[len(m.header):], nil
		}
	}
	return nil, npy.ErrType // not reached: layout lists the file
}

func (t *table) close() {
	for _, f := range t.open {
		f.Close()
	}
}

// of returns the numbers of a row.
func (t *table) of(row int) []float32 {
	return t.probs[row*t.classes : (row+1)*t.classes]
}

// writeCSV writes one line per vertex: its kind in a relational graph, id, split, label, prediction, the probability of the
// prediction and, if ByClass is set, of each class. Several labels of a vertex are separated by
// semicolons. A regression has a label and a prediction for each column. Classes have the names of
// the training dataset. graph.GuardCell guards texts that a spreadsheet would evaluate as formulas.
func (t *table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write(append(t.kindColumn(), t.heading(t.ByClass)...)) // a name after label_, prediction_ or p_ is not a formula
	var row []string
	for i := range t.rows {
		v, of := t.vertex(i), t.of(i)
		if row = row[:0]; t.ds.Meta.Relations != nil {
			row = append(row, graph.GuardCell(t.kind(v)))
		}
		row = append(row, graph.GuardCell(t.ds.IDs.At(v)), splitNames[t.ds.Split[v]])
		if t.Task == graph.Regression {
			for c, x := range of {
				row = append(row, t.truth(v, c), strconv.FormatFloat(float64(x), 'g', 6, 32))
			}
			out.Write(row)
			continue
		}
		row = append(row, graph.GuardCell(t.label(v)), graph.GuardCell(t.prediction(i)))
		if t.Task != graph.MultiLabel {
			row = append(row, decimals(of[t.picks[i]]))
		}
		if t.ByClass {
			for _, x := range of {
				row = append(row, decimals(x))
			}
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// label returns the true class or the true labels of a vertex.
func (t *table) label(v int) string {
	if t.Task != graph.MultiLabel {
		return t.Schema.ClassName(int64(t.ds.Labels[v]))
	}
	if t.ds.Labels[v] < 0 {
		return ""
	}
	return t.names(func(c int) bool {
		if t.ds.Targets == nil { // a dataset with classes: its class is the only label
			return int(t.ds.Labels[v]) == c
		}
		return t.ds.Targets[v*t.classes+c] > 0
	})
}

// prediction returns the predicted class or the predicted labels of a row.
func (t *table) prediction(row int) string {
	if t.Task != graph.MultiLabel {
		return t.Schema.ClassName(t.picks[row])
	}
	return t.names(func(c int) bool { return t.said[row*t.classes+c] > 0 })
}

// names returns the names of the classes for which has is true, separated by semicolons.
func (t *table) names(has func(c int) bool) string {
	var list []string
	for c := range t.classes {
		if has(c) {
			list = append(list, t.Schema.ClassName(int64(c)))
		}
	}
	return strings.Join(list, ";")
}

// truth returns the true number in a column of a vertex, or an empty text if there is none.
func (t *table) truth(v, c int) string {
	if t.ds.Targets == nil || t.ds.Labels[v] < 0 {
		return ""
	}
	return strconv.FormatFloat(float64(t.ds.Targets[v*t.classes+c]), 'g', -1, 32)
}

// kindColumn returns the name of the first column of a relational graph, and nil for other graphs.
func (t *table) kindColumn() []string {
	if t.ds.Meta.Relations == nil {
		return nil
	}
	return []string{"kind"}
}

func (t *table) kind(v int) string {
	r := t.ds.Meta.Relations
	return r.Kinds[r.KindOf(int64(v))].Name
}

// heading returns the names of the columns of a table of predictions.
func (p *Files) heading(byClass bool) []string {
	names := []string{"id", "split"}
	switch {
	case p.Task == graph.Regression && p.classes == 1:
		return append(names, "label", "prediction")
	case p.Task == graph.Regression:
		for c := range p.classes {
			name := p.Schema.ClassName(int64(c))
			names = append(names, "label_"+name, "prediction_"+name)
		}
		return names
	}
	if names = append(names, "label", "prediction"); p.Task != graph.MultiLabel {
		names = append(names, "probability")
	}
	if byClass {
		for c := range p.classes {
			names = append(names, "p_"+p.Schema.ClassName(int64(c)))
		}
	}
	return names
}

package importers

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/graph/fault"
)

// classList gathers labels of any type.
type classList struct {
	labels []int32  // of the vertices: numbers of values, later of classes
	values *idIndex // in the order in which they came
	first  []int64  // positions of their first rows
	names  []string // of the classes, once they are numbered
}

// add takes in the label of the next vertex; an empty one is none.
func (l *classList) add(at int64, label []byte) {
	if l.values == nil {
		l.values = newIDIndex()
	}
	if len(label) == 0 {
		l.labels = append(l.labels, graph.Unlabelled)
		return
	}
	v, fresh := l.values.add(label)
	if fresh {
		l.first = append(l.first, at)
	}
	l.labels = append(l.labels, int32(v))
}

// numeric tells whether all values are numbers or say that there is none.
func (l *classList) numeric() bool {
	for v := range l.values.len() {
		value := l.values.at(uint32(v))
		if _, ok := number(value); !ok && !isAbsent(value) {
			return false
		}
	}
	return true
}

// canonical are the values as names of classes, "" for none: whole numbers are
// written without a point, as 1.0 comes of a column of whole numbers where some
// are missing.
func (l *classList) canonical(t *tableFile, column int) ([]string, error) {
	names, numeric := make([]string, l.values.len()), l.numeric()
	for v := range names {
		value := l.values.at(uint32(v))
		x, _ := number(value)
		switch {
		case !numeric:
			names[v] = string(value)
		case isAbsent(value):
		case x != math.Trunc(x):
			return nil, t.fault(l.first[v], column, value, "is no class, but a quantity").Then("write labels that are names or whole numbers, or say that they are quantities with --task regression")
		case math.Abs(x) < 1<<53:
			names[v] = strconv.FormatInt(int64(x), 10)
		default:
			names[v] = string(value)
		}
	}
	return names, nil
}

// settle numbers the classes in the order of their names.
func (l *classList) settle(t *tableFile, column int) error {
	names, err := l.canonical(t, column)
	if err != nil {
		return err
	}
	set := map[string]bool{}
	for _, name := range names {
		if name != "" {
			set[name] = true
		}
	}
	l.names = sortedValues(set)
	switch n := len(l.names); {
	case n == 0:
		return fault.New(fault.Data, t.op, t.path, "column %d (%s): no vertex has a label", column+1, t.names[column]).
			Then("label at least those to train on, take another column with --label, or name the run that is to predict with --like")
	case n > fewValues && 2*n > len(l.labels):
		return fault.New(fault.Data, t.op, t.path, "column %d (%s): it has %d different labels in %d rows", column+1, t.names[column], n, len(l.labels)).
			Then("take a column of classes with --label, or say that they are quantities with --task regression")
	}
	l.number(names)
	return nil
}

// fit numbers the classes as a dataset does.
func (l *classList) fit(t *tableFile, column int, m *graph.Schema) error {
	names, err := l.canonical(t, column)
	if err != nil {
		return err
	}
	for c := range m.Classes {
		l.names = append(l.names, m.ClassName(int64(c)))
	}
	for v, name := range names {
		if name != "" && !slices.Contains(l.names, name) {
			return t.fault(l.first[v], column, l.values.at(uint32(v)), "is none of the classes of %s: %.200s", m.Dataset, strings.Join(l.names, ", ")).
				Then("leave the label of such vertices empty")
		}
	}
	l.number(names)
	return nil
}

// number replaces values, which bear these names, by classes.
func (l *classList) number(names []string) {
	class := map[string]int32{"": graph.Unlabelled}
	for c, name := range l.names {
		class[name] = int32(c)
	}
	for v, value := range l.labels {
		if value != graph.Unlabelled {
			l.labels[v] = class[names[value]]
		}
	}
}

// classNames are the names for a dataset: nil where they are the numbers of the
// classes.
func (l *classList) classNames() []string {
	for c, name := range l.names {
		if name != strconv.Itoa(c) {
			return l.names
		}
	}
	return nil
}

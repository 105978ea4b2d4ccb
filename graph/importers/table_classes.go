package importers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
)

// classList gathers labels of any type.
type classList struct {
	labels []int32  // of the vertices: numbers of values, later of classes
	values *idIndex // in the order of their first rows
	first  []int64  // positions of their first rows
	names  []string // of the classes, once they are numbered
	// negative is the number of vertices whose label is -1, which means no label.
	negative int64
	missing  gap // labels whose texts mean no label
}

// add reads the label of the next vertex; an empty or missing one means none.
func (l *classList) add(at int64, label []byte, m missingTexts) {
	if l.values == nil {
		l.values = newIDIndex()
	}
	if m.has(label) {
		if len(label) > 0 {
			l.missing.add(at, label)
		}
		l.labels = append(l.labels, graph.Unlabelled)
		return
	}
	v, fresh := l.values.add(label)
	if fresh {
		l.first = append(l.first, at)
	}
	l.labels = append(l.labels, int32(v))
}

// numeric reports whether all values are numbers.
func (l *classList) numeric() bool {
	for v := range l.values.len() {
		if _, ok := number(l.values.at(uint32(v))); !ok {
			return false
		}
	}
	return true
}

// canonical returns the values as names of classes, "" for no label. A number is named by
// plainNumber, and -1 means no label, as in all formats. known are the classes of --like: they
// keep their names, also -1 and numbers without their leading zeros.
func (l *classList) canonical(t *tableFile, column int, known []string) []string {
	names, numeric := make([]string, l.values.len()), l.numeric()
	for v := range names {
		value := l.values.at(uint32(v))
		x, isNumber := number(value)
		name, short := string(value), ""
		if numeric {
			name = plainNumber(value)
			short = cmp.Or(strings.TrimLeft(name, "0"), "0")
		}
		switch {
		case slices.Contains(known, name):
			names[v] = name
		case slices.Contains(known, short):
			names[v] = short
		case isNumber && x == -1:
		case numeric && x != math.Trunc(x):
			check(t.fault(l.first[v], column, value, "is a quantity, not a class").
				Then("write class names or whole numbers, or set --task regression"))
		case numeric && x < 0:
			check(t.fault(l.first[v], column, value, "is negative and not a class").
				Then("number the classes from 0 or write their names; -1 means no label"))
		default:
			names[v] = name
		}
	}
	return names
}

// settle numbers the classes in the order of their names.
func (l *classList) settle(t *tableFile, column int) {
	names := l.canonical(t, column, nil)
	set := map[string]bool{}
	for _, name := range names {
		if name != "" {
			set[name] = true
		}
	}
	l.names = sortedValues(set)
	n := len(l.names)
	t.require(n > 0, "label the training vertices, choose another column with --label, or name the run to predict with in --like",
		"%s: no vertex has a label", t.called(column))
	t.require(n <= fewValues || 2*n <= len(l.labels), "name a column of classes with --label, or set --task regression",
		"%s: it has %d different labels in %d rows", t.called(column), n, len(l.labels))
	l.number(names)
}

// fit numbers the classes as in a dataset.
func (l *classList) fit(t *tableFile, column int, m *graph.Schema) {
	for c := range m.Classes {
		l.names = append(l.names, m.ClassName(int64(c)))
	}
	names := l.canonical(t, column, l.names)
	for v, name := range names {
		if name != "" && !slices.Contains(l.names, name) {
			check(t.fault(l.first[v], column, l.values.at(uint32(v)), "is not a class of %s: %.200s",
				m.Dataset, strings.Join(l.names, ", ")).
				Then("leave the label of such vertices empty"))
		}
	}
	l.number(names)
}

// number replaces values by the classes with their names.
func (l *classList) number(names []string) {
	class := map[string]int32{"": graph.Unlabelled}
	for c, name := range l.names {
		class[name] = int32(c)
	}
	for v, value := range l.labels {
		if value == graph.Unlabelled {
			continue
		}
		l.labels[v] = class[names[value]]
		if names[value] == "" {
			l.negative++
		}
	}
}

// classNames returns the names for a dataset: nil if they are the numbers of the classes.
func (l *classList) classNames() []string {
	for c, name := range l.names {
		if name != strconv.Itoa(c) {
			return l.names
		}
	}
	return nil
}

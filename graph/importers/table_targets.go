package importers

import (
	"math"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// targetColumns has the columns of targets in a table.
type targetColumns struct {
	at     []int // columns
	names  []string
	values []float32 // [rows x columns], NaN for none
}

// findTargets finds the columns of targets, if --label names several or --task makes one a
// target; nil for a column of classes. label is --label's default.
func (im *tableImport) findTargets(label string) (*targetColumns, error) {
	task, names := im.Task, []string{label}
	if im.nodes.column(label) < 0 {
		names = strings.Split(label, ",")
	}
	if im.like != nil {
		task = im.like.Task
	}
	if len(names) == 1 && (task == "" || task == graph.MultiClass) {
		return nil, nil
	}
	if task == graph.MultiClass {
		return nil, fault.New(fault.Usage, im.op(), im.nodes.path, "--task=%s with the %d columns %s", task, len(names), label).Then("name one column of classes with --label")
	}
	t := &targetColumns{names: names}
	for _, name := range names {
		at := im.nodes.column(name)
		if at < 0 && im.like != nil && im.Label == "" {
			return nil, nil // a table to predict on
		}
		if _, err := im.nodes.needs(name, "--label"); err != nil {
			return nil, err
		}
		t.at = append(t.at, at)
	}
	return t, nil
}

// has reports whether a column has targets.
func (t *targetColumns) has(column int) bool { return t != nil && slices.Contains(t.at, column) }

// add reads a row: a number in each column, or all empty. The label is that of
// graph.TargetLabels.
func (t *targetColumns) add(f *tableFile, at int64, cells [][]byte) (label int32, err error) {
	missing := 0
	for _, c := range t.at {
		y, ok := number(cells[c])
		if isAbsent(cells[c]) || len(cells[c]) == 0 {
			y, ok = math.NaN(), true
			missing++
		}
		if !ok {
			return 0, f.fault(at, c, cells[c], "is not a number").Then("write a number in every --label column of the row, or leave all of them empty")
		}
		t.values = append(t.values, float32(y))
	}
	switch missing {
	case 0:
		return 0, nil
	case len(t.at):
		return graph.Unlabelled, nil
	}
	return 0, f.fault(at, t.at[0], cells[t.at[0]], "is in a row that has labels in %d of %d columns", len(t.at)-missing, len(t.at)).
		Then("write a number in every one of these columns, or in none")
}

// settleTargets sets the targets of a content.
func (im *tableImport) settleTargets(c *graph.Content) error {
	t := im.targets
	if !slices.ContainsFunc(c.Labels, func(l int32) bool { return l >= 0 }) {
		if im.like != nil {
			return nil // all vertices are to be predicted
		}
		return fault.New(fault.Data, im.op(), im.nodes.path, "columns %s: no vertex has a label", strings.Join(t.names, ", ")).
			Then("label the training vertices, or name the run to predict with in --like")
	}
	o := im.Options
	if im.like != nil {
		o.Task = im.like.Task
	}
	if err := setTargets(o, c, t.values, len(t.at), im.op(), im.nodes.path); err != nil {
		return err
	}
	c.ClassNames = t.names
	return nil
}

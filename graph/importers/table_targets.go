package importers

import (
	"math"
	"slices"
	"strings"

	"siafu/graph"
)

type targetColumns struct {
	at     []int // columns
	names  []string
	values []float32 // [rows x columns], NaN for none
}

// findTargets finds the columns of targets, if --label names several or --task makes one a
// target; nil for a column of classes. label is --label's default.
func (im *tableImport) findTargets(label string) *targetColumns {
	task, names := im.Task, []string{label}
	if im.nodes.column(label) < 0 {
		names = strings.Split(label, ",")
	}
	if im.like != nil {
		task = im.like.Task
	}
	if len(names) == 1 && (task == "" || task == graph.MultiClass) {
		return nil
	}
	if task == graph.MultiClass {
		im.nodes.refuse("name one column of classes with --label", "--task=%s with the %d columns %s", task, len(names), label)
	}
	t := &targetColumns{names: names}
	for _, name := range names {
		if im.nodes.column(name) < 0 && im.like != nil && im.Label == "" {
			return nil // a table to predict on
		}
		t.at = append(t.at, im.nodes.needs(name, "--label"))
	}
	return t
}

func (t *targetColumns) has(column int) bool { return t != nil && slices.Contains(t.at, column) }

// add reads a row: a number in each column, or all empty. It returns the label of
// graph.TargetLabels.
func (t *targetColumns) add(f *tableFile, at int64, cells [][]byte) (label int32) {
	missing := 0
	for _, c := range t.at {
		y, ok := number(cells[c])
		if len(cells[c]) == 0 {
			y, ok = math.NaN(), true
			missing++
		}
		if !ok {
			check(f.fault(at, c, cells[c], "is not a number").
				Then("%s", writeNumber(cells[c], "write a number in every --label column of the row, or leave all of them empty")))
		}
		t.values = append(t.values, float32(y))
	}
	switch missing {
	case 0:
		return 0
	case len(t.at):
		return graph.Unlabelled
	}
	check(f.fault(at, t.at[0], cells[t.at[0]], "is in a row that has labels in %d of %d columns", len(t.at)-missing, len(t.at)).
		Then("write a number in every one of these columns, or in none"))
	return 0
}

func (im *tableImport) settleTargets(c *graph.Content) {
	t, o := im.targets, im.Options
	if t == nil {
		return
	}
	if !slices.ContainsFunc(c.Labels, func(l int32) bool { return l >= 0 }) {
		im.nodes.require(im.like != nil, "label the training vertices, or name the run to predict with in --like",
			"columns %s: no vertex has a label", strings.Join(t.names, ", "))
		return // all vertices are to be predicted
	}
	if im.like != nil {
		o.Task, c.TargetScaling = im.like.Task, im.like.TargetScaling
	}
	setTargets(o, c, t.values, len(t.at), im.nodes.input)
	c.ClassNames = t.names
}

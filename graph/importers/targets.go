package importers

import (
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/npy"
)

// setLabels reads the labels of an array. Unless --task says otherwise, whole numbers [n] or
// [n x 1] are classes; other numbers, and several columns, are targets.
func (a ndarray) setLabels(o Options, c *graph.Content) {
	columns := 1
	if len(a.Shape) == 2 {
		columns = a.Shape[1]
	}
	values := must(a.Float32s())
	if (o.Task == graph.MultiClass || o.Task == "" && !slices.ContainsFunc(values, isFraction)) && columns == 1 &&
		slices.ContainsFunc(values, isNaN) {
		a.Array = withoutNaN(a.Array, values)
	}
	if o.Task == graph.MultiClass || o.Task == "" && columns == 1 && !slices.ContainsFunc(values, isFraction) {
		c.Labels = a.labels(c.Vertices)
		return
	}
	a.require(len(a.Shape) > 0 && len(a.Shape) <= 2 && int64(a.Shape[0]) == c.Vertices && columns > 0, "give each vertex a row",
		"labels have shape %v for %d vertices", a.Shape, c.Vertices)
	a.require(o.Task != "" || slices.ContainsFunc(values, isFraction) || graph.TargetTask(values, columns) != graph.Regression,
		"set --task regression for quantities; write multi-label classes as columns of 0 and 1",
		"labels have shape %v and whole numbers other than 0 and 1", a.Shape)
	setTargets(o, c, values, columns, a.input)
}

func isNaN(y float32) bool { return y != y }

// withoutNaN returns an array of labels in which NaN, which pandas and NumPy write for a missing
// one, is -1.
func withoutNaN(a *npy.Array, values []float32) *npy.Array {
	labels := slices.Clone(values)
	for i, y := range labels {
		if isNaN(y) {
			labels[i] = float32(graph.Unlabelled)
		}
	}
	return &npy.Array{Type: "<f4", Shape: a.Shape, Data: mapped.Bytes(labels)}
}

// oneHotClasses returns the column of the only 1 in each row of targets, as its class. ok is false
// if a row has none or several, so that the rows are sets of labels.
func oneHotClasses(targets []float32, columns int) (labels []int32, ok bool) {
	labels = graph.TargetLabels(targets, columns)
	for v, l := range labels {
		row := targets[v*columns : (v+1)*columns]
		if l == graph.Unlabelled {
			continue
		}
		labels[v] = int32(slices.Index(row, 1))
		if ones := slices.Index(row[labels[v]+1:], 1); labels[v] < 0 || ones >= 0 {
			return nil, false
		}
	}
	return labels, true
}

func isFraction(y float32) bool { return y-y == 0 && y != float32(math.Trunc(float64(y))) }

// setTargets sets a content's targets [n x columns], for the task of --task or of their values.
func setTargets(o Options, c *graph.Content, values []float32, columns int, at input) {
	c.Targets, c.Classes, c.Task = values, columns, o.Task
	if c.Task == "" {
		c.Task = graph.TargetTask(values, columns)
	}
	c.Labels = graph.TargetLabels(values, columns)
	if i, reason := graph.BadTarget(c.Task, values, columns, c.Labels); reason != "" {
		at.require(false, "write a number (0 or 1 for multilabel) in every column of a row, or in none",
			"column %d of row %d is %v: %s", i%columns, i/columns, values[i], reason)
	}
	if labels, ok := oneHotClasses(values, columns); ok && o.Task == "" && c.Task == graph.MultiLabel {
		c.Targets, c.Labels, c.Task = nil, labels, graph.MultiClass
		o.Log("task=%s classes=%d: each row of labels has one 1; set --task %s if a vertex may have several labels",
			c.Task, columns, graph.MultiLabel)
		return
	}
	o.Log("task=%s columns=%d", c.Task, columns)
}

// largeTargets is the mean or deviation of targets above which training converges badly: networks
// start near 0 and learn in steps of --lr.
const largeTargets = 10

// scaleTargets sets the scaling of a regression's targets with --standardise. Without it,
// scaleTargets warns of large targets.
func scaleTargets(at input, o Options, c *graph.Content) {
	switch {
	case c.TargetScaling != nil: // of --like
	case c.Task == graph.Regression:
		for j := range c.Classes {
			m := trainingTargets(c, j)
			if s := m.scaling(); o.Standardise {
				c.TargetScaling = append(c.TargetScaling, s)
			} else if math.Abs(s.Mean) > largeTargets || s.Scale > largeTargets {
				o.Log("warning: column %d of the labels has mean %.4g and deviation %.4g: training converges badly; import with "+
					"--standardise", j, s.Mean, s.Scale)
			}
		}
	case o.Standardise && c.Table == nil && !c.Relations.FromTables():
		at.refuse("leave --standardise out, or import the features as csv",
			"--standardise scales numbers of tables and targets of regressions")
	}
}

// trainingTargets returns the moments of a column of targets over the training rows.
func trainingTargets(c *graph.Content, column int) (m moments) {
	for v, set := range c.Split {
		if set == graph.SplitTrain {
			m.add(float64(c.Targets[v*c.Classes+column]))
		}
	}
	return m
}

package importers

import (
	"math"
	"slices"

	"siafu/graph"
)

// setLabels reads the labels of an array. Unless --task says otherwise, whole numbers [n] or
// [n x 1] are classes; other numbers, and several columns, are targets.
func (a ndarray) setLabels(o Options, c *graph.Content) {
	columns := 1
	if len(a.Shape) == 2 {
		columns = a.Shape[1]
	}
	values := must(a.Float32s())
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
	o.Log("task=%s columns=%d", c.Task, columns)
	if c.Task != graph.Regression {
		return
	}
	// Networks start near 0.
	for j := range columns {
		var m moments
		for i := j; i < len(values); i += columns {
			if y := float64(values[i]); y == y {
				m.add(y)
			}
		}
		if deviation := math.Sqrt(m.squares / max(m.n, 1)); math.Abs(m.mean) > 10 || deviation > 10 {
			o.Log("warning: column %d of the labels has mean %.4g and deviation %.4g: scale it to mean 0 and deviation 1, because networks start near 0 and learn in steps of --lr", j, m.mean, deviation)
		}
	}
}

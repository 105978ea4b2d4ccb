package importers

import (
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/npy"
)

// setLabels reads the labels of an array. Unless --task says otherwise, whole numbers [n] or
// [n x 1] are classes; other numbers, and several columns, are targets.
func (a ndarray) setLabels(o Options, c *graph.Content) (err error) {
	columns := 1
	if a.err == nil && len(a.Shape) == 2 {
		columns = a.Shape[1]
	}
	values, err := elements(a, (*npy.Array).Float32s)
	if err != nil {
		return err
	}
	if o.Task == graph.MultiClass || o.Task == "" && columns == 1 && !slices.ContainsFunc(values, isFraction) {
		c.Labels, err = a.labels(c.Vertices)
		return err
	}
	switch {
	case len(a.Shape) > 2 || int64(a.Shape[0]) != c.Vertices || columns < 1:
		return a.bad("labels have shape %v for %d vertices", a.Shape, c.Vertices).Then("give each vertex a row")
	case o.Task == "" && !slices.ContainsFunc(values, isFraction) && graph.TargetTask(values, columns) == graph.Regression:
		return a.bad("labels have shape %v and whole numbers other than 0 and 1", a.Shape).
			Then("set --task regression for quantities; write multi-label classes as columns of 0 and 1")
	}
	return setTargets(o, c, values, columns, a.op, a.path)
}

// isFraction reports whether a number is not a whole number.
func isFraction(y float32) bool { return y-y == 0 && y != float32(math.Trunc(float64(y))) }

// setTargets sets a content's targets [n x columns], for the task of --task or of their
// values. Faults name op and path.
func setTargets(o Options, c *graph.Content, values []float32, columns int, op, path string) error {
	c.Targets, c.Classes, c.Task = values, columns, o.Task
	if c.Task == "" {
		c.Task = graph.TargetTask(values, columns)
	}
	c.Labels = graph.TargetLabels(values, columns)
	if at, why := graph.BadTarget(c.Task, values, columns, c.Labels); why != "" {
		return (ndarray{op: op, path: path}).bad("column %d of row %d is %v: %s", at%columns, at/columns, values[at], why).
			Then("write a number (0 or 1 for multilabel) in every column of a row, or in none")
	}
	o.Log("task=%s columns=%d", c.Task, columns)
	if c.Task == graph.Regression {
		warnOfScale(o, values, columns, c.Split)
	}
	return nil
}

// warnOfScale warns of columns whose values are far from a network's initial output.
func warnOfScale(o Options, values []float32, columns int, split []uint8) {
	for c := range columns {
		var m moments
		for i := c; i < len(values); i += columns {
			if y := float64(values[i]); y == y {
				m.add(y)
			}
		}
		if deviation := math.Sqrt(m.squares / max(m.n, 1)); math.Abs(m.mean) > 10 || deviation > 10 {
			o.Log("warning: column %d of the labels has mean %.4g and deviation %.4g: scale it to mean 0 and deviation 1, because networks start near 0 and learn in steps of --lr", c, m.mean, deviation)
		}
	}
}

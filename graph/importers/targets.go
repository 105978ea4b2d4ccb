package importers

import (
	"math"

	"siafu/graph"
	"siafu/graph/npy"
)

// setLabels reads the labels of an array: whole numbers [n] or [n x 1] are classes, and
// what has several columns, or numbers that are no whole ones, are targets.
func (a ndarray) setLabels(o Options, c *graph.Content) (err error) {
	columns := 1
	switch {
	case a.err != nil:
		return a.err
	case len(a.Shape) == 2:
		columns = a.Shape[1]
	}
	float := len(a.Type) > 1 && a.Type[1] == 'f'
	if o.Task == graph.MultiClass || o.Task == "" && columns == 1 && !float {
		c.Labels, err = a.labels(c.Vertices)
		return err
	}
	if len(a.Shape) > 2 || int64(a.Shape[0]) != c.Vertices || columns < 1 {
		return a.bad("labels have shape %v for %d vertices", a.Shape, c.Vertices).Then("give each vertex a row")
	}
	values := make([]float32, a.Len())
	if float {
		err = a.CopyFloat32s(values)
	} else {
		var whole []int64
		whole, err = elements(a, (*npy.Array).Int64s)
		for i, y := range whole {
			values[i] = float32(y)
		}
	}
	if err != nil {
		return err
	}
	return setTargets(o, c, values, columns, a.op, a.path)
}

// setTargets gives a content targets [n x columns], for the task that --task names or
// that their values are for. What is wrong with them names op and path.
func setTargets(o Options, c *graph.Content, values []float32, columns int, op, path string) error {
	c.Targets, c.Classes, c.Task = values, columns, o.Task
	if c.Task == "" {
		c.Task = graph.TargetTask(values, columns)
	}
	c.Labels = graph.TargetLabels(values, columns)
	if at, why := graph.BadTarget(c.Task, values, columns, c.Labels); why != "" {
		return (ndarray{op: op, path: path}).bad("column %d of row %d is %v: %s", at%columns, at/columns, values[at], why).
			Then("write a number, for multilabel 0 or 1, in all columns of a row or in none")
	}
	o.Log("task=%s columns=%d", c.Task, columns)
	if c.Task == graph.Regression {
		warnOfScale(o, values, columns, c.Split)
	}
	return nil
}

// warnOfScale warns of columns that a network begins far away from.
func warnOfScale(o Options, values []float32, columns int, split []uint8) {
	for c := range columns {
		var m moments
		for i := c; i < len(values); i += columns {
			if y := float64(values[i]); y == y {
				m.add(y)
			}
		}
		if deviation := math.Sqrt(m.squares / max(m.n, 1)); math.Abs(m.mean) > 10 || deviation > 10 {
			o.Log("warning: column %d of the labels has mean %.4g and deviation %.4g: networks begin near 0 and learn in steps of --lr; bring it near mean 0 and deviation 1", c, m.mean, deviation)
		}
	}
}

// split of targets, of which no class is known to draw by.
func (o Options) drawTargets(c *graph.Content) {
	c.Split = drawPercent(c.Labels, 60, 20, o.Seed)
	o.Log("split=drawn train=60%% val=20%% test=20%% seed=%d", o.Seed)
}

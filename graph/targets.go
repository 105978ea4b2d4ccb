package graph

import (
	"math"
	"slices"
)

// targetLabels sets the task of a content and, if the content has targets, its labels.
func (c *Content) targetLabels() error {
	if c.Task == "" {
		c.Task = MultiClass
	}
	if c.Targets == nil {
		if c.Task != MultiClass && c.Task != Links {
			return invalid("give a target for each vertex and column", "the task is %s, but there are no targets", c.Task)
		}
		return nil
	}
	n := int(c.Vertices)
	if len(c.Targets) == 0 || len(c.Targets)%n != 0 || c.Classes != len(c.Targets)/n || c.Task == MultiClass {
		return invalid("give a target for each vertex and column", "there are %d targets in %d columns for %d vertices and the task %s",
			len(c.Targets), c.Classes, n, c.Task)
	}
	if BadScaling(c.TargetScaling, c.Task, c.Classes) {
		return invalid("scale each column by a number above 0", "the scaling of the targets is %v for %d columns and the task %s",
			c.TargetScaling, c.Classes, c.Task)
	}
	c.Labels = TargetLabels(c.Targets, c.Classes)
	if at, why := BadTarget(c.Task, c.Targets, c.Classes, c.Labels); why != "" {
		return invalid("write a number in every column of the row, or in none", "target %d of vertex %d is %v: %s", at%c.Classes,
			at/c.Classes, c.Targets[at], why)
	}
	return nil
}

// Scaling is an affine map of a column of targets: a network is trained on (y - Mean) / Scale.
type Scaling struct {
	Mean  float64 `json:"mean"`
	Scale float64 `json:"scale"` // above 0
}

// BadScaling reports whether a scaling does not fit targets in N columns.
func BadScaling(list []Scaling, task string, columns int) bool {
	bad := func(s Scaling) bool { return !(s.Scale > 0) || math.IsInf(s.Scale, 0) || s.Mean-s.Mean != 0 }
	return list != nil && (task != Regression || len(list) != columns || slices.ContainsFunc(list, bad))
}

// ScaleTargets returns targets [rows x columns] as a network is trained on them.
func ScaleTargets(targets []float32, by []Scaling) []float32 {
	return mapColumns(targets, by, func(y float64, s Scaling) float64 { return (y - s.Mean) / s.Scale })
}

// UnscaleTargets is the inverse of ScaleTargets.
func UnscaleTargets(scaled []float32, by []Scaling) []float32 {
	return mapColumns(scaled, by, func(z float64, s Scaling) float64 { return float64(z*s.Scale) + s.Mean })
}

func mapColumns(values []float32, by []Scaling, f func(float64, Scaling) float64) []float32 {
	if by == nil || values == nil {
		return values
	}
	out := make([]float32, len(values))
	for i, x := range values {
		out[i] = float32(f(float64(x), by[i%len(by)]))
	}
	return out
}

// TargetLabels returns the labels of vertices with targets in N columns: 0 for a row of
// numbers, Unlabelled for a row of NaN.
func TargetLabels(targets []float32, columns int) []int32 {
	labels := make([]int32, len(targets)/columns)
	for v := range labels {
		if math.IsNaN(float64(targets[v*columns])) {
			labels[v] = Unlabelled
		}
	}
	return labels
}

// TargetTask returns the task of targets: MultiLabel if there are several columns and all
// values are 0 or 1, else Regression.
func TargetTask(targets []float32, columns int) string {
	for _, y := range targets {
		if y == y && y != 0 && y != 1 {
			return Regression
		}
	}
	if columns == 1 {
		return Regression
	}
	return MultiLabel
}

// BadTarget returns the index of the first invalid element of targets [len(labels) x columns]
// and the reason. The label of a vertex determines which values are valid. The reason is "" if
// all elements are valid.
func BadTarget(task string, targets []float32, columns int, labels []int32) (at int, why string) {
	for i, y := range targets {
		missing := labels[i/columns] == Unlabelled
		switch {
		case math.IsNaN(float64(y)) != missing:
			return i, "a row must be complete or empty"
		case missing:
		case math.IsInf(float64(y), 0):
			return i, "it is not a number"
		case task == MultiLabel && y != 0 && y != 1:
			return i, "a label must be 0 or 1"
		}
	}
	return 0, ""
}

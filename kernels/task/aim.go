package task

import (
	"errors"
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/internal/wire"
	"siafu/kernels/objective"
)

// Target is the training objective besides class labels.
type Target struct {
	Objective *objective.Objective // nil: softmax cross entropy of Labels
	Values    []float32            // objective.Truth's
	// RowWeights are objective.Truth's. They need an Objective, and are not encoded.
	RowWeights []float32
}

// Kinds of losses in a task's head.
const (
	noLoss = iota
	crossEntropy
	ofObjective // an objective follows
)

// kind returns the kind of a task's loss.
func (t *Task) kind() int {
	switch {
	case !t.hasLoss():
		return noLoss
	case t.Loss.Objective == nil:
		return crossEntropy
	}
	return ofObjective
}

// hasValues reports whether rows have values.
func hasValues(o *objective.Objective) bool { return o != nil && o.Task != graph.MultiClass }

// objective appends an objective: its task, smoothing, weights, and with regression rows and
// spread of each split.
func (w *writer) objective(o *objective.Objective) {
	w.Bytes([]byte(o.Task))
	w.floats([]float64{o.Smoothing})
	w.Numbers(wire.Bit(o.Weights != nil))
	w.floats(o.Weights)
	if o.Task != graph.Regression {
		return
	}
	for k, rows := range o.Rows {
		w.Numbers(int(rows))
		w.floats(o.Spread[k])
	}
}

func (w *writer) floats(list []float64) { w.B = append(w.B, mapped.Bytes(list)...) }

// objective reads an objective with the given number of outputs.
func (r *reader) objective(outputs int) *objective.Objective {
	o := &objective.Objective{Task: string(r.Bytes(0, mostTask)), Outputs: outputs, Smoothing: r.float()}
	if r.Err == nil && !slices.Contains(tasks, o.Task) {
		r.Err = errors.New("the loss is of an unknown task")
	}
	if r.Flag() {
		o.Weights = r.floats(outputs)
	}
	for k := range o.Rows {
		if o.Task == graph.Regression {
			o.Rows[k], o.Spread[k] = int64(r.Number()), r.floats(outputs)
		}
	}
	return o
}

var tasks = []string{graph.MultiClass, graph.MultiLabel, graph.Regression}

// mostTask bounds the name of a task, and maxObjectiveBytes an objective.
const mostTask = 16

func maxObjectiveBytes(outputs int) int {
	const splits = graph.SplitTest + 1
	return size.Sum(8*(4+splits)+mostTask, size.Product(8*(1+splits), outputs))
}

func (r *reader) float() float64 { return math.Float64frombits(uint64(r.Number())) }

func (r *reader) floats(n int) []float64 { return wire.Elements[float64](r.Take(8 * n)) }

// found appends the results of a loss.
func (w *writer) found(l *Loss) {
	w.floats([]float64{l.Sum, l.ValSum})
	for k := range l.Correct {
		w.Numbers(int(l.Correct[k]), int(l.Total[k]))
	}
	if l.Objective != nil {
		w.floats(l.Part[:])
		w.B = append(w.B, mapped.Bytes(l.Rows[:])...)
	}
}

// found reads the results of a loss like l.
func (r *reader) found(l *Loss) (f Found) {
	f.Sum, f.ValSum = r.float(), r.float()
	for k := range f.Correct {
		f.Correct[k], f.Total[k] = int64(r.Number()), int64(r.Number())
	}
	if l.Objective != nil {
		copy(f.Part[:], r.floats(len(f.Part)))
		copy(mapped.Bytes(f.Rows[:]), r.Take(8*len(f.Rows)))
	}
	return f
}

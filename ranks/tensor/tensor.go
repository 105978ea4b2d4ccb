// Package tensor is where tensor tasks run: everything of an epoch that does
// not multiply by the adjacency matrix (AV, the loss, ∇AV), on the rows of one
// interval (Dorylus, OSDI'21, §3: computation separation). The schedule hands
// Work to a Backend and does not know who does it, nor whether that is here and
// now.
package tensor

import (
	"siafu/graph"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/schedule"
)

// Work is one tensor task.
type Work struct {
	Task schedule.Task // of a stage Emit, Apply, Loss, ApplyBackward or EmitBackward
	Pass model.Pass
	Net  *model.Network // of the interval, with the weights to use
	Team *kernels.Team  // that Net computes on; it borrows the memory of whoever does the task
	// Rows is what the task starts from, and what it has made when it has ended.
	Rows []float32
	Loss *Loss // of a Loss task
}

// Loss is what a Loss task knows and finds of an interval.
type Loss struct {
	Labels  []int32
	Split   []uint8
	Classes int
	Scale   float32   // of the gradient
	Grad    []float32 // room for the gradient of the logits, nil if it is not wanted
	Count   bool      // hits and the validation loss are wanted

	Sum            float64                    // over the training vertices, without Scale
	ValSum         float64                    // over the validation vertices, where hits are wanted
	Correct, Total [graph.SplitTest + 1]int64 // by split
}

// Backend does tensor tasks. Begin may be called by several workers at once,
// for different intervals; Collect is called by one at a time.
type Backend interface {
	// Begin does the work, or hands it over to somebody who will; done tells
	// which. What belongs to work that was handed over must not be touched
	// before Collect has returned it. worker is the Team of who asks, whose
	// memory may be borrowed until Begin returns.
	Begin(worker *kernels.Team, w *Work) (done bool, err error)
	// Collect returns work that was handed over and has ended, nil where there
	// is none at the moment. It does not wait.
	Collect() (*Work, error)
}

// CPU does the work on the worker that asks.
type CPU struct{}

// Begin implements Backend.
func (CPU) Begin(worker *kernels.Team, w *Work) (bool, error) {
	w.Team.Borrow(worker)
	Do(w)
	return true, nil
}

// Collect implements Backend.
func (CPU) Collect() (*Work, error) { return nil, nil }

// Do is the work itself.
func Do(w *Work) {
	layer := w.Net.Layers[w.Task.Layer]
	switch w.Task.Stage {
	case schedule.Emit:
		w.Rows = layer.Emit(w.Rows, w.Pass)
	case schedule.Apply:
		w.Rows = layer.Apply(w.Rows, w.Pass)
	case schedule.Loss:
		w.loss()
	case schedule.ApplyBackward:
		w.Rows = layer.ApplyGrad(w.Rows, w.Pass)
	case schedule.EmitBackward:
		w.Rows = layer.EmitGrad(w.Rows, w.Pass)
	default:
		panic("tensor: not a tensor task")
	}
}

// loss turns logits into the gradient of the loss.
func (w *Work) loss() {
	l, rows := w.Loss, len(w.Loss.Labels)
	if l.Count {
		l.Correct, l.Total = kernels.Accuracy(w.Team, rows, l.Classes, w.Rows, l.Labels, l.Split)
		l.ValSum, _ = kernels.SoftmaxCrossEntropy(w.Team, nil, rows, l.Classes, w.Rows, l.Labels, l.Split, graph.SplitVal, 1)
	}
	l.Sum, _ = kernels.SoftmaxCrossEntropy(w.Team, l.Grad, rows, l.Classes, w.Rows, l.Labels, l.Split, graph.SplitTrain, l.Scale)
	if l.Grad != nil {
		w.Rows = l.Grad
	}
}

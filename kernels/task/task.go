// Package task represents tensor tasks as values: the parts of an epoch that do not multiply
// by the adjacency matrix (Dorylus, OSDI'21, §3: computation separation), on the rows of one
// interval. A task names its inputs and outputs. It can therefore run locally, or be sent as
// bytes and answered later (Encode, Work or WorkFrom, Accept). Running it twice is harmless.
//
// Nothing here is collective. One goroutine at a time may use a task.
package task

import (
	"fmt"
	"time"

	"siafu/graph"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
)

// Name identifies a task and an attempt at it within a run.
type Name struct {
	Part, Interval, Epoch, Layer int
	Stage                        model.Stage // the first one that is not repeated
	Train                        bool        // false: evaluation
	Attempt                      int
}

// WithoutAttempt returns the name of the task's first attempt, which identifies the task itself.
func (n Name) WithoutAttempt() Name {
	n.Attempt = 0
	return n
}

func (n Name) String() string {
	return fmt.Sprintf("attempt %d at stage %d of layer %d, interval %d of part %d, in epoch %d", n.Attempt, n.Stage,
		n.Layer, n.Interval, n.Part, n.Epoch)
}

// Answer is the reply to an attempt at a sent task: a result or a failure, and its resource
// usage, which may come with it or later.
type Answer struct {
	Result []byte   // Work's
	Failed *Failure // there is no result
	Spent  *Spent
}

// Failure is the failure of an attempt at a task.
type Failure struct {
	Name
	Err   error
	Final bool // another attempt would fail too
}

// Spent is the billed resource usage of an attempt, once it has ended.
type Spent struct {
	Name
	Init, Work time.Duration // to start (0 if already running), and to run the task
	Guessed    bool          // estimated by the requester, because none was reported
}

// Task is a tensor task: stages of one interval that need no edge of the graph, in order.
type Task struct {
	Name
	Version   int        // of the weights
	Do        []model.Do // in order; must not change
	Recompute []model.Do // stages that the receiver runs before Do, to recompute inputs of Do that are not sent; must not change
	Frame     *model.Frame
	Loss      *Loss // of a task that includes the loss
	Form      Form  // its encoding
}

// Pass returns the pass of the task.
func (t *Task) Pass() model.Pass { return model.Pass{Epoch: t.Epoch, Train: t.Train} }

// Run runs the task on the kernels of o.
func (t *Task) Run(o kernels.Ops) {
	for _, d := range t.Do {
		if d.Stage == model.Loss {
			t.loss(o, d)
		} else {
			t.Frame.Run(d, t.Pass(), o)
		}
	}
}

// Loss has the inputs and results of the loss on an interval.
type Loss struct {
	Labels kernels.Vector[int32]
	Split  kernels.Vector[uint8]
	Scale  float32 // of the gradient
	Count  bool    // hits and the validation loss are requested
	// Observe, unless nil, is called with the logits.
	Observe func(logits kernels.Mat)
	Target
	Found

	logits, grads []float32 // host copies of logits and their gradient, with device memory
}

// Found has the results of a loss.
type Found struct {
	Sum            float64                    // over the training vertices, without Scale
	ValSum         float64                    // over the validation vertices, if hits are requested
	Correct, Total [graph.SplitTest + 1]int64 // by split, if hits are requested
	// Of an Objective with a score that is not a count of rows.
	Part [graph.SplitTest + 1]float64
	Rows [graph.SplitTest + 1]int64
}

// loss computes the loss of the logits and, in training, replaces them by its gradient.
func (t *Task) loss(o kernels.Ops, d model.Do) {
	l, logits, grad := t.Loss, t.Frame.At(d, model.Output), kernels.Mat{}
	if t.Train {
		grad = t.Frame.At(d, model.OutputGrad)
	}
	if l.Observe != nil {
		l.Observe(logits)
	}
	if l.Objective != nil {
		l.evaluate(o, grad, logits)
		return
	}
	if l.Count {
		l.Correct, l.Total = o.Accuracy(logits, l.Labels, l.Split)
		l.ValSum, _ = o.SoftmaxCrossEntropy(kernels.Mat{}, logits, l.Labels, l.Split, graph.SplitVal, 1)
	}
	l.Sum, _ = o.SoftmaxCrossEntropy(grad, logits, l.Labels, l.Split, graph.SplitTrain, l.Scale)
}

// evaluate computes the loss of an objective, on rows in host memory.
func (l *Loss) evaluate(o kernels.Ops, grad, logits kernels.Mat) {
	z := kernels.Fetch(o, logits, &l.logits)
	truth := objective.Truth{Labels: kernels.FetchVector(o, l.Labels), Values: l.Values,
		Split: kernels.FetchVector(o, l.Split), RowWeights: l.RowWeights}
	if l.Count {
		s := l.Objective.Score(z, truth)
		l.Correct, l.Total, l.Part, l.Rows = s.Correct, s.Total, s.Part, s.Rows
		l.ValSum = l.Objective.Loss(nil, z, truth, graph.SplitVal, 1)
	}
	if grad.IsNil() {
		l.Sum = l.Objective.Loss(nil, z, truth, graph.SplitTrain, 1)
		return
	}
	g := kernels.Fetch(o, grad, &l.grads)
	l.Sum = l.Objective.Loss(g, z, truth, graph.SplitTrain, float64(l.Scale))
	kernels.Write(o, grad, g)
}

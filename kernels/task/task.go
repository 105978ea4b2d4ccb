// Package task holds tensor tasks as values: everything of an epoch that does not
// multiply by the adjacency matrix (Dorylus, OSDI'21, §3: computation separation),
// on the rows of one interval. A task names its inputs and what it makes, so that it
// can be done here, or sent elsewhere as bytes and answered later (Encode, Work or
// WorkFrom, Accept), and be done twice without harm.
//
// Nothing here is collective, or safe for several goroutines at one task.
package task

import (
	"fmt"
	"time"

	"siafu/graph"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
)

// Name tells a task from all others of a run, and an attempt at it from the others.
type Name struct {
	Part, Interval, Epoch, Layer int
	Stage                        model.Stage // the first one, but for what is made again
	Train                        bool        // not of an evaluation
	Attempt                      int
}

// Of is the name of the task itself: that of its first attempt.
func (n Name) Of() Name {
	n.Attempt = 0
	return n
}

func (n Name) String() string {
	return fmt.Sprintf("attempt %d at stage %d of layer %d, interval %d of part %d, in epoch %d", n.Attempt, n.Stage, n.Layer, n.Interval, n.Part, n.Epoch)
}

// Answer is what comes of an attempt at a task that was sent: a result, a failure, or
// what it took, which may come after either, or with it.
type Answer struct {
	Result []byte   // Work's
	Failed *Failure // there will be no result
	Spent  *Spent
}

// Failure is an attempt at a task that will have no result.
type Failure struct {
	Name
	Err   error
	Final bool // another attempt would fail too
}

// Spent is the billed resource usage of an attempt, once it has ended.
type Spent struct {
	Name
	Init, Work time.Duration // to start, 0 where that was done before, and to do the task
	Guessed    bool          // by who asked for it, because nobody said
}

// Task is a tensor task: stages of one interval that need no edge of the graph, one
// after another.
type Task struct {
	Name
	Version int        // of the weights
	Do      []model.Do // in order; must not change
	Thin    []model.Do // what a receiver may make again instead of being sent it; must not change
	Frame   *model.Frame
	Loss    *Loss // of a task with a loss
	Form    Form  // in which it travels
}

// Pass is the one that the task is of.
func (t *Task) Pass() model.Pass { return model.Pass{Epoch: t.Epoch, Train: t.Train} }

// Run does the task on the kernels of o.
func (t *Task) Run(o kernels.Ops) { t.run(t.Do, o) }

func (t *Task) run(list []model.Do, o kernels.Ops) {
	for _, d := range list {
		if d.Stage == model.Loss {
			t.loss(o, d)
		} else {
			t.Frame.Run(d, t.Pass(), o)
		}
	}
}

// Loss is what a loss knows and finds of an interval.
type Loss struct {
	Labels kernels.Vector[int32]
	Split  kernels.Vector[uint8]
	Scale  float32 // of the gradient
	Count  bool    // hits and the validation loss are wanted
	Target
	Found

	room, grads []float32 // logits and their gradient, where the kernels' memory is none that Go reads
}

// Found is what a loss finds.
type Found struct {
	Sum            float64                    // over the training vertices, without Scale
	ValSum         float64                    // over the validation vertices, where hits are wanted
	Correct, Total [graph.SplitTest + 1]int64 // by split, where hits are wanted
	// Of an Objective that scores otherwise than by counts of rows.
	Part [graph.SplitTest + 1]float64
	Rows [graph.SplitTest + 1]int64
}

// loss finds the loss of the logits and, in training, turns them into its gradient.
func (t *Task) loss(o kernels.Ops, d model.Do) {
	l, logits, grad := t.Loss, t.Frame.At(d, model.Output), kernels.Mat{}
	if t.Train {
		grad = t.Frame.At(d, model.OutputGrad)
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

// evaluate is loss of an objective, on rows that Go reads.
func (l *Loss) evaluate(o kernels.Ops, grad, logits kernels.Mat) {
	z := kernels.Fetch(o, logits, &l.room)
	truth := objective.Truth{Labels: kernels.FetchVector(o, l.Labels), Values: l.Values, Split: kernels.FetchVector(o, l.Split)}
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

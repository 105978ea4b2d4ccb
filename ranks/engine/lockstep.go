package engine

import (
	"fmt"
	"sync/atomic"
	"time"

	"siafu/graph/fault"
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// lockstep is a graph rank's passes through the layers in the synchronous modes
// (pipe, nopipe): all intervals of all ranks are in the same layer, and within
// it everything overlaps that the tasks' dependencies allow. It is a
// schedule.Flow of the pass under way.
type lockstep struct {
	workers   *workers
	tensor    tensor.Backend
	*route    // of the pass under way
	training  *route
	exact     *route         // of evaluations; that of training, where this is exact too
	exchange  *halo.Exchange // of the exact route, nil where there is no other rank
	adder     kernels.Ops    // of update
	delay     *delay         // nil but in experiments
	tuning    *tuning        // nil where the codec is fixed
	intervals []*interval
	own       int // vertices
	// update sums up the gradients of a layer's weights and hands them over.
	update     func(layer int) error
	endsInLoss bool // the forward pass does

	pass   model.Pass
	walk   *schedule.Walk // of the pass under way
	handed atomic.Int32   // tasks that the backend has not returned
}

// forward runs the network on all own vertices and the loss behind it. count
// asks for hits and grad for the gradient of the logits. Collective over the
// graph ranks.
func (s *lockstep) forward(p model.Pass, count bool) error {
	for _, i := range s.intervals {
		i.work.Rows, i.last, i.loss.Count = kernels.Mat{}, kernels.Mat{}, count
	}
	s.route = s.exact
	if p.Train {
		s.route = s.training
	}
	return s.run(s.forwardWalk, p)
}

// backward takes the gradient of the logits back through the network and
// updates each layer as soon as its gradients are there. Collective over the
// graph ranks.
func (s *lockstep) backward(p model.Pass) error {
	s.route = s.training
	return s.run(s.backwardWalk, p)
}

func (s *lockstep) run(w *schedule.Walk, p model.Pass) error {
	s.walk, s.pass = w, p
	w.Start(p.Epoch)
	return s.workers.pool.Run(s)
}

// Next implements schedule.Flow.
func (s *lockstep) Next() (schedule.Task, bool) {
	t, ok := s.walk.Next()
	if ok && (t.Stage == schedule.Send || t.Stage == schedule.SendBackward) {
		s.delay.gather(1) // nobody starts anything meanwhile
	}
	return t, ok
}

// Run implements schedule.Flow.
func (s *lockstep) Run(worker int, t schedule.Task) (done bool, err error) {
	s.workers.begin(worker, t)
	if t.Interval == schedule.Whole || t.Stage == schedule.GhostGrads || t.Stage == schedule.Sum {
		done, err = true, s.whole(worker, t)
	} else {
		done, err = s.single(worker, t)
	}
	s.workers.end(worker, t)
	return done, err
}

// whole runs a task that no interval does for itself.
func (s *lockstep) whole(worker int, t schedule.Task) error {
	if t.Stage == schedule.Update {
		return s.update(t.Layer)
	}
	return s.transfer(s.workers.teams[worker], s.graph.Layer(t.Layer), t)
}

// single runs a task of an interval.
func (s *lockstep) single(worker int, t schedule.Task) (bool, error) {
	i := s.intervals[t.Interval]
	i.work.Ops.Borrow(s.workers.teams[worker])
	switch t.Stage {
	case schedule.GatherOwn:
		s.graph.GatherOwn(s.graph.Layer(t.Layer), i.at(t.Layer), s.pass)
	case schedule.GatherGhosts:
		i.work.Rows = s.graph.GatherGhosts(s.graph.Layer(t.Layer), i.at(t.Layer), s.pass)
	case schedule.GatherBackward:
		i.work.Rows = s.graph.GatherBackward(s.graph.Layer(t.Layer), i.at(t.Layer), s.pass)
	case schedule.AddSums:
		return true, s.addSums(i, t)
	default:
		done, err := i.do(s.tensor, s.workers.teams[worker], t, s.pass)
		if err != nil {
			return false, err
		}
		if done {
			s.publish(i, t)
		} else {
			s.handed.Add(1)
		}
		return done, nil
	}
	return true, nil
}

// publish shows what a tensor task has made to the gathers that read it. The rows
// of all intervals lie in one matrix, which begins with the first interval's.
func (s *lockstep) publish(i *interval, t schedule.Task) {
	if s.graph == nil || s.graph.Layer(t.Layer) == nil {
		return
	}
	l, at, rows := s.graph.Layer(t.Layer), i.at(t.Layer), i.work.Rows
	switch {
	case t.Stage == schedule.Emit:
		if i.index == 0 {
			l.Rows = rows.Whole(s.own)
		}
		s.graph.Publish(l, at, rows)
	case t.Stage == schedule.ApplyBackward && at.Layer.GathersBackward():
		if i.index == 0 {
			l.Grads = rows.Whole(s.own)
		}
		s.graph.PublishGrads(l, at, rows, s.pass)
	}
}

// Done implements schedule.Flow.
func (s *lockstep) Done(t schedule.Task) error {
	s.walk.Done(t)
	return nil
}

// Poll implements schedule.Flow.
func (s *lockstep) Poll() (bool, error) {
	w, err := s.tensor.Collect()
	if w != nil && err == nil {
		s.handed.Add(-1)
		s.publish(s.intervals[w.Task.Interval], w.Task)
		s.walk.Done(w.Task)
	}
	event, ok := s.walk.Awaited()
	if err == nil && s.ghosts != nil {
		err = s.ghosts.Progress()
	}
	if err != nil || !ok {
		return w != nil, err
	}
	came, err := s.ghosts.Arrived(s.slot(event))
	if came && err == nil {
		s.walk.Done(event)
	}
	return came || w != nil, err
}

// pollInterval is the time between two questions for work that the backend has
// not returned yet.
const pollInterval = 20 * time.Microsecond

// Wait implements schedule.Flow.
func (s *lockstep) Wait() error {
	if s.handed.Load() > 0 {
		time.Sleep(pollInterval)
		return nil
	}
	event, ok := s.walk.Awaited()
	if !ok {
		return fault.New(fault.Runtime, "train", "", "epoch %d has come to a stand, and nothing is awaited", s.pass.Epoch)
	}
	if err := s.ghosts.Await(s.slot(event)); err != nil {
		return err
	}
	s.walk.Done(event)
	return nil
}

// Awaited implements schedule.Flow.
func (s *lockstep) Awaited() (schedule.Task, bool) { return s.walk.Awaited() }

// Idle implements schedule.Flow.
func (s *lockstep) Idle(worker int, t schedule.Task, began, ended time.Time) {
	s.workers.wait(worker, t, began, ended)
}

// during says what this rank is doing, for whoever waits long.
func (s *lockstep) during() string {
	if s.walk == nil {
		return "before the first epoch"
	}
	if t, ok := s.walk.Awaited(); ok {
		return t.String()
	}
	return fmt.Sprintf("epoch %d", s.pass.Epoch)
}

// Finished implements schedule.Flow.
func (s *lockstep) Finished() bool { return s.walk.Finished() }

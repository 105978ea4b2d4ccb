package engine

import (
	"fmt"
	"time"

	"siafu/halo"
	"siafu/internal/fault"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// lockstep is a graph rank's passes through the layers in the synchronous modes (pipe,
// nopipe): all intervals of all ranks are in the same layer. Within it, tasks overlap as their
// dependencies allow. It is a schedule.Flow of the current pass.
type lockstep struct {
	resources
	store     *model.Store // values of all intervals
	intervals []*interval
	wholeWork
	routes    routes
	pass      passRun // the current one
	stale     *staleness
	ghostMask ghostMask
	passes    int // of training in an epoch, 0: one
	// countsTraining makes training passes count hits, for ranks that never evaluate.
	countsTraining bool
}

// resources are what the tasks of passes run on.
type resources struct {
	workers   *workers
	tensor    tensor.Backend
	announces bool        // whether future tasks are announced to tensor
	adder     kernels.Ops // of wholeWork.update
	delay     delay
	files     fileReader // of the tasks' files
	part      int
}

// wholeWork is the work of a pass that covers all intervals.
type wholeWork struct {
	update     func(s *lockstep, layer int, o kernels.Ops) // sums the gradients of a layer's weights in a pass of s
	pairing    *pairing                                    // of link prediction, whose loss covers all vertices at once
	pairs      bool                                        // the loss is of pairs of vertices
	totals     *allSums                                    // of layers that need sums over all vertices, else nil
	endsInLoss bool                                        // the forward pass ends in the loss
}

// passRun is a pass along a route. It does not change while it runs.
type passRun struct {
	model.Pass
	route *route
	walk  *walk     // of route
	slot  halo.Slot // of its exchanges, without layer and direction
	count bool      // the pass is an evaluation
}

// walk is the tasks of an epoch, or of its forward or backward pass only.
type walk struct {
	*schedule.Walk
	tasks tensorWorkTable
	legs  []leg // in the order in which intervals run them
}

// tensorWorkTable has the work of tensor tasks, by layer and first stage.
type tensorWorkTable [][tensorTasks]tensorWork

const tensorTasks = schedule.EmitBackward + 1

// tensorWork is the work of a tensor task, and the stages with which a remote receiver recomputes
// inputs that are not sent.
type tensorWork struct{ do, recompute []model.Do }

// setRecompute sets the recompute stages of all tasks, if the backend requests them.
func (c tensorWorkTable) setRecompute(s *model.Store, w tensor.RequestOptions) {
	for l := range c {
		for stage := range c[l] {
			if work := &c[l][stage]; w.Recompute && len(work.do) > 0 {
				work.recompute = s.RecomputeStages(work.do)
			}
		}
	}
}

// forward runs the network on all own vertices, and then the loss. count requests hits.
// Collective over the graph ranks.
func (s *lockstep) forward(p model.Pass, count bool) error {
	r := s.routes.exact
	if p.Train {
		r = s.routes.training
	}
	return s.run(passRun{Pass: p, route: r, walk: r.forwardWalk, count: count})
}

// refreshAhead runs a pass that only refreshes ghosts, if the source of a pass needs one
// before it. Collective over the graph ranks.
func (s *lockstep) refreshAhead(p model.Pass) error {
	r := s.routes.training
	source, ok := r.ghosts.(interface{ Ahead(epoch int) bool })
	if !ok || !source.Ahead(p.Epoch) {
		return nil
	}
	return s.run(passRun{Pass: p, route: r, walk: r.forwardWalk, slot: halo.Slot{Ahead: true}})
}

// run runs a pass, and sets what its fields determine.
func (s *lockstep) run(p passRun) error {
	r := p.route
	p.Targets = p.walk == r.epochWalk && !p.count
	p.slot.Epoch, p.slot.OutsideTraining = p.Epoch, !p.Train || r != s.routes.training
	s.pass = p
	for _, i := range s.intervals {
		i.loss.Count = p.count
	}
	for l := range s.store.Network.Layers {
		if s.gathers(l) && s.store.Section.Has(l) {
			r.graph.Layer(l).Rows = s.store.Emitted(l, p.Pass)
		}
	}
	if r.aggregates() {
		r.graph.Begin(p.Pass, s.intervals[0].frame.Weights)
	}
	r.localGhosts.begin(r, p.Pass)
	p.walk.Start(p.Epoch)
	s.files.begin(s, s.withPassEpoch(schedule.Task{Epoch: p.Epoch}).Epoch)
	defer s.files.end()
	return s.workers.run(s, s.tensor)
}

// finish implements flow.
func (s *lockstep) finish(name task.Name) (schedule.Task, error) {
	i := s.intervals[name.Interval]
	s.publish(i, i.task.Do)
	return i.scheduled, nil
}

// Next implements schedule.Flow.
func (s *lockstep) Next() (schedule.Task, bool) {
	t, ok := s.pass.walk.Next()
	if ok && (t.Stage == schedule.Send || t.Stage == schedule.SendBackward) {
		s.delay(1) // no other task starts during the delay
	}
	return t, ok
}

// Run implements schedule.Flow.
func (s *lockstep) Run(worker int, t schedule.Task) (done bool, err error) {
	if err := s.awaitFetch(worker, t); err != nil {
		return false, err
	}
	s.workers.begin(worker, s.withPassEpoch(t))
	s.announceNext(t)
	if t.Interval == schedule.Whole || OfGhosts(t.Stage) {
		done, err = true, s.runWhole(worker, t)
	} else {
		if done, err = s.runInterval(worker, t); done {
			s.files.release(t)
		}
	}
	s.workers.end(worker, t)
	return done, err
}

// OfGhosts reports whether the tasks of a stage work on ghost rows in pieces, and not on
// intervals of own vertices.
func OfGhosts(s schedule.Stage) bool {
	switch s {
	case schedule.Sum, schedule.GhostGrads, schedule.EmitGhosts, schedule.EmitGhostsBackward, schedule.PlaceGhosts:
		return true
	}
	return false
}

// announceNext announces to the backend the tensor tasks after a task of graph work that
// starts and no longer waits (Dorylus, OSDI'21, §6).
func (s *lockstep) announceNext(t schedule.Task) {
	if !s.announces {
		return
	}
	next, r := t, s.pass.route
	next.Stage = schedule.EmitBackward
	switch t.Stage {
	case schedule.GatherGhosts:
		next.Stage = schedule.Apply
	case schedule.GatherBackward:
		if r.rows[t.Layer].returned {
			return
		}
	case schedule.ReceiveBackward:
		if len(r.sumPieces) > 1 && !r.rows[t.Layer].computed { // AddSums follows
			return
		}
	case schedule.AddSums:
	default:
		return
	}
	for k := range s.intervals {
		if t.Interval == k || t.Interval == schedule.Whole {
			next.Interval = k
			s.tensor.Expect(nameOf(next, s.part, s.pass.Pass))
		}
	}
}

// runWhole runs a task that is not specific to an interval.
func (s *lockstep) runWhole(worker int, t schedule.Task) error {
	switch t.Stage {
	case schedule.Update:
		s.update(s, t.Layer, s.workers.teams[worker])
		return nil
	case schedule.Loss:
		return s.computePairLoss(t.Layer, s.pass.count)
	case schedule.Total, schedule.TotalBackward:
		return s.sumOverRanks(t.Layer, t.Stage == schedule.TotalBackward)
	}
	return s.transfer(s.workers.teams[worker], s.pass.route.graph.Layer(t.Layer), t)
}

func (s *lockstep) runInterval(worker int, t schedule.Task) (bool, error) {
	i, r := s.intervals[t.Interval], s.pass.route
	i.ops.Borrow(s.workers.teams[worker])
	s.store.Occupy(i.frame)
	if s.endsChain(t) {
		defer s.store.Vacate(i.frame)
	}
	if slicing(t.Stage) {
		s.runSlice(i, t)
		return true, nil
	}
	if !i.isNeeded(t.Stage, t.Layer) {
		i.skipStage(t.Stage, t.Layer)
		return true, nil
	}
	switch t.Stage {
	case schedule.GatherOwn:
		r.graph.Layer(t.Layer).GatherOwn(i.graphInterval(t.Layer), s.pass.Pass)
	case schedule.GatherGhosts:
		r.graph.Layer(t.Layer).GatherGhosts(i.graphInterval(t.Layer), s.pass.Pass)
	case schedule.GatherBackward:
		r.graph.Layer(t.Layer).GatherBackward(i.graphInterval(t.Layer), s.pass.Pass)
		r.localGhosts.addGrads(s, i, t.Layer)
	case schedule.AddSums:
		return true, s.addSums(i, t)
	default:
		work := s.pass.walk.tasks[t.Layer][t.Stage]
		done, err := i.start(s.tensor, t, s.part, s.pass.Epoch, s.pass.Pass, work)
		if done {
			s.publish(i, work.do)
		}
		return done, err
	}
	return true, nil
}

// slicing reports whether the tasks of a stage work on a slice of an interval's columns.
func slicing(s schedule.Stage) bool {
	switch s {
	case schedule.LoadSlice, schedule.GatherSlice, schedule.LoadSliceBackward, schedule.GatherSliceBackward:
		return true
	}
	return false
}

func (s *lockstep) runSlice(i *interval, t schedule.Task) {
	l, at := s.pass.route.graph.Layer(t.Layer), i.graphInterval(t.Layer)
	switch t.Stage {
	case schedule.LoadSlice, schedule.LoadSliceBackward:
		l.LoadSlice(at, t.Slice, t.Stage == schedule.LoadSliceBackward)
	case schedule.GatherSlice, schedule.GatherSliceBackward:
		l.GatherSlice(at, t.Slice, s.pass.Pass, t.Stage == schedule.GatherSliceBackward)
	}
}

// endsChain reports whether the next task of t's interval does not follow at once, or belongs to another
// pass.
func (s *lockstep) endsChain(t schedule.Task) bool {
	switch {
	case t.Stage == schedule.GatherBackward && s.store.Exchanges(), t.Stage == schedule.AddSums:
		return true // gradients of other ranks are added to all intervals
	case slicing(t.Stage):
		return true
	}
	stage, ok := tensorStages[t.Stage]
	last := t.Stage == schedule.Loss || t.Stage == schedule.Apply && !s.endsInLoss && t.Layer == len(s.store.Network.Layers)-1
	return ok && (last && s.pass.walk != s.pass.route.epochWalk || s.store.Network.EndsChain(model.Do{Layer: t.Layer, Stage: stage}))
}

// publish makes the output of a tensor task visible to gathers.
func (s *lockstep) publish(i *interval, list []model.Do) {
	for _, d := range list {
		if d.Again || !s.gathers(d.Layer) {
			continue
		}
		l, part := s.pass.route.graph.Layer(d.Layer), i.graphInterval(d.Layer)
		switch {
		case d.Stage == model.Emit:
			rows := i.part(l.Rows)
			if rows.IsNil() { // stored by worker
				rows = i.frame.At(d, model.Emitted)
			}
			l.Publish(part, rows)
		case d.Stage == model.ApplyBackward && s.store.Network.GathersBackward(d.Layer):
			l.PublishGrads(part, i.frame.At(d, model.GatheredGrad))
		}
	}
}

// Done implements schedule.Flow.
func (s *lockstep) Done(t schedule.Task) error {
	s.pass.walk.Done(t)
	return nil
}

// Poll implements schedule.Flow.
func (s *lockstep) Poll() (bool, error) {
	r := s.pass.route
	if !r.exchanges() {
		return false, nil
	}
	err := r.ghosts.Progress()
	event, ok := s.pass.walk.Awaited()
	if err != nil || !ok {
		return false, err
	}
	came, err := r.ghosts.Arrived(s.pass.slotOfTask(event))
	if came && err == nil {
		s.pass.walk.Done(event)
	}
	return came, err
}

// Wait implements schedule.Flow.
func (s *lockstep) Wait() error {
	event, ok := s.pass.walk.Awaited()
	if !ok {
		return fault.New(fault.Runtime, "train", "",
			"internal error: deadlock in epoch %d (no runnable task and no pending message)", s.pass.Epoch)
	}
	return s.pass.route.ghosts.Await(s.pass.slotOfTask(event))
}

// Listens implements schedule.Flow.
func (s *lockstep) Listens() bool { return s.pass.route.exchanges() }

// Awaited implements schedule.Flow.
func (s *lockstep) Awaited() (schedule.Task, bool) { return s.pass.walk.Awaited() }

// Waiting implements schedule.Flow.
func (s *lockstep) Waiting() int { return s.pass.walk.Waiting() }

// Idle implements schedule.Flow.
func (s *lockstep) Idle(worker int, t schedule.Task, began, ended time.Time) {
	s.workers.wait(worker, s.withPassEpoch(t), began, ended)
}

// withPassEpoch returns a task with the epoch of its pass, to which its time is counted.
func (s *lockstep) withPassEpoch(t schedule.Task) schedule.Task {
	t.Epoch = (t.Epoch-1)/max(s.passes, 1) + 1
	return t
}

// activity describes this rank's state, for reports of long waits.
func (s *lockstep) activity() string {
	if s.pass.Epoch == 0 {
		return "before the first epoch"
	}
	if t, ok := s.pass.walk.Awaited(); ok {
		return t.String()
	}
	return fmt.Sprintf("epoch %d", s.pass.Epoch)
}

// Finished implements schedule.Flow.
func (s *lockstep) Finished() bool { return s.pass.walk.Finished() }

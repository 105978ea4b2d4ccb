package engine

import (
	"fmt"
	"slices"
	"time"

	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
	"siafu/ranks/world"
)

// asyncRank is a graph rank in bounded asynchrony (Dorylus, OSDI'21, §5): it executes the
// decisions of its AsyncScheduler. It is a schedule.Flow, and the scheduler's Executor.
type asyncRank struct {
	transport
	*AsyncScheduler
	resources
	cfg          config.Config
	waitDeadline time.Time       // end of the rank's wait budget; zero: not waiting, or no limit
	graph        *graphwork.Work // nil without propagation
	ghosts       halo.Receiver   // nil without propagation
	propagates   bool            // whether any layer gathers

	intervals []*interval
	layers    []*graphwork.Layer // nil for a layer that does not gather
	tasks     tensorWorkTable
	pending   []world.Message // received while no task ran, not yet handled
	weights   []float32       // after the last epoch
	tallies   tallies
}

// train runs until every interval of every rank has finished its last epoch, and returns the
// weights after that epoch.
func (f *asyncRank) train() ([]float32, error) {
	f.tallies.start = time.Now()
	if err := f.Start(); err != nil {
		return nil, err
	}
	if err := f.workers.run(f, f.tensor); err != nil {
		return nil, err
	}
	return f.finalWeights()
}

// Next implements schedule.Flow.
func (f *asyncRank) Next() (schedule.Task, bool) {
	t, ok := f.AsyncScheduler.Next()
	if ok && isGather(t.Stage) {
		f.tallies.count(tallyGathers, t.Epoch, f.oldestInput(t))
		f.delay(len(f.intervals))
	}
	return t, ok
}

// Run implements schedule.Flow.
func (f *asyncRank) Run(worker int, t schedule.Task) (done bool, err error) {
	f.workers.begin(worker, t)
	defer f.workers.end(worker, t)
	if t.Interval == schedule.Whole {
		return true, f.runWhole(worker, t)
	}
	i := f.intervals[t.Interval]
	i.ops.Borrow(f.workers.teams[worker])
	if f.announces && isGather(t.Stage) {
		f.tensor.Expect(nameOf(f.successor(t), f.world.Rank(), i.pass()))
	}
	switch t.Stage {
	case schedule.Send:
		return true, f.sendForward(i, t)
	case schedule.GatherGhosts:
		return true, f.gather(i, t)
	case schedule.SendBackward:
		f.sendBackward(i, t.Layer)
	case schedule.GatherBackward:
		return true, f.gatherBackward(i, t)
	default:
		return i.start(f.tensor, t, f.world.Rank(), i.epoch, i.pass(), f.tasks[t.Layer][t.Stage])
	}
	return true, nil
}

// finish implements flow.
func (f *asyncRank) finish(name task.Name) (schedule.Task, error) {
	return f.intervals[name.Interval].scheduled, nil
}

func (i *interval) pass() model.Pass { return model.Pass{Epoch: i.epoch, Train: true} }

// Done implements schedule.Flow.
func (f *asyncRank) Done(t schedule.Task) error {
	if t.Interval != schedule.Whole && t.Stage < tensorTasks {
		for _, d := range f.tasks[t.Layer][t.Stage].do {
			if d.Stage == model.Loss {
				f.tallies.add(f.intervals[t.Interval])
			}
		}
	}
	return f.AsyncScheduler.Done(t)
}

// Oldest implements Executor.
func (f *asyncRank) Oldest(gather schedule.Task) int { return f.ghosts.Oldest(slotOf(gather)) }

// Gradient implements Executor.
func (f *asyncRank) Gradient(interval, layer int) []float32 {
	i := f.intervals[interval]
	f.workers.fault.At(schedule.Update.Kind(), i.epoch)
	return kernels.Fetch(i.ops, i.frame.LayerGrad(layer), &i.gradBuffer)
}

// Deliver implements Executor.
func (f *asyncRank) Deliver(ms []protocol.Message) error { return f.deliver(ms) }

// Ended implements Executor.
func (f *asyncRank) Ended(epoch int) error { return f.finishInterval(epoch) }

// start sets the received weights of an interval's epoch.
func (f *asyncRank) start(i *interval, weights []float32) {
	kernels.Write(i.ops, i.frame.Weights, weights)
	f.tallies.saveVersion(i, weights)
	i.loss.Count = true
}

// Poll implements schedule.Flow.
func (f *asyncRank) Poll() (some bool, err error) {
	for _, m := range f.pending {
		f.pending, some = nil, true
		if err := f.dispatch(m); err != nil {
			return some, err
		}
	}
	more, err := f.poll()
	if err == nil {
		var begun bool
		begun, err = f.StartStale()
		more = more || begun
	}
	f.waitDeadline = f.WaitDeadline()
	return some || more, err
}

// Wait implements schedule.Flow.
func (f *asyncRank) Wait() error {
	for pause := minPause; !f.waitDeadline.IsZero(); pause = min(2*pause, maxPause) {
		m, ok, err := f.world.TryRecv(world.Any, params.TagAsync)
		if ok {
			f.pending = append(f.pending, m)
		}
		if ok || err != nil || time.Now().After(f.waitDeadline) {
			return err
		}
		world.Pause(f.world, pause)
	}
	m, err := f.world.Recv(world.Any, params.TagAsync)
	f.pending = append(f.pending, m)
	return err
}

// Listens implements schedule.Flow.
func (f *asyncRank) Listens() bool { return f.world.Size() > 1 || !f.waitDeadline.IsZero() }

// Awaited implements schedule.Flow. An interval waits for any message, so no single task can
// be named.
func (f *asyncRank) Awaited() (schedule.Task, bool) { return schedule.Task{}, false }

// Idle implements schedule.Flow.
func (f *asyncRank) Idle(int, schedule.Task, time.Time, time.Time) {}

// awaitedRanks returns the ranks that this rank waits for: servers with a pending request for
// weights, ranks in an earlier epoch, and at the end servers that have not sent the last weights.
func (f *asyncRank) awaitedRanks() []int {
	ranks := f.progress.Behind()
	for _, p := range f.intervalStates {
		if p.pendingServer != noRank && !slices.Contains(ranks, f.worldRank(p.pendingServer)) {
			ranks = append(ranks, f.worldRank(p.pendingServer))
		}
	}
	if len(ranks) == 0 && !f.hostedByRank0() {
		for k := range f.setting.Servers {
			ranks = append(ranks, f.setting.Server(k))
		}
	}
	slices.Sort(ranks)
	return ranks
}

// activity describes this rank's state, for reports of long waits.
func (f *asyncRank) activity() string { return fmt.Sprintf("epoch %d", f.finishedEpochs()+1) }

// finalWeights fetches the weights after the last epoch. Rank 0 returns only after it has
// received the tallies of all ranks, and after other ranks no longer need the server that it
// hosts.
func (f *asyncRank) finalWeights() ([]float32, error) {
	if err := f.deliver([]protocol.Message{f.chooser.Pull(f.Epochs + 1)}); err != nil {
		return nil, err
	}
	if err := f.dispatchUntil(func() bool { return f.weights != nil && f.tallies.complete(f.Epochs) }); err != nil {
		return nil, err
	}
	if err := f.deliver(f.chooser.Leave()); err != nil {
		return nil, err
	}
	if err := f.dispatchUntil(f.localServer.Done); err != nil {
		return nil, err
	}
	return f.weights, f.outbox.Settle()
}

package ranks

import (
	"fmt"
	"slices"
	"time"

	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// engine is a graph rank in bounded asynchrony (Dorylus, OSDI'21, §5): its
// intervals go through their epochs with whatever rows of neighbours are there,
// each at most s epochs ahead of the slowest interval of all ranks. It is a
// schedule.Flow.
//
// An interval's next task is queued when the one before it has ended. What a
// task in the queue still waits for is rows that have never come, and that
// nobody reads what it writes or writes what it reads (published.free).
type engine struct {
	cfg     Config
	world   world.Comm
	crew    *crew
	tensor  tensor.Backend
	arena   *mapped.Arena
	delay   *delay          // nil but in experiments
	graph   *graphwork.Work // nil without propagation
	codec   codec.Codec
	sendIDs []uint32 // dataset ids of the plan's SendRows

	setting   protocol.Setting
	chooser   *protocol.Chooser
	progress  *protocol.Progress
	hosted    *protocol.Server // where no rank is a server, rank 0 hosts the one there is
	intervals []*interval
	layers    []*published // nil for a layer that does not gather
	epochs    int          // to train; rank 0 may end the run earlier

	queue    []job // messages first, then in the order in which they were queued
	received int   // messages in the queue
	active   []job // that run, or are with the backend; as many places as there can be
	running  int
	weights  []float32 // after the last epoch
	wireIn   []float32
	outbox   *world.Outbox
	tallies  tallies
}

// job is a task that waits or runs, and for one that receives, the message.
type job struct {
	schedule.Task
	grip grip
	wire wire
	from int  // rank
	runs bool // in a place of engine.active
}

// train goes on until every interval of every rank has finished its last
// epoch, and returns the weights after it.
func (e *engine) train() ([]float32, error) {
	e.tallies.start = time.Now()
	if err := e.startReady(); err != nil {
		return nil, err
	}
	if err := e.crew.pool.Run(e); err != nil {
		return nil, err
	}
	return e.last()
}

// Finished implements schedule.Flow.
func (e *engine) Finished() bool { return e.progress.Slowest() >= e.epochs && e.running == 0 }

// Next implements schedule.Flow.
func (e *engine) Next() (schedule.Task, bool) {
	for _, p := range e.layers {
		p.unclaim()
	}
	for k, j := range e.queue {
		if !e.mayRun(&j) {
			continue
		}
		e.queue = slices.Delete(e.queue, k, k+1)
		if k < e.received {
			e.received--
		}
		e.running++
		if j.Stage == schedule.GatherGhosts || j.Stage == schedule.GatherBack {
			e.delay.gather(len(e.intervals))
		}
		return e.enlist(j), true
	}
	return schedule.Task{}, false
}

// Run implements schedule.Flow.
func (e *engine) Run(worker int, t schedule.Task) (done bool, err error) {
	e.crew.begin(worker, t)
	defer e.crew.end(worker, t)
	if t.Interval == schedule.Whole {
		return true, e.whole(worker, t)
	}
	i := e.intervals[t.Interval]
	i.work.Ops.Borrow(e.crew.teams[worker])
	switch t.Stage {
	case schedule.Spread:
		return true, e.spread(i, t.Layer)
	case schedule.GatherGhosts:
		return true, e.gather(i, t.Layer)
	case schedule.SpreadBack:
		e.spreadBack(i, t.Layer)
	case schedule.GatherBack:
		e.gatherBack(i, t.Layer)
	default:
		done, err = i.do(e.tensor, e.crew.teams[worker], t, i.pass())
		return done, err
	}
	return true, nil
}

// pass is the one that an interval is in.
func (i *interval) pass() model.Pass { return model.Pass{Epoch: i.epoch, Train: true} }

// Done implements schedule.Flow.
func (e *engine) Done(t schedule.Task) error {
	e.running--
	j := e.release(t)
	if t.Interval != schedule.Whole {
		return e.follow(e.intervals[t.Interval], t)
	}
	if t.Stage == schedule.Receive || t.Stage == schedule.ReceiveBack {
		e.layers[t.Layer].note(j)
	}
	return nil
}

// follow queues what an interval does after a task.
func (e *engine) follow(i *interval, t schedule.Task) error {
	layer, gathers := i.net.Layers[t.Layer], e.layers[t.Layer] != nil
	next := t
	switch t.Stage {
	case schedule.Emit:
		next.Stage = schedule.Apply
		if gathers {
			next.Stage = schedule.Spread
		}
	case schedule.Spread:
		next.Stage = schedule.GatherGhosts
	case schedule.GatherGhosts:
		next.Stage = schedule.Apply
	case schedule.Apply:
		next.Stage = schedule.Judge
		if t.Layer < len(i.net.Layers)-1 {
			next.Stage, next.Layer = schedule.Emit, t.Layer+1
		}
	case schedule.Judge:
		e.tallies.judged(i)
		next.Stage = schedule.ApplyBack
	case schedule.ApplyBack:
		next.Stage = schedule.EmitBack
		if gathers && layer.GathersBack() {
			next.Stage = schedule.SpreadBack
		}
	case schedule.SpreadBack:
		next.Stage = schedule.GatherBack
		e.spreadedBack(i, t.Layer)
	case schedule.GatherBack:
		next.Stage = schedule.EmitBack
	case schedule.EmitBack:
		return e.push(i, t.Layer)
	}
	e.enqueue(next)
	return nil
}

func (e *engine) enqueue(t schedule.Task) { e.queue = append(e.queue, job{Task: t, grip: e.grip(t)}) }

// push hands over the gradient of a layer. After the first layer's the interval
// has finished its epoch.
func (e *engine) push(i *interval, layer int) error {
	e.crew.fault.At(schedule.Update.Kind(), i.epoch)
	m := e.chooser.Gradient(i.index, i.epoch, layer, i.layerGrad(layer))
	if err := e.deliver([]protocol.Message{m}); err != nil {
		return err
	}
	if layer > 0 {
		e.enqueue(schedule.Task{Stage: schedule.ApplyBack, Epoch: i.epoch, Layer: layer - 1, Interval: i.index})
		return nil
	}
	i.busy = false
	told := e.progress.Finish(i.index, i.epoch)
	if err := e.tell(i.epoch); err != nil {
		return err
	}
	if err := e.deliver(told); err != nil {
		return err
	}
	return e.startReady()
}

// startReady sends for weights for the intervals that may start an epoch.
func (e *engine) startReady() error {
	for _, i := range e.intervals {
		if i.busy || i.epoch >= e.epochs || !e.progress.MayStart(i.epoch+1) {
			continue
		}
		i.busy = true
		i.epoch++
		fetch := e.chooser.Fetch(i.index, i.epoch, 0)
		i.asked = e.place(fetch[0].To)
		if err := e.deliver(fetch); err != nil {
			return err
		}
	}
	return nil
}

// start begins an interval's epoch with the weights that have come.
func (e *engine) start(i *interval, weights []float32) {
	kernels.Write(i.work.Ops, i.net.Weights, weights)
	i.asked = nobody
	e.tallies.keep(i, weights)
	i.work.Rows, i.loss.Count = kernels.Mat{}, true
	t := schedule.Task{Stage: schedule.Emit, Epoch: i.epoch, Interval: i.index}
	if i.net.Kept() {
		t.Stage = schedule.Apply
	}
	e.enqueue(t)
}

// Poll implements schedule.Flow.
func (e *engine) Poll() (bool, error) {
	some := false
	w, err := e.tensor.Collect()
	if w != nil && err == nil {
		some = true
		err = e.Done(w.Task)
	}
	for err == nil {
		var m world.Message
		var ok bool
		if m, ok, err = e.world.TryRecv(world.Any, params.TagAsync); err != nil || !ok {
			break
		}
		some = true
		err = e.take(m)
	}
	return some, err
}

// Wait implements schedule.Flow.
func (e *engine) Wait() error {
	if e.running > 0 { // with a backend that is not here
		time.Sleep(patience)
		return nil
	}
	return e.await()
}

// await waits for the next message and takes it.
func (e *engine) await() error {
	m, err := e.world.Recv(world.Any, params.TagAsync)
	if err != nil {
		return err
	}
	return e.take(m)
}

// Awaited implements schedule.Flow: what is waited for here is no one thing.
func (e *engine) Awaited() (schedule.Task, bool) { return schedule.Task{}, false }

// Idle implements schedule.Flow.
func (e *engine) Idle(int, schedule.Task, time.Time, time.Time) {}

// owing are the ranks that a long wait is for: servers that have been asked for
// weights, ranks that are behind, and at the end whoever has not said its last
// word.
func (e *engine) owing() []int {
	ranks := e.progress.Behind()
	for _, i := range e.intervals {
		if i.asked != nobody && !slices.Contains(ranks, i.asked) {
			ranks = append(ranks, i.asked)
		}
	}
	if len(ranks) == 0 && !e.hostedByRank0() {
		for k := range e.setting.Servers {
			ranks = append(ranks, e.setting.Server(k))
		}
	}
	slices.Sort(ranks)
	return ranks
}

// during is what this rank is about.
func (e *engine) during() string { return fmt.Sprintf("epoch %d", e.finished()+1) }

// last gets the weights after the last epoch and leaves. Rank 0 stays until it
// has heard of everybody's epochs, and as long as others need what it hosts.
func (e *engine) last() ([]float32, error) {
	if err := e.deliver([]protocol.Message{e.chooser.Pull(e.epochs + 1)}); err != nil {
		return nil, err
	}
	if err := e.takeUntil(func() bool { return e.weights != nil && e.tallies.complete(e.epochs) }); err != nil {
		return nil, err
	}
	if err := e.deliver(e.chooser.Leave()); err != nil {
		return nil, err
	}
	if err := e.takeUntil(func() bool { return e.hosted == nil || e.hosted.Done() }); err != nil {
		return nil, err
	}
	return e.weights, e.outbox.Settle()
}

// takeUntil takes messages until done.
func (e *engine) takeUntil(done func() bool) error {
	for !done() {
		if err := e.await(); err != nil {
			return err
		}
	}
	return nil
}

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
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// async is a graph rank in bounded asynchrony (Dorylus, OSDI'21, §5): its
// intervals go through their epochs with whatever rows of neighbours are there,
// each at most s epochs ahead of the slowest interval of all ranks. It is a
// schedule.Flow.
//
// An interval's next task is queued when the one before it has ended. What a
// task in the queue still waits for is rows that have never come, and that
// nobody reads what it writes or writes what it reads (published's locks). A rank that
// could only go on with old rows or old weights lingers first.
type async struct {
	mail
	cfg     config.Config
	workers *workers
	tensor  tensor.Backend
	expects tensor.Expecting // the same, nil where it cannot be told of tasks to come
	delay   *delay           // nil but in experiments
	linger  linger
	idle    bool            // the last Next has found nothing
	until   time.Time       // when the rank has lingered enough; zero: it does not, or has no limit
	graph   *graphwork.Work // nil without propagation
	ghosts  halo.Receiver   // likewise

	chooser   *protocol.Chooser
	progress  *protocol.Progress
	intervals []*interval
	layers    []*published // nil for a layer that does not gather
	tasks     cuts
	epochs    int // to train; rank 0 may end the run earlier

	// queue[:received] are messages that have come, and the rest are tasks; both
	// are in the order in which they were queued. active has a place for each job
	// that can run at once, here or with the backend, and running of them are
	// taken.
	queue    []job
	received int
	active   []job
	running  int
	came     *world.Message // while nothing ran, and is to be taken
	weights  []float32      // after the last epoch
	tallies  tallies
}

// job is a task that is queued or runs.
type job struct {
	schedule.Task
	access access
	runs   bool // in a place of async.active
}

// train goes on until every interval of every rank has finished its last
// epoch, and returns the weights after it.
func (f *async) train() ([]float32, error) {
	f.tallies.start = time.Now()
	f.linger.start = f.tallies.start
	if err := f.startReady(); err != nil {
		return nil, err
	}
	if err := f.workers.run(f, f.tensor); err != nil {
		return nil, err
	}
	return f.last()
}

// Finished implements schedule.Flow.
func (f *async) Finished() bool { return f.progress.Slowest() >= f.epochs && f.running == 0 }

// Next implements schedule.Flow. Of tasks that may run, those come first which read
// nothing old.
func (f *async) Next() (schedule.Task, bool) {
	k, held := f.search(false)
	if k < 0 && (held || f.lateStart() != nil) {
		f.linger.hold()
		if held && f.linger.over() {
			k, _ = f.search(true)
		}
	}
	if f.idle = k < 0; f.idle {
		return schedule.Task{}, false
	}
	f.linger.rest()
	j := f.queue[k]
	f.queue = slices.Delete(f.queue, k, k+1)
	if k < f.received {
		f.received--
	}
	f.running++
	if gathers(j.Stage) {
		f.tallies.gathers(j.Epoch, f.oldest(j.Task))
		f.delay.gather(len(f.intervals))
	}
	return f.begin(j), true
}

// search is the place in the queue of the first job that may run, -1 where there is
// none. A gather that would read old rows is held back, unless old ones will do.
func (f *async) search(old bool) (k int, held bool) {
	for _, p := range f.layers {
		p.unclaim()
	}
	for k := range f.queue {
		j := &f.queue[k]
		switch {
		case !f.mayRun(j):
			f.layers[j.Layer].claim(j.access)
		case !old && gathers(j.Stage) && f.oldest(j.Task) < j.Epoch:
			held = true
		default:
			return k, held
		}
	}
	return -1, held
}

// Run implements schedule.Flow.
func (f *async) Run(worker int, t schedule.Task) (done bool, err error) {
	f.workers.begin(worker, t)
	defer f.workers.end(worker, t)
	if t.Interval == schedule.Whole {
		return true, f.whole(worker, t)
	}
	i := f.intervals[t.Interval]
	i.ops.Borrow(f.workers.teams[worker])
	if f.expects != nil && gathers(t.Stage) {
		f.expects.Expect(nameOf(after(i.frame.Network, t), f.world.Rank(), i.pass()))
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
func (f *async) finish(name task.Name) (schedule.Task, error) {
	return f.intervals[name.Interval].under, nil
}

// pass is the one that an interval is in.
func (i *interval) pass() model.Pass { return model.Pass{Epoch: i.epoch, Train: true} }

// Done implements schedule.Flow.
func (f *async) Done(t schedule.Task) error {
	f.running--
	f.end(t)
	if t.Interval == schedule.Whole {
		return nil
	}
	return f.follow(f.intervals[t.Interval], t)
}

// follow queues what an interval does after a task.
func (f *async) follow(i *interval, t schedule.Task) error {
	if t.Stage < tensorTasks {
		for _, d := range f.tasks[t.Layer][t.Stage].do {
			if d.Stage == model.Loss {
				f.tallies.add(i)
			}
		}
		t = last(t, f.tasks[t.Layer][t.Stage].do)
	}
	switch t.Stage {
	case schedule.Send:
		f.layers[t.Layer].shown[0][i.index] = i.epoch
	case schedule.SendBackward:
		f.layers[t.Layer].shown[1][i.index] = i.epoch
		f.countGrads(i, t.Layer)
	case schedule.EmitBackward:
		return f.push(i, t.Layer)
	}
	f.enqueue(after(i.frame.Network, t))
	return nil
}

// enqueue puts a task behind those of its epoch and of earlier ones, so that the
// slowest intervals go first.
func (f *async) enqueue(t schedule.Task) {
	k := len(f.queue)
	for k > f.received && f.queue[k-1].Epoch > t.Epoch {
		k--
	}
	f.queue = slices.Insert(f.queue, k, job{Task: t, access: accessOf(t.Stage)})
}

// push hands over the gradient of a layer. After the first layer's the interval
// has finished its epoch.
func (f *async) push(i *interval, layer int) error {
	f.workers.fault.At(schedule.Update.Kind(), i.epoch)
	m := f.chooser.Gradient(i.index, i.epoch, layer, i.layerGrad(layer))
	if err := f.deliver([]protocol.Message{m}); err != nil {
		return err
	}
	if layer > 0 {
		f.enqueue(schedule.Task{Stage: schedule.ApplyBackward, Epoch: i.epoch, Layer: layer - 1, Interval: i.index})
		return nil
	}
	i.busy = false
	told := f.progress.Finish(i.index, i.epoch)
	if err := f.tell(i.epoch); err != nil {
		return err
	}
	if err := f.deliver(told); err != nil {
		return err
	}
	return f.startReady()
}

// startReady sends for weights for the intervals that may start an epoch and find
// the gradients of the epoch before in them.
func (f *async) startReady() error {
	for _, i := range f.intervals {
		if f.mayStart(i) && !f.late(i) {
			if err := f.begins(i, f.chooser.FetchNewest); err != nil {
				return err
			}
		}
	}
	return nil
}

// begins puts an interval into its next epoch, and asks for the weights.
func (f *async) begins(i *interval, fetch func(interval, epoch, holds int) []protocol.Message) error {
	i.busy = true
	i.epoch++
	out := fetch(i.index, i.epoch, 0)
	i.asked = f.place(out[0].To)
	return f.deliver(out)
}

// mayStart tells whether the bound lets an interval start its next epoch.
func (f *async) mayStart(i *interval) bool {
	return !i.busy && i.epoch < f.epochs && f.progress.MayStart(i.epoch+1)
}

// late tells whether an interval has finished an epoch that others have not, so that
// there are no weights yet with its gradients.
func (f *async) late(i *interval) bool { return f.progress.Slowest() < i.epoch }

// lateStart is the next interval that could start with old weights, nil where there is
// none or weights are on their way. They start one by one, whenever a worker has
// nothing else to do: meanwhile the new weights may come.
func (f *async) lateStart() *interval {
	var next *interval
	for _, i := range f.intervals {
		if i.asked != nobody {
			return nil
		}
		if next == nil && f.mayStart(i) && f.late(i) {
			next = i
		}
	}
	return next
}

// start begins an interval's epoch with the weights that have come.
func (f *async) start(i *interval, weights []float32) {
	kernels.Write(i.ops, i.frame.Weights, weights)
	i.asked = nobody
	f.tallies.remember(i, weights)
	i.loss.Count = true
	t := schedule.Task{Stage: schedule.Emit, Epoch: i.epoch, Interval: i.index}
	if i.frame.Network.Spec.CacheInput {
		t.Stage = schedule.Apply
	}
	f.enqueue(t)
}

// Poll implements schedule.Flow.
func (f *async) Poll() (some bool, err error) {
	if m := f.came; m != nil {
		f.came, some = nil, true
		if err := f.take(*m); err != nil {
			return some, err
		}
	}
	more, err := f.poll()
	if err == nil && f.idle && f.linger.over() {
		if i := f.lateStart(); i != nil {
			more, err = true, f.begins(i, f.chooser.Fetch)
		}
	}
	f.until = f.linger.until()
	return some || more, err
}

// Wait implements schedule.Flow.
func (f *async) Wait() error {
	for !f.until.IsZero() {
		m, ok, err := f.world.TryRecv(world.Any, params.TagAsync)
		if ok {
			f.came = &m
		}
		if ok || err != nil || time.Now().After(f.until) {
			return err
		}
		time.Sleep(lingerRest)
	}
	m, err := f.world.Recv(world.Any, params.TagAsync)
	f.came = &m
	return err
}

// Listens implements schedule.Flow.
func (f *async) Listens() bool { return f.world.Size() > 1 || !f.until.IsZero() }

// Awaited implements schedule.Flow. An interval waits for whatever comes first, so
// that there is no one task to name.
func (f *async) Awaited() (schedule.Task, bool) { return schedule.Task{}, false }

// Waiting implements schedule.Flow.
func (f *async) Waiting() int { return len(f.queue) }

// Idle implements schedule.Flow.
func (f *async) Idle(int, schedule.Task, time.Time, time.Time) {}

// owing are the ranks that a long wait is for: servers that have been asked for
// weights, ranks that are behind, and at the end servers that have not sent the
// last weights.
func (f *async) owing() []int {
	ranks := f.progress.Behind()
	for _, i := range f.intervals {
		if i.asked != nobody && !slices.Contains(ranks, i.asked) {
			ranks = append(ranks, i.asked)
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

// during says what this rank is doing, for whoever waits long.
func (f *async) during() string { return fmt.Sprintf("epoch %d", f.finished()+1) }

// last gets the weights after the last epoch and leaves. Rank 0 stays until the
// tallies of all ranks have come, and as long as other ranks need the server that
// it hosts.
func (f *async) last() ([]float32, error) {
	if err := f.deliver([]protocol.Message{f.chooser.Pull(f.epochs + 1)}); err != nil {
		return nil, err
	}
	if err := f.takeUntil(func() bool { return f.weights != nil && f.tallies.complete(f.epochs) }); err != nil {
		return nil, err
	}
	if err := f.deliver(f.chooser.Leave()); err != nil {
		return nil, err
	}
	if err := f.takeUntil(func() bool { return f.hosted == nil || f.hosted.Done() }); err != nil {
		return nil, err
	}
	return f.weights, f.outbox.Settle()
}

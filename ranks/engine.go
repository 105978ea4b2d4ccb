package ranks

import (
	"errors"
	"time"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/server/async"
	"siafu/ranks/world"
)

// engine is a graph rank in bounded asynchrony (Dorylus, OSDI'21, §5): its
// intervals go through their epochs with whatever rows of neighbours are there,
// each at most s epochs ahead of the slowest interval of all ranks.
//
// Tasks run one after another, each on all workers of the rank; between them
// the engine takes the messages that have come. It waits only when no task can
// run: for weights, for slower ranks, and in the first epoch for rows that it
// has never had.
type engine struct {
	cfg   Config
	world world.Comm
	shard *shard.Shard
	team  *kernels.Team
	arena *mapped.Arena
	clock *clock
	delay *delay     // nil but in experiments
	graph *graphWork // coefficients, edges and plan; nil without propagation

	setting   async.Setting
	chooser   *async.Chooser
	progress  *async.Progress
	update    *updater      // of the hosted server
	hosted    *async.Server // where no rank is a server, rank 0 hosts the one there is
	intervals []*interval
	layers    []*published // nil for a layer that does not gather
	epochs    int          // to train; rank 0 may end the run earlier

	queue   []task
	blocked []task // wait for rows that have never come
	weights []float32

	buffers [][]float32 // results of gathers, by interval and stage
	scratch []float32
	wireIn  []float32
	pending []outgoing
	spare   [][]byte

	tallies tallies
	sent    int64 // bytes of rows since the last tally
}

// outgoing is a message on its way, with the memory that it must keep.
type outgoing struct {
	request halo.Request
	buffer  []byte
}

// task is one of Dorylus's kinds of task on an interval (figure 2).
type task struct {
	stage    stage
	interval *interval
	layer    int
}

// stage is what a task does; each interval goes through them in this order, the
// first four once a layer, and the last four once a layer on the way back.
type stage int

const (
	emit       stage = iota // AV: rows that neighbours gather
	spread                  // SC
	gather                  // GA
	apply                   // AV
	judge                   // loss and its gradient
	applyBack               // ∇AV
	spreadBack              // ∇SC
	gatherBack              // ∇GA
	emitBack                // ∇AV
	update                  // WU
)

// train goes on until every interval of every rank has finished its last
// epoch, and returns the weights after it.
func (e *engine) train() ([]float32, error) {
	e.tallies.start = time.Now()
	if err := e.startReady(); err != nil {
		return nil, err
	}
	for e.progress.Slowest() < e.epochs {
		if err := e.turn(); err != nil {
			return nil, err
		}
	}
	return e.last()
}

// turn takes what has arrived and runs a task, or waits where there is none.
func (e *engine) turn() error {
	if err := e.takeArrived(); err != nil {
		return err
	}
	if len(e.queue) == 0 {
		if e.progress.Slowest() >= e.epochs {
			return nil
		}
		return e.await()
	}
	t := e.queue[0]
	e.queue = append(e.queue[:0], e.queue[1:]...)
	return e.run(t)
}

// takeArrived takes all messages that are there.
func (e *engine) takeArrived() error {
	for {
		m, ok, err := e.world.TryRecv(world.Any, tagAsync)
		if err != nil || !ok {
			return err
		}
		if err := e.take(m); err != nil {
			return err
		}
	}
}

// startReady sends for weights for the intervals that may start an epoch.
func (e *engine) startReady() error {
	for _, i := range e.intervals {
		if i.busy || i.epoch >= e.epochs || !e.progress.MayStart(i.epoch+1) {
			continue
		}
		i.busy = true
		i.epoch++
		if err := e.deliver(e.chooser.Fetch(i.index, i.epoch, 0)); err != nil {
			return err
		}
	}
	return nil
}

// run runs a task and queues what follows from it.
func (e *engine) run(t task) error {
	i, l := t.interval, t.layer
	layer, p := i.net.Layers[l], model.Pass{Epoch: i.epoch, Train: true}
	e.clock.epoch, e.clock.layer, e.clock.interval = i.epoch, l, i.index
	e.clock.start()
	defer e.clock.lap(t.stage.name())
	next := t
	next.stage++
	switch t.stage {
	case emit:
		if l == 0 && i.net.Kept() {
			i.h, next.stage = nil, apply
			break
		}
		i.h = layer.Emit(i.h, p)
		if e.layers[l] == nil {
			next.stage = apply
		}
	case spread:
		if err := e.scatter(i, l); err != nil {
			return err
		}
	case gather:
		if e.layers[l].rowsMissing > 0 {
			e.blocked = append(e.blocked, t)
			return nil
		}
		e.delay.gather(len(e.intervals))
		var err error
		if i.h, err = e.gather(i, l); err != nil {
			return err
		}
	case apply:
		i.h = layer.Apply(i.h, p)
		if l < len(i.net.Layers)-1 {
			next = task{emit, i, l + 1}
		}
	case judge:
		e.judge(i)
	case applyBack:
		i.h = layer.ApplyGrad(i.h, p)
		if e.layers[l] == nil || !layer.GathersBack() {
			next.stage = emitBack
		}
	case spreadBack:
		if err := e.scatterGrad(i, l); err != nil {
			return err
		}
	case gatherBack:
		if e.layers[l].gradsMissing > 0 {
			e.blocked = append(e.blocked, t)
			return nil
		}
		e.delay.gather(len(e.intervals))
		i.h = e.gatherGrad(i, l)
	case emitBack:
		i.h = layer.EmitGrad(i.h, p)
	case update:
		return e.push(t)
	}
	e.queue = append(e.queue, next)
	return nil
}

// name is the kind of task as reports have it.
func (s stage) name() string {
	return [...]string{"AV", "SC", "GA", "AV", "loss", "∇AV", "∇SC", "∇GA", "∇AV", "WU"}[s]
}

// judge is the loss of an interval; it leaves its gradient in hand.
func (e *engine) judge(i *interval) {
	s, logits := e.shard, i.h
	labels, split := s.Labels[i.lo:i.hi], s.Split[i.lo:i.hi]
	correct, total := kernels.Accuracy(e.team, i.rows(), s.Classes, logits, labels, split)
	scale := 1 / float64(max(s.TrainTotal, 1))
	grad := e.room(i, 2*len(e.layers), i.rows()*s.Classes)
	loss, _ := kernels.SoftmaxCrossEntropy(e.team, grad, i.rows(), s.Classes, logits, labels, split, graph.SplitTrain, float32(scale))
	own := e.tallies.own(i.epoch)
	own[0] += loss * scale
	for k, split := range []int{graph.SplitTrain, graph.SplitVal, graph.SplitTest} {
		own[1+2*k] += float64(correct[split])
		own[2+2*k] += float64(total[split])
	}
	i.h = grad
}

// push hands over a layer's gradient. After the first layer's the interval
// has finished its epoch.
func (e *engine) push(t task) error {
	i := t.interval
	m := e.chooser.Gradient(i.index, i.epoch, t.layer, i.net.LayerGrad(t.layer))
	if err := e.deliver([]async.Message{m}); err != nil {
		return err
	}
	if t.layer > 0 {
		e.queue = append(e.queue, task{applyBack, i, t.layer - 1})
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

// room is a buffer of n floats of an interval.
func (e *engine) room(i *interval, k, n int) []float32 {
	at := i.index*(2*len(e.layers)+1) + k
	for len(e.buffers) <= at {
		e.buffers = append(e.buffers, nil)
	}
	if len(e.buffers[at]) != n {
		e.buffers[at] = mapped.Make[float32](e.arena, n)
	}
	return e.buffers[at]
}

// floats is scratch memory until the next call.
func (e *engine) floats(n int) []float32 {
	if cap(e.scratch) < n {
		e.scratch = make([]float32, n)
	}
	return e.scratch[:n]
}

// last gets the weights after the last epoch and leaves. Rank 0 stays until it
// has heard of everybody's epochs, and as long as others need what it hosts.
func (e *engine) last() ([]float32, error) {
	if err := e.deliver([]async.Message{e.chooser.Pull(e.epochs + 1)}); err != nil {
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
	return e.weights, e.settle()
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

// await waits for the next message and takes it. A wait that has lasted too
// long names those whom it was most likely for: ranks that are behind, or else
// the servers, who owe weights.
func (e *engine) await() error {
	m, err := e.world.Recv(world.Any, tagAsync)
	var stall *world.StallError
	if errors.As(err, &stall) && len(stall.Missing) == 0 {
		stall.Missing = e.progress.Behind()
		if len(stall.Missing) == 0 && !e.hostedByRank0() {
			for k := range e.setting.Servers {
				stall.Missing = append(stall.Missing, e.setting.Server(k))
			}
		}
	}
	if err != nil {
		return err
	}
	return e.take(m)
}

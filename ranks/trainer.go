package ranks

import (
	"time"

	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/graphwork"
	"siafu/ranks/inject"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
	"siafu/ranks/signals"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// trainer is one graph rank in the synchronous modes.
type trainer struct {
	*lockstep
	cfg     Config
	comm    world.Comm // of the graph ranks
	shard   *shard.Shard
	net     model.Spec
	flat    []float32        // the weights that all intervals share
	grad    []float32        // their gradient on this rank
	layers  []protocol.Range // of both
	shared  kernels.Mat      // flat [weights x 1], where the intervals compute
	sum     kernels.Mat      // grad, likewise
	sums    []float64        // that ranks add up
	weights params.Source
	arena   *mapped.Arena
	history *history
	saver   *saver
	stopped bool                        // the run was asked to stop, and has saved
	emit    func(runfolder.Epoch) error // takes the line of an epoch; does nothing but on rank 0
}

// train is the training loop, from an epoch on. An epoch's line tells the loss and accuracy of
// the weights that the epoch starts from; after the last epoch the final
// weights are evaluated once more. An epoch that has diverged has no line, and
// the next one only begins. Collective over the graph ranks.
func (t *trainer) train(first int) error {
	for epoch := first; ; epoch++ {
		start := time.Now()
		if err := t.pull(epoch); err != nil {
			return err
		}
		if t.history.trouble != nil || t.saves(epoch) && !t.history.sound(epoch, t.flat) {
			return t.weights.Leave()
		}
		if err := t.save(epoch); err != nil || t.stopped {
			return err
		}
		line := runfolder.Epoch{Epoch: epoch}
		closing := epoch > t.cfg.Epochs
		ready := false // the training pass has run already
		if closing || t.cfg.EvalEvery > 0 && (epoch-1)%t.cfg.EvalEvery == 0 {
			var err error
			if ready, err = t.evaluate(&line); err != nil {
				return err
			}
			if t.ends(line, closing) {
				return t.weights.Leave()
			}
		}
		if err := t.step(&line, ready); err != nil {
			return err
		}
		if t.history.diverges(&line, t.flat, false) {
			continue
		}
		line.Seconds, line.Codec = time.Since(start).Seconds()-line.EvalSeconds, t.tuning.name()
		if err := t.report(line); err != nil {
			return err
		}
		if err := t.tuning.after(line.Seconds); err != nil {
			return err
		}
	}
}

// ends tells whether the run is over before the epoch of a line is trained.
func (t *trainer) ends(line runfolder.Epoch, closing bool) bool {
	h := t.history
	if closing {
		h.conclude(line, t.flat, goesOn)
		return true
	}
	h.stoppedBy = h.observe(line, t.flat)
	return h.stoppedBy != goesOn
}

// request is what was asked for in the epoch before.
func (t *trainer) request(epoch int) signals.Request {
	if epoch > t.cfg.Epochs {
		return signals.None // the run ends anyway
	}
	return t.saver.asked
}

// saves tells whether there is to be a checkpoint before an epoch.
func (t *trainer) saves(epoch int) bool {
	atEnd := epoch > t.cfg.Epochs && t.saver.every != checkpoint.Interval{}
	return atEnd || t.request(epoch) > signals.None
}

// save does what was asked for in the epoch before: its weights and the
// optimiser's state are those that the coming one starts from. Collective over
// the graph ranks, which have agreed.
func (t *trainer) save(epoch int) error {
	if !t.saves(epoch) {
		return nil
	}
	s, asked := t.saver, t.request(epoch)
	t.crew.fault.At(inject.Save, epoch-1)
	began := time.Now()
	if t.comm.Rank() == 0 {
		slots, err := t.weights.State()
		if err != nil {
			return err
		}
		snap := snapshot{epoch: epoch - 1, weights: t.flat, slots: slots, history: t.history, switched: t.cfg.Mode == "async"}
		if err := s.save(snap, asked == signals.Stop); err != nil {
			s.run.stop = err
		}
	}
	t.weights.Saved()
	s.served(time.Since(began))
	t.crew.take()
	if asked == signals.Stop {
		t.stopped = true
		return t.weights.Leave()
	}
	return nil
}

// timed counts what no worker's task is: a step of all ranks together.
func (t *trainer) timed(stage schedule.Stage, epoch int, step func() error) error {
	task := schedule.Task{Stage: stage, Epoch: epoch, Layer: trace.None, Interval: schedule.Whole}
	t.crew.begin(0, task)
	defer t.crew.end(0, task)
	return step()
}

// pull gets the weights that an epoch starts from.
func (t *trainer) pull(epoch int) error {
	return t.timed(schedule.Update, epoch, func() error {
		err := t.weights.Pull(epoch, t.flat)
		t.load()
		return err
	})
}

// load takes the weights to where the intervals compute.
func (t *trainer) load() { kernels.Write(t.adder, t.shared, t.flat) }

// step is one epoch after its weights have come: the training pass, unless the
// evaluation was that and has told the loss, and the way back. No rank waits for
// others between the two.
func (t *trainer) step(line *runfolder.Epoch, ready bool) error {
	p := model.Pass{Epoch: line.Epoch, Train: true}
	if err := t.weights.Begin(); err != nil {
		return err
	}
	if !ready {
		if err := t.forward(p, false); err != nil {
			return err
		}
	}
	if err := t.backward(p); err != nil {
		return err
	}
	if !ready {
		found, err := t.score()
		if err != nil {
			return err
		}
		line.Loss = found[trainLoss]
	}
	return t.timed(schedule.Update, p.Epoch, func() error { return t.weights.Flush(p.Epoch, t.grad) })
}

// push sums up a layer's gradients in the order of intervals and hands them
// over.
func (t *trainer) push(layer int) error {
	at := t.layers[layer]
	sum, grad := t.sum.Part(at.Lo, at.Hi), t.grad[at.Lo:at.Hi]
	t.adder.Copy(sum, t.intervals[0].net.LayerGrad(layer))
	for _, i := range t.intervals[1:] {
		t.adder.Add(sum, i.net.LayerGrad(layer))
	}
	kernels.Read(t.adder, grad, sum)
	return t.weights.Push(t.pass.Epoch, layer, grad)
}

// logits are those of the last forward pass [own x classes].
func (t *trainer) logits() kernels.Mat { return t.intervals[0].kept.Whole(t.own) }

// keptColumns is how many columns of ÂX are gathered at a time: enough for
// whole cache lines, few enough that ghosts of all features are never there at
// once.
const keptColumns = 64

// keepInput computes ÂX once and keeps it in memory of a; what it takes on the
// way is freed.
// Collective over the graph ranks.
func (r *run) keepInput(intervals []*interval, a *mapped.Arena) error {
	scratch := mapped.NewArena()
	defer scratch.Free()
	half := r.cfg.Features == "bf16"
	dim, width := r.meta.FeatureDim, min(keptColumns, r.meta.FeatureDim)
	columns := kernels.NewMat(r.crew.teams[0], scratch, r.shard.NumOwn(), width)
	once := r.lockstep(nil)
	at := 0 // column
	for _, i := range intervals {
		i.net.Keep(half, a)
		k := *i
		k.net = &model.Network{Layers: []model.Layer{&keeper{net: i.net, columns: i.part(columns), from: &at}}}
		k.work.Net = k.net
		once.intervals = append(once.intervals, &k)
	}
	once.prepare(r, graphwork.Options{}, codec.Exact(r.codecs[0]), scratch) // it costs time only once
	for ; at < dim; at += width {
		at = min(at, dim-width) // the last columns are computed twice rather than in another width
		if err := once.forward(model.Pass{}, false); err != nil {
			return err
		}
	}
	r.crew.take() // no epoch's work
	return nil
}

// keeper is a layer that gathers some columns of the features and keeps them.
type keeper struct {
	model.Layer
	net     *model.Network
	columns kernels.Mat // [n x width]
	from    *int        // the first column
}

func (k *keeper) GatherWidth() int { return k.columns.Cols }

func (k *keeper) GathersBack() bool { return false }

func (k *keeper) Emit(kernels.Mat, model.Pass) kernels.Mat {
	k.net.InputColumns(k.columns, *k.from)
	return k.columns
}

func (k *keeper) Apply(gathered kernels.Mat, _ model.Pass) kernels.Mat {
	k.net.PutKept(*k.from, gathered)
	return kernels.Mat{}
}

// embeddings are the input of the last layer [own x its width] in the last
// forward pass.
func (t *trainer) embeddings() []float32 {
	if first := t.intervals[0].last; !first.IsNil() {
		return kernels.Fetch(t.adder, first.Whole(t.own), new([]float32))
	}
	width := t.net.Dims[0]
	rows := mapped.Make[float32](t.arena, t.own*width)
	for _, i := range t.intervals {
		kernels.Read(t.adder, i.rowsOf(rows, width), i.net.InputRows(t.arena))
	}
	return rows
}

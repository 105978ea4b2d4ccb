package ranks

import (
	"time"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// trainer is one graph rank.
type trainer struct {
	cfg     Config
	comm    world.Comm // of the graph ranks
	shard   *shard.Shard
	net     *model.Network
	graph   *graphWork // nil in a network without propagation
	weights weightSource
	team    *kernels.Team
	arena   *mapped.Arena
	clock   *clock
	delay   *delay // nil but in experiments
	history *history
	emit    func(runfolder.Epoch) error // takes the line of an epoch; does nothing but on rank 0

	logits []float32 // of the last forward pass [own x classes]
	grad   []float32 // of the logits
	sum    []float64 // one; on its own, because MPI must not be given a struct with pointers
	last   []float32 // input of the last layer, nil where that is X
}

// train is the training loop, from an epoch on. An epoch's line tells the loss and accuracy of
// the weights that the epoch starts from; after the last epoch the final
// weights are evaluated once more. Collective over the graph ranks.
func (t *trainer) train(first int) error {
	for epoch := first; ; epoch++ {
		start := time.Now()
		t.clock.epoch, t.clock.layer = epoch, trace.None
		t.clock.start()
		if err := t.weights.pull(epoch, t.net.Weights); err != nil {
			return err
		}
		t.clock.lap("WU")
		line := runfolder.Epoch{Epoch: epoch}
		closing := epoch > t.cfg.Epochs
		ready := false // the training pass has run already
		if closing || t.cfg.EvalEvery > 0 && (epoch-1)%t.cfg.EvalEvery == 0 {
			var err error
			if ready, err = t.evaluate(&line); err != nil {
				return err
			}
			if t.history.observe(line, t.net.Weights, closing) {
				return t.weights.leave()
			}
		}
		if err := t.step(&line, ready); err != nil {
			return err
		}
		line.Seconds = time.Since(start).Seconds() - line.EvalSeconds
		if err := t.report(line); err != nil {
			return err
		}
	}
}

// step is one epoch after its weights have come: the training pass and its
// loss, unless the evaluation was both, and the way back.
func (t *trainer) step(line *runfolder.Epoch, ready bool) error {
	p := model.Pass{Epoch: line.Epoch, Train: true}
	if !ready {
		logits, err := t.forward(p)
		if err != nil {
			return err
		}
		if line.Loss, err = t.loss(logits); err != nil {
			return err
		}
	}
	return t.backward(p)
}

// forward runs the network on all vertices and returns the logits of the own
// ones [own x classes]. Collective over the graph ranks.
func (t *trainer) forward(p model.Pass) ([]float32, error) {
	var h []float32
	for l, layer := range t.net.Layers {
		t.last, t.clock.layer = h, l
		rows, err := t.gathered(l, layer, h, p)
		if err != nil {
			return nil, err
		}
		t.clock.start()
		h = layer.Apply(rows, p)
		t.clock.lap("AV")
	}
	t.logits, t.clock.layer = h, trace.None
	return h, nil
}

// gathered is what layer l applies to: emitted rows, gathered where the layer
// uses the graph.
func (t *trainer) gathered(l int, layer model.Layer, h []float32, p model.Pass) ([]float32, error) {
	if l == 0 && t.net.Kept() {
		return nil, nil
	}
	t.clock.start()
	rows := layer.Emit(h, p)
	t.clock.lap("AV")
	t.delay.gather(1)
	if at, ok := layer.(model.Attended); ok {
		return t.graph.attend(l, at, rows, p)
	}
	if width := layer.GatherWidth(); width > 0 {
		return t.graph.gather(l, rows, width, p)
	}
	return rows, nil
}

// backward takes the gradient of the logits back through the network and
// pushes each layer's weight gradients as soon as it has them. Collective over
// the graph ranks.
func (t *trainer) backward(p model.Pass) error {
	grad := t.grad
	last := len(t.net.Layers) - 1
	for l := last; l >= 0; l-- {
		layer := t.net.Layers[l]
		t.clock.layer = l
		t.clock.start()
		grad = layer.ApplyGrad(grad, p)
		t.clock.lap("∇AV")
		if layer.GathersBack() {
			t.delay.gather(1)
			var err error
			if grad, err = t.graph.gatherGrad(l, grad, layer.GatherWidth(), l == last, p); err != nil {
				return err
			}
		}
		t.clock.start()
		grad = layer.EmitGrad(grad, p)
		t.clock.lap("∇AV")
		if err := t.weights.push(p.Epoch, l, t.net.LayerGrad(l)); err != nil {
			return err
		}
		t.clock.lap("WU")
	}
	return nil
}

// loss is the mean cross entropy over the training vertices of all ranks; it
// leaves the gradient of the own logits in t.grad. Collective over the graph
// ranks.
func (t *trainer) loss(logits []float32) (float64, error) {
	t.clock.start()
	t.sum[0] = t.ownLoss(logits)
	err := world.SumFloat64s(t.comm, t.sum)
	t.clock.lap("loss")
	return t.sum[0], err
}

// ownLoss is this rank's share of the loss, and leaves its gradient in t.grad.
func (t *trainer) ownLoss(logits []float32) float64 {
	s := t.shard
	t.growGrad(len(logits))
	scale := 1 / float64(max(s.TrainTotal, 1))
	sum, _ := kernels.SoftmaxCrossEntropy(t.team, t.grad, s.NumOwn(), s.Classes, logits, s.Labels, s.Split, graph.SplitTrain, float32(scale))
	return sum * scale
}

func (t *trainer) growGrad(n int) {
	if len(t.grad) != n {
		t.grad = mapped.Make[float32](t.arena, n)
	}
}

// keptColumns is how many columns of ÂX are gathered at a time: enough for
// whole cache lines, few enough that ghosts of all features are never there at
// once.
const keptColumns = 64

// keepInput computes ÂX once and keeps it; what it takes on the way is freed.
// Collective over the graph ranks.
func (t *trainer) keepInput() error {
	scratch := mapped.NewArena()
	defer scratch.Free()
	n, width := t.shard.NumOwn(), t.net.Layers[0].GatherWidth()
	once := *t.graph
	once.half, once.codec = false, codec.Exact(once.codec) // it costs time only once
	once.arena, once.gathered = scratch, nil
	once.connect(t.comm, min(keptColumns, width), scratch)
	t.net.Keep(t.cfg.Features == "bf16", t.arena)
	columns := mapped.Make[float32](scratch, n*min(keptColumns, width))
	for from := 0; from < width; from += keptColumns {
		to := min(from+keptColumns, width)
		t.net.InputColumns(columns[:n*(to-from)], from, to)
		rows, err := once.gather(0, columns[:n*(to-from)], to-from, model.Pass{})
		if err != nil {
			return err
		}
		t.net.PutKept(from, to, rows)
	}
	return nil
}

// embeddings are the input of the last layer [own x its width] in the last
// forward pass.
func (t *trainer) embeddings() []float32 {
	if t.last == nil {
		return t.net.InputRows(t.arena)
	}
	return t.last
}

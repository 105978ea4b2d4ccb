package engine

import (
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/params"
)

// correction is steps of all ranks together after a round of epochs in which each rank has
// trained alone: with the exact gradient, over all edges, of a mini-batch of the training
// vertices (LLCG, ICLR'22, algorithm 2). The paper's server stores the whole graph; here the
// exact passes of evaluations, forward and backward, replace it.
type correction struct {
	t           *trainer
	source      *params.Averaged
	share       float64               // of the training vertices in a batch
	scale       float32               // of the gradient, by the expected number of vertices
	batch       []uint8               // own vertices' splits; training vertices outside the batch have none
	splits      kernels.Vector[uint8] // batch, in the intervals' memory
	savedLosses []task.Loss           // of the intervals, in epochs
}

// corrections returns what follows the epochs of a trainer with corrections.
func (e *Engine) corrections(t *trainer) hooks {
	source, ok := t.source.(*params.Averaged)
	if e.Config.ServerCorrection == 0 || !ok {
		return nil
	}
	all := max(e.Shard.TrainTotal, 1)
	size := min(int64(e.Config.CorrectionBatch), all)
	if size == 0 {
		size = all
	}
	c := &correction{t: t, source: source, share: float64(size) / float64(all), scale: float32(1 / float64(size))}
	c.batch, c.splits = e.correctionBatch(t.adder, e.Arena)
	c.savedLosses = make([]task.Loss, len(t.intervals))
	return hooks{c.correct}
}

// correctionBatch allocates a mini-batch, on the host and in the intervals' memory; empty
// without corrections.
func (e *Engine) correctionBatch(ops kernels.Ops, a *mapped.Arena) ([]uint8, kernels.Vector[uint8]) {
	if e.Config.ServerCorrection == 0 {
		return nil, kernels.Vector[uint8]{}
	}
	batch := mapped.Make[uint8](a, e.Shard.NumOwn())
	return batch, kernels.Place(ops, a, batch)
}

// correct runs the corrections that are due after an epoch, from the weights that all ranks
// then have. Collective over the graph ranks.
func (c *correction) correct(e *epochState) (leave bool, err error) {
	t, epoch, exact := c.t, e.line.Epoch, c.t.routes.exact
	if !t.cfg.Shared(epoch + 1) {
		return false, nil
	}
	for n, i := range t.intervals {
		c.savedLosses[n] = i.loss
		i.loss.Split, i.loss.Scale = c.splits.Part(i.lo, i.hi), c.scale
	}
	defer func() {
		for n, i := range t.intervals {
			i.loss = c.savedLosses[n]
		}
	}()
	for k := range t.cfg.ServerCorrection {
		if err := t.pull(epoch+1, epoch+1); err != nil {
			return false, err
		}
		c.draw(t, kernels.Batch{Seed: t.cfg.Seed, Epoch: epoch, Draw: k, Share: c.share})
		if err := t.run(passRun{Pass: model.Pass{Epoch: epoch, Train: true}, route: exact, walk: exact.epochWalk}); err != nil {
			return false, err
		}
		if err := c.source.Correct(epoch, k+1, t.grad); err != nil {
			return false, err
		}
	}
	return false, nil
}

// draw removes the training vertices outside of a batch from the training split.
func (c *correction) draw(t *trainer, b kernels.Batch) {
	for v, split := range t.engine.Shard.Split {
		if split == graph.SplitTrain && !b.Has(t.engine.Shard.Own[v]) {
			split = graph.SplitNone
		}
		c.batch[v] = split
	}
	kernels.WriteVector(t.adder, c.splits, c.batch)
}

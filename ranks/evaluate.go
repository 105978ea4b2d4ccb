package ranks

import (
	"time"

	"siafu/graph"
	"siafu/kernels/model"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
	"siafu/ranks/signals"
	"siafu/ranks/world"
)

// scores are loss and accuracies over all vertices of a split, NaN-free: a
// split without vertices has accuracy 0.
type scores struct {
	loss             float64
	train, val, test float64
}

// evaluate fills in the accuracies of the weights that the line's epoch starts
// from. Where training drops nothing this is the training pass itself with its
// loss, which are then ready; else, and after the last epoch, it is one more
// forward pass, timed apart. Collective over the graph ranks.
func (t *trainer) evaluate(line *runfolder.Epoch) (ready bool, err error) {
	t.crew.fault.At(inject.Eval, line.Epoch)
	start, ready := time.Now(), !t.net.Drops()
	if !ready || line.Epoch > t.cfg.Epochs {
		goOn := t.crew.mute()
		defer func() {
			goOn()
			now := time.Now()
			t.crew.clocks[0].record(evaluation, start, now)
			line.EvalSeconds = now.Sub(start).Seconds()
			if t.exchange != nil {
				t.exchange.TakeStats() // an epoch's bytes are those of training
			}
		}()
	}
	if err := t.forward(model.Pass{Epoch: line.Epoch, Train: ready}, true); err != nil {
		return false, err
	}
	s, err := t.score()
	if err != nil {
		return false, err
	}
	line.Loss = s.loss
	line.TrainAcc, line.ValAcc, line.TestAcc = &s.train, &s.val, &s.test
	return ready, nil
}

// Sums that score makes over all ranks: the loss, hits and totals of three
// splits, and how many ranks ask for a checkpoint and how many for an end.
const (
	sumLoss = iota
	sumHits
	sumSave = sumHits + 2*3 + iota - 2
	sumStop
	scoreSums
)

// score sums loss and hits of the last forward pass over all ranks; hits are 0
// unless that counted them. What any rank was asked for is then known to all.
// Collective over the graph ranks.
func (t *trainer) score() (scores, error) {
	sums := t.sums
	clear(sums)
	if t.saver != nil {
		switch max(t.saver.pending(t.pass.Epoch), t.weights.asked()) {
		case signals.Checkpoint:
			sums[sumSave] = 1
		case signals.Stop:
			sums[sumStop] = 1
		}
	}
	for _, i := range t.intervals {
		sums[0] += i.loss.Sum / float64(max(t.shard.TrainTotal, 1))
		if !i.loss.Count {
			continue
		}
		for k, split := range []int{graph.SplitTrain, graph.SplitVal, graph.SplitTest} {
			sums[1+2*k] += float64(i.loss.Correct[split])
			sums[2+2*k] += float64(i.loss.Total[split])
		}
	}
	if err := t.timed(schedule.Judge, t.pass.Epoch, func() error { return world.SumFloat64s(t.comm, sums) }); err != nil {
		return scores{}, err
	}
	if t.saver != nil {
		switch {
		case sums[sumStop] > 0:
			t.saver.asked = signals.Stop
		case sums[sumSave] > 0:
			t.saver.asked = max(t.saver.asked, signals.Checkpoint)
		}
	}
	return scores{
		loss:  sums[0],
		train: sums[1] / max(sums[2], 1),
		val:   sums[3] / max(sums[4], 1),
		test:  sums[5] / max(sums[6], 1),
	}, nil
}

// history decides when to stop and keeps the best weights. Every graph rank
// sees the same numbers and decides the same.
type history struct {
	patience  int
	target    float64
	hasVal    bool // without validation vertices the last weights are the best
	best      []float32
	bestLine  runfolder.Epoch
	last      runfolder.Epoch
	stoppedBy string
}

// observe takes an evaluated line and the weights it speaks of, and tells
// whether to stop before the epoch is trained.
func (h *history) observe(line runfolder.Epoch, weights []float32, closing bool) bool {
	h.last = line
	if h.best == nil || !h.hasVal || *line.ValAcc > *h.bestLine.ValAcc {
		h.bestLine = line
		h.best = append(h.best[:0], weights...)
	}
	switch {
	case h.target > 0 && *line.ValAcc >= h.target:
		h.stoppedBy = byTarget
	case closing:
		h.stoppedBy = byEpochs
	case h.patience > 0 && line.Epoch-h.bestLine.Epoch >= h.patience:
		h.stoppedBy = byPatience
	default:
		return false
	}
	return true
}
